//! Swap space: slots, the shadows left in them, and for zram the memory the pool takes from the
//! machine (experiments §0.1, §0.3).
//!
//! An all-zero page is only marked: no I/O and no pool memory. A zram page costs its submitter
//! processor time; a page on a device is a request the caller submits, at the slot's address.

mod free_slots;
mod spec;

use mglru::types::{MemcgId, Nanos};

use self::free_slots::FreeSlots;
pub use self::spec::{SwapKind, SwapSpec};
use crate::cache_slot::Slot as Cached;
use crate::costs::Costs;

const HOLDS_BITS: u32 = 3;
const HOLDS_MASK: u32 = (1 << HOLDS_BITS) - 1;

/// Numbers a slot.
pub type Slot = u32;

/// Names the content of a page, as far as swap is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Holds only zeros.
    Zero,
    /// Shrinks by the ratio.
    Compressible,
    /// Takes a whole page of the pool.
    Incompressible,
}

/// Says what storing or loading a page costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Says that a request for one page must be submitted, at the slot's address; otherwise it is
    /// done.
    pub io: bool,
    /// Counts processor time of the caller, ns.
    pub cpu: Nanos,
}

/// Counts pages moved so far, under the kernel's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapCounters {
    /// Counts pages read in.
    pub pswpin: u64,
    /// Counts pages written out.
    pub pswpout: u64,
    /// Counts zero pages brought in without a read.
    pub swpin_zero: u64,
    /// Counts zero pages put out without a write.
    pub swpout_zero: u64,
}

/// Holds the swap space of the machine.
#[derive(Clone, Debug)]
pub struct Swap {
    spec: SwapSpec,
    costs: Costs,
    total: u64,
    free: FreeSlots,
    slots: Vec<SlotState>,
    compressible: u64,
    incompressible: u64,
    counters: SwapCounters,
}

/// Eight bytes in one place: a slot is touched rarely enough to be out of every cache.
#[derive(Clone, Copy, Debug)]
struct SlotState {
    /// The folio that holds its page, or the shadow that one left.
    cached: u32,
    /// The group that is charged, beside the content.
    charged_holds: u32,
}

impl SlotState {
    fn new(memcg: MemcgId) -> Self {
        let mut state = Self { cached: Cached::Hole.pack(), charged_holds: memcg.0 << HOLDS_BITS };
        state.set(Holds::Reserved);
        state
    }

    fn memcg(self) -> MemcgId {
        MemcgId(self.charged_holds >> HOLDS_BITS)
    }

    fn holds(self) -> Holds {
        Holds::of(self.charged_holds & HOLDS_MASK)
    }

    /// Replaces what it holds; returns what it held.
    fn set(&mut self, holds: Holds) -> Holds {
        let held = self.holds();
        self.charged_holds = self.charged_holds & !HOLDS_MASK | holds.code();
        held
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Free,
    /// Reserves the slot; nothing is stored yet.
    Reserved,
    Stored(Class),
}

impl Holds {
    fn code(self) -> u32 {
        match self {
            Self::Free => 0,
            Self::Reserved => 1,
            Self::Stored(Class::Zero) => 2,
            Self::Stored(Class::Compressible) => 3,
            Self::Stored(Class::Incompressible) => 4,
        }
    }

    fn of(code: u32) -> Self {
        match code {
            1 => Self::Reserved,
            2 => Self::Stored(Class::Zero),
            3 => Self::Stored(Class::Compressible),
            4 => Self::Stored(Class::Incompressible),
            _ => Self::Free,
        }
    }
}

impl Swap {
    /// Creates empty swap space.
    pub fn new(spec: SwapSpec, costs: &Costs) -> Self {
        let slots = spec.slots();
        let free = match spec.kind {
            SwapKind::Device => FreeSlots::in_order(slots),
            SwapKind::Zram | SwapKind::None => FreeSlots::anywhere(slots),
        };
        Self {
            total: u64::from(slots),
            free,
            spec,
            costs: costs.clone(),
            slots: Vec::new(),
            compressible: 0,
            incompressible: 0,
            counters: SwapCounters::default(),
        }
    }

    /// Describes the swap space.
    pub fn spec(&self) -> &SwapSpec {
        &self.spec
    }

    /// Counts all slots, pages; 0 without swap.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Counts the free slots, pages.
    pub fn free_slots(&self) -> u64 {
        self.free.count()
    }

    /// Counts slots in use, pages.
    pub fn used(&self) -> u64 {
        self.total() - self.free_slots()
    }

