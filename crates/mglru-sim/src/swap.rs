//! Swap space: slots, the shadows left in them, and for zram the memory the pool takes from the
//! machine (experiments §0.1, §0.3).
//!
//! An all-zero page is only marked: no I/O and no pool memory. A zram page costs its submitter
//! processor time; a page on a device is a request the caller submits, at the slot's address.

mod spec;

use mglru::types::Nanos;

pub use self::spec::{SwapKind, SwapSpec};
use crate::bit_tree::BitTree;
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
    slots: u32,
    /// Freed slots below `opened`; those from `opened` on were never used.
    holes: BitTree,
    opened: u32,
    cursor: u32,
    shadows: Vec<u64>,
    classes: Vec<State>,
    compressible: u64,
    incompressible: u64,
    counters: SwapCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Allocated; nothing stored yet.
    Reserved,
    Stored(Class),
}

impl Swap {
    /// Empty swap space.
    pub fn new(spec: SwapSpec, costs: &Costs) -> Self {
        Self {
            slots: spec.slots(),
            spec,
            costs: costs.clone(),
            holes: BitTree::new(),
            opened: 0,
            cursor: 0,
            shadows: Vec::new(),
            classes: Vec::new(),
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
        u64::from(self.slots)
    }

    /// Free slots, pages.
    pub fn free_slots(&self) -> u64 {
        u64::from(self.slots - self.opened) + self.holes.count()
    }

    /// Slots in use, pages.
    pub fn used(&self) -> u64 {
        self.total() - self.free_slots()
    }

    /// Takes a slot; `None`: the space is full. On a device the search goes on from the last slot
    /// given, so that a batch lies together; zram has no places, so the lowest slot is taken and
    /// the tables stay as small as the most ever used.
    pub fn alloc_slot(&mut self) -> Option<Slot> {
        let slot = match self.spec.kind {
            SwapKind::Device => self.next_fit()?,
            SwapKind::Zram | SwapKind::None => self.lowest()?,
        };
        self.cursor = slot + 1;
        self.shadows[slot as usize] = 0;
        self.classes[slot as usize] = State::Reserved;
        Some(slot)
    }

    /// Gives a slot back, with what it holds.
    ///
    /// # Panics
    /// When the slot is free.
    pub fn free(&mut self, slot: Slot) {
        let state = std::mem::replace(&mut self.classes[slot as usize], State::Free);
        assert_ne!(state, State::Free, "swap slot {slot} freed twice");
        self.forget(state);
        self.holes.insert(u64::from(slot));
    }

    /// Stores a page in a slot. A slot stored before, whose page was dirtied since, is overwritten.
    pub fn store(&mut self, slot: Slot, class: Class) -> Transfer {
        let state = std::mem::replace(&mut self.classes[slot as usize], State::Stored(class));
        assert_ne!(state, State::Free, "swap slot {slot} stored to but free");
        self.forget(state);
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
        let State::Stored(class) = self.classes[slot as usize] else {
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
        matches!(self.classes[slot as usize], State::Stored(_))
    }

    /// Leaves a shadow in a slot; 0 is none.
    pub fn set_shadow(&mut self, slot: Slot, shadow: u64) {
        self.shadows[slot as usize] = shadow;
    }

    /// The shadow left in a slot; 0 is none.
    pub fn shadow(&self, slot: Slot) -> u64 {
        self.shadows[slot as usize]
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
        self.shadows.capacity() * size_of::<u64>()
            + self.classes.capacity() * size_of::<State>()
            + self.holes.bytes()
    }

    fn lowest(&mut self) -> Option<Slot> {
        self.hole(0).or_else(|| self.open())
    }

    fn next_fit(&mut self) -> Option<Slot> {
        self.hole(self.cursor).or_else(|| self.open()).or_else(|| self.hole(0))
    }

    fn hole(&mut self, from: u32) -> Option<Slot> {
        let slot = self.holes.next(u64::from(from))?;
        self.holes.remove(slot);
        Some(slot as Slot)
    }

    fn open(&mut self) -> Option<Slot> {
        (self.opened < self.slots).then(|| {
            self.shadows.push(0);
            self.classes.push(State::Free);
            self.opened += 1;
            self.opened - 1
        })
    }

    fn forget(&mut self, state: State) {
        match state {
            State::Stored(Class::Compressible) => self.compressible -= 1,
            State::Stored(Class::Incompressible) => self.incompressible -= 1,
            State::Stored(Class::Zero) | State::Reserved | State::Free => {}
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
