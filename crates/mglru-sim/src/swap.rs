//! Swap space: slots, the shadows left in them, and for zram the memory the pool takes from the
//! machine (experiments §0.1, §0.3).
//!
//! An all-zero page is only marked: no I/O and no pool memory. A zram page costs its submitter
//! processor time; a page on a device is a request the caller submits, at the slot's address.

mod free_slots;
mod spec;

use mglru::types::Nanos;

use self::free_slots::FreeSlots;
pub use self::spec::{SwapKind, SwapSpec};
use crate::costs::Costs;

/// A slot's number.
pub type Slot = u32;

/// What a page holds, as far as swap is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// All zero.
    Zero,
    /// Shrinks by the ratio.
    Compressible,
    /// Takes a whole page of the pool.
    Incompressible,
}

/// What storing or loading a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// A request for one page must be submitted, at the slot's address; otherwise it is done.
    pub io: bool,
    /// Processor time of the caller, ns.
    pub cpu: Nanos,
}

/// Pages moved so far, under the kernel's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapCounters {
    /// Pages read in.
    pub pswpin: u64,
    /// Pages written out.
    pub pswpout: u64,
    /// Zero pages brought in without a read.
    pub swpin_zero: u64,
    /// Zero pages put out without a write.
    pub swpout_zero: u64,
}

/// The swap space of the machine.
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

/// Twelve bytes in one place: a slot is touched rarely enough to be out of every cache.
#[derive(Clone, Copy, Debug)]
struct SlotState {
    /// Low and high half.
    shadow: [u32; 2],
    holds: Holds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Free,
    /// Allocated; nothing stored yet.
    Reserved,
    Stored(Class),
}

impl Swap {
    /// Empty swap space.
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

    /// What the swap space is.
    pub fn spec(&self) -> &SwapSpec {
        &self.spec
    }

    /// Slots in all, pages; 0 without swap.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Free slots, pages.
    pub fn free_slots(&self) -> u64 {
        self.free.count()
    }

    /// Slots in use, pages.
    pub fn used(&self) -> u64 {
        self.total() - self.free_slots()
    }

    /// Takes a slot; `None`: the space is full.
    pub fn alloc_slot(&mut self) -> Option<Slot> {
        let slot = self.free.take()?;
        let state = SlotState { shadow: [0; 2], holds: Holds::Reserved };
        match self.slots.get_mut(slot as usize) {
            Some(known) => *known = state,
            None => self.slots.push(state),
        }
        Some(slot)
    }

    /// Gives a slot back, with what it holds.
    ///
    /// # Panics
    /// When the slot is free.
    pub fn free(&mut self, slot: Slot) {
        let held = std::mem::replace(&mut self.slots[slot as usize].holds, Holds::Free);
        assert_ne!(held, Holds::Free, "swap slot {slot} freed twice");
        self.forget(held);
        self.free.give_back(slot);
    }

    /// Stores a page in a slot. A slot stored before, whose page was dirtied since, is overwritten.
    pub fn store(&mut self, slot: Slot, class: Class) -> Transfer {
        let holds = &mut self.slots[slot as usize].holds;
        let held = std::mem::replace(holds, Holds::Stored(class));
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
        let Holds::Stored(class) = self.slots[slot as usize].holds else {
            panic!("swap slot {slot} loaded but never stored");
        };
        match self.only_marked(class) {
            true => self.counters.swpin_zero += 1,
            false => self.counters.pswpin += 1,
        }
        self.transfer(class, self.costs.zram_decompress_ns)
    }

    /// Does the slot hold a page?
    pub fn is_stored(&self, slot: Slot) -> bool {
        matches!(self.slots[slot as usize].holds, Holds::Stored(_))
    }

    /// Leaves a shadow in a slot; 0 is none.
    pub fn set_shadow(&mut self, slot: Slot, shadow: u64) {
        self.slots[slot as usize].shadow = [shadow as u32, (shadow >> 32) as u32];
    }

    /// The shadow left in a slot; 0 is none.
    pub fn shadow(&self, slot: Slot) -> u64 {
        let [low, high] = self.slots[slot as usize].shadow;
        u64::from(high) << 32 | u64::from(low)
    }

    /// Pages the zram pool takes from the machine (and from no group).
    pub fn pool_pages(&self) -> u64 {
        if self.spec.kind != SwapKind::Zram {
            return 0;
        }
        let thousandths = u128::from(self.compressible) * 1_000;
        let packed = thousandths.div_ceil(u128::from(self.spec.ratio.thousandths()));
        packed as u64 + self.incompressible
    }

    /// Pages moved so far.
    pub fn counters(&self) -> SwapCounters {
        self.counters
    }

    /// Host memory of the tables, bytes.
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