    /// Takes a slot that `memcg` is charged for; `None`: the space is full.
    pub fn alloc_slot(&mut self, memcg: MemcgId) -> Option<Slot> {
        let slot = self.free.take()?;
        let state = SlotState::new(memcg);
        match self.slots.get_mut(slot as usize) {
            Some(known) => *known = state,
            None => self.slots.push(state),
        }
        Some(slot)
    }

    /// Gives a slot back, with what it holds; returns the group that was charged.
    ///
    /// # Panics
    /// When the slot is free.
    pub fn free(&mut self, slot: Slot) -> MemcgId {
        let held = self.slots[slot as usize].set(Holds::Free);
        assert_ne!(held, Holds::Free, "swap slot {slot} freed twice");
        self.forget(held);
        self.free.give_back(slot);
        self.slots[slot as usize].memcg()
    }

    /// Stores a page in a slot. A slot stored before, whose page was dirtied since, is overwritten.
    pub fn store(&mut self, slot: Slot, class: Class) -> Transfer {
        let held = self.slots[slot as usize].set(Holds::Stored(class));
        assert_ne!(held, Holds::Free, "swap slot {slot} stored to but free");
        self.forget(held);
        match class {
            Class::Zero => {}
            Class::Compressible => self.compressible += 1,
            Class::Incompressible => self.incompressible += 1,
        }
        match self.only_marked(class) {
            true => self.counters.swpout_zero += 1,
            false => self.counters.pswpout += 1,
        }
        self.transfer(class, self.costs.zram_compress_ns)
    }

    /// Brings a page in; its slot stays taken until [`Swap::free`].
    ///
    /// # Panics
    /// When nothing was stored in the slot.
    pub fn load(&mut self, slot: Slot) -> Transfer {
        let Holds::Stored(class) = self.slots[slot as usize].holds() else {
            panic!("swap slot {slot} loaded but never stored");
        };
        match self.only_marked(class) {
            true => self.counters.swpin_zero += 1,
            false => self.counters.pswpin += 1,
        }
        self.transfer(class, self.costs.zram_decompress_ns)
    }

    /// Tells whether the slot's page must be read from a device.
    pub fn is_on_device(&self, slot: Slot) -> bool {
        let held = self.slots[slot as usize].holds();
        self.spec.kind == SwapKind::Device
            && matches!(held, Holds::Stored(class) if !self.only_marked(class))
    }

    /// Does the slot hold a page?
    pub fn is_stored(&self, slot: Slot) -> bool {
        matches!(self.slots[slot as usize].holds(), Holds::Stored(_))
    }

    /// Returns the entry of a slot's page in the swap cache.
    pub fn cached(&self, slot: Slot) -> Cached {
        Cached::unpack(self.slots[slot as usize].cached)
    }

    /// Makes another folio stand for the slot from now on.
    pub fn set_cached(&mut self, slot: Slot, cached: Cached) {
        self.slots[slot as usize].cached = cached.pack();
    }

    /// Loads what is known of a slot, to have it near.
    pub fn peek(&self, slot: Slot) -> u64 {
        u64::from(self.slots[slot as usize].cached)
    }

    /// Counts pages that the zram pool takes from the machine (and from no group).
    pub fn pool_pages(&self) -> u64 {
        if self.spec.kind != SwapKind::Zram {
            return 0;
        }
        let thousandths = u128::from(self.compressible) * 1_000;
        let packed = thousandths.div_ceil(u128::from(self.spec.ratio.thousandths()));
        packed as u64 + self.incompressible
    }

    /// Returns the counts of the pages moved so far.
    pub fn counters(&self) -> SwapCounters {
        self.counters
    }

    /// Returns the host memory of the tables, bytes.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<SlotState>() + self.free.bytes()
    }

    fn forget(&mut self, holds: Holds) {
        match holds {
            Holds::Stored(Class::Compressible) => self.compressible -= 1,
            Holds::Stored(Class::Incompressible) => self.incompressible -= 1,
            Holds::Stored(Class::Zero) | Holds::Reserved | Holds::Free => {}
        }
    }

    fn only_marked(&self, class: Class) -> bool {
        class == Class::Zero && self.spec.zero_map
    }

    fn transfer(&self, class: Class, zram_ns: Nanos) -> Transfer {
        let on_device = self.spec.kind == SwapKind::Device;
        let io = on_device && !self.only_marked(class);
        let page = match class {
            Class::Zero if !io => self.costs.zero_page_ns,
            _ if on_device => 0,
            _ => zram_ns,
        };
        Transfer { io, cpu: self.costs.swap_ns + page }
    }
}

#[cfg(test)]
mod tests;
