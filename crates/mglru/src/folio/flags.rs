//! A folio's flags and small fields, in one word.

use crate::types::{Gen, Zone};

/// Names one bit (or field) of [`Flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit(u64);

macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $n:literal),* $(,)?) => {
        impl Bit {
            $($(#[$doc])* pub const $name: Self = Self(1 << $n);)*
        }
    };
}

bits! {
    /// Marks the folio accessed once (first rung of the reference ladder).
    REFERENCED = 5,
    /// Marks proved reuse (K614), second access (K612), or a folio that was active (classic).
    WORKINGSET = 6,
    /// Marks a folio on the active list (classic); "place young" while off the lists (MGLRU).
    ACTIVE = 7,
    /// Marks a folio on a list.
    LRU = 8,
    /// Marks a folio that cannot be evicted.
    UNEVICTABLE = 9,
    /// Marks a folio that its owner locked in memory.
    MLOCKED = 10,
    /// Marks a folio that a caller works on: reclaim keeps it.
    LOCKED = 11,
    /// Marks a folio newer than its backing store.
    DIRTY = 12,
    /// Marks a folio being written.
    WRITEBACK = 13,
    /// Sends the folio to the tail of the oldest list as soon as its writeback ends. The same bit
    /// is the mark of a readahead window, see [`Bit::READAHEAD`].
    RECLAIM = 14,
    /// Marks a swap-backed folio: it belongs to the anon type.
    SWAPBACKED = 15,
    /// Has a swap slot.
    SWAPCACHE = 16,
    /// Marks a folio with a further reference: it cannot be freed.
    PINNED = 17,
    /// Marks an anonymous folio (swap-backed or lazily freed); shmem is swap-backed but not
    /// anonymous.
    ANON = 18,
    /// Leaves accesses through descriptors uncounted (drop-behind I/O).
    DROPBEHIND = 19,
    /// Marks a folio that some page table maps executable.
    EXEC = 20,
    /// Belongs to the host, for any use.
    HOST_MARK = 21,
    /// Marks a folio that a reclaimer holds while it waits; the caller that frees the folio takes
    /// it away from there.
    ISOLATED = 22,
    /// Belongs to the host, for any use.
    HOST = 23,
    /// Marks a folio that waits in a processor's batch to be put onto a list.
    PARKED = 30,
}

impl Bit {
    /// Marks the page whose read starts the next readahead window. It is [`Bit::RECLAIM`] under
    /// another name, as in Linux, and means readahead only while no writeback is pending: a dirty
    /// folio that reclaim has marked and nobody writes starts an unasked-for window when it is
    /// read.
    pub const READAHEAD: Self = Self::RECLAIM;
}

const REFS_SHIFT: u32 = 3;
const REFS_MASK: u64 = 0b11 << REFS_SHIFT;
const ZONE_SHIFT: u32 = 24;
const ZONE_MASK: u64 = 0b11 << ZONE_SHIFT;
const ORDER_SHIFT: u32 = 26;
const ORDER_MASK: u64 = 0b1111 << ORDER_SHIFT;
const GEN_SHIFT: u32 = 32;
const GEN_MASK: u64 = 0xff << GEN_SHIFT;
const MAPCOUNT_SHIFT: u32 = 40;

/// Gives the largest number of page-table entries that may map one folio.
pub const MAPCOUNT_MAX: u32 = (1 << (u64::BITS - MAPCOUNT_SHIFT)) - 1;

/// Gives the width of the `refs` field in bits.
pub const REFS_WIDTH: u32 = 2;
/// Gives the largest value of the `refs` field.
pub const REFS_MAX: u32 = (1 << REFS_WIDTH) - 1;

/// Holds all flags and small fields of a folio.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub(super) u64);

impl Flags {
    /// Tells whether the bit is set.
    #[inline]
    pub fn has(self, bit: Bit) -> bool {
        self.0 & bit.0 != 0
    }

    /// Tells whether any of the bits is set.
    #[inline]
    pub fn has_any(self, bits: [Bit; 2]) -> bool {
        self.0 & (bits[0].0 | bits[1].0) != 0
    }

    /// Sets the bit.
    #[inline]
    pub fn set(&mut self, bit: Bit) {
        self.0 |= bit.0;
    }

    /// Clears the bit.
    #[inline]
    pub fn clear(&mut self, bit: Bit) {
        self.0 &= !bit.0;
    }

    /// Sets or clears the bit.
    #[inline]
    pub fn put(&mut self, bit: Bit, value: bool) {
        if value { self.set(bit) } else { self.clear(bit) }
    }

    /// Clears the bit and returns whether it was set.
    #[inline]
    pub fn take(&mut self, bit: Bit) -> bool {
        let was = self.has(bit);
        self.clear(bit);
        was
    }

    /// Returns the generation field; `None` while not on a generation list.
    #[inline]
    pub fn generation(self) -> Option<Gen> {
        ((self.0 >> GEN_SHIFT) as u8).checked_sub(1).map(Gen)
    }

    /// Writes the generation field.
    #[inline]
    pub fn set_generation(&mut self, generation: Option<Gen>) {
        let field = generation.map_or(0, |g| u64::from(g.0) + 1);
        self.0 = (self.0 & !GEN_MASK) | field << GEN_SHIFT;
    }

    /// Returns the `refs` field, 0 to [`REFS_MAX`].
    #[inline]
    pub fn refs(self) -> u32 {
        ((self.0 & REFS_MASK) >> REFS_SHIFT) as u32
    }

    /// Writes the `refs` field.
    #[inline]
    pub fn set_refs(&mut self, refs: u32) {
        debug_assert!(refs <= REFS_MAX);
        self.0 = (self.0 & !REFS_MASK) | u64::from(refs) << REFS_SHIFT;
    }

    /// Returns the number of page-table entries that map the folio.
    #[inline]
    pub(super) fn mapcount(self) -> u32 {
        (self.0 >> MAPCOUNT_SHIFT) as u32
    }

    /// Writes the number of page-table entries that map the folio.
    #[inline]
    pub(super) fn set_mapcount(&mut self, n: u32) {
        assert!(n <= MAPCOUNT_MAX, "{n} page-table entries map one folio");
        self.0 = self.0 & ((1 << MAPCOUNT_SHIFT) - 1) | u64::from(n) << MAPCOUNT_SHIFT;
    }

    /// Returns the zone.
    #[inline]
    pub fn zone(self) -> Zone {
        Zone(((self.0 & ZONE_MASK) >> ZONE_SHIFT) as u8)
    }

    /// The folio was moved to another zone.
    pub(crate) fn set_zone(&mut self, zone: Zone) {
        self.0 = (self.0 & !ZONE_MASK) | u64::from(zone.0) << ZONE_SHIFT;
    }

    /// Returns log2 of the folio's pages.
    #[inline]
    pub fn order(self) -> u8 {
        ((self.0 & ORDER_MASK) >> ORDER_SHIFT) as u8
    }

    /// The folio is half as large from now on.
    pub(crate) fn halve(&mut self) {
        debug_assert!(self.order() > 0);
        self.0 -= 1 << ORDER_SHIFT;
    }

    pub(super) fn new(zone: Zone, order: u8) -> Self {
        debug_assert!(order < 16);
        Self(u64::from(zone.0) << ZONE_SHIFT | u64::from(order) << ORDER_SHIFT)
    }
}

impl core::fmt::Debug for Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        let mut flags = Flags::new(Zone(3), 9);
        flags.set_generation(Some(Gen(63)));
        flags.set_mapcount(MAPCOUNT_MAX);
        flags.set_refs(3);
        flags.set(Bit::DIRTY);
        assert_eq!(
            (flags.generation(), flags.refs(), flags.zone(), flags.order()),
            (Some(Gen(63)), 3, Zone(3), 9)
        );
        flags.set_mapcount(1);
        assert_eq!((flags.generation(), flags.mapcount()), (Some(Gen(63)), 1));
        flags.set_generation(None);
        flags.set_refs(0);
        assert_eq!((flags.generation(), flags.refs(), flags.zone()), (None, 0, Zone(3)));
        assert!(flags.has(Bit::DIRTY) && !flags.has(Bit::WRITEBACK));
    }
}
