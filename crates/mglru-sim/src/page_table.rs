//! Page tables of one mapping: entries with accessed and dirty bits, and the accessed bit of each
//! table's PMD (spec §4.3).
//!
//! An entry is 32 bits: zero is none; with the present bit it holds accessed, dirty and the folio;
//! otherwise it is a swap slot. The entries of a mapping lie in one lazily zeroed array, so an
//! access costs one load where the hardware's walk costs one, and untouched tables cost nothing.

use mglru::types::FolioId;

/// Entries under one PMD.
pub const TABLE_ENTRIES: u32 = 512;

const TABLE_SHIFT: u32 = TABLE_ENTRIES.trailing_zeros();
const PRESENT: u32 = 1 << 31;
const ACCESSED: u32 = 1 << 30;
const DIRTY: u32 = 1 << 29;
const FOLIO: u32 = DIRTY - 1;

const POPULATED: u8 = 1;
const YOUNG: u8 = 2;

/// One page-table entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pte(u32);

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maps {
    /// Nothing.
    None,
    /// The shared page of zeroes, read-only.
    Zero,
    /// This folio.
    Folio(FolioId),
    /// Swapped out to this slot.
    Swap(u32),
}

impl Pte {
    /// No translation.
    pub const NONE: Self = Self(0);
    /// The shared page of zeroes.
    pub const ZERO: Self = Self(PRESENT | FOLIO);

    /// A present entry, not accessed and clean.
    pub fn map(folio: FolioId) -> Self {
        debug_assert!(folio.0 < FOLIO, "folio ids have 29 bits");
        Self(PRESENT | folio.0)
    }

    /// An entry of a page in swap.
    pub fn swap(slot: u32) -> Self {
        debug_assert!(slot < PRESENT - 1);
        Self(slot + 1)
    }

    /// The entry with its accessed bit set.
    #[must_use]
    pub fn young(self) -> Self {
        Self(self.0 | ACCESSED)
    }

    /// The entry with its dirty bit set.
    #[must_use]
    pub fn dirty(self) -> Self {
        Self(self.0 | DIRTY)
    }

    /// Is the accessed bit set?
    #[inline]
    pub fn is_young(self) -> bool {
        self.0 & (PRESENT | ACCESSED) == PRESENT | ACCESSED
    }

    /// Is the dirty bit set?
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.0 & (PRESENT | DIRTY) == PRESENT | DIRTY
    }

    /// Is there a translation?
    #[inline]
    pub fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// The folio it maps, the page of zeroes apart.
    #[inline]
    pub fn folio(self) -> Option<FolioId> {
        match self.maps() {
            Maps::Folio(folio) => Some(folio),
            _ => None,
        }
    }

    /// What it says.
    #[inline]
    pub fn maps(self) -> Maps {
        match self.0 {
            0 => Maps::None,
            _ if self.0 & PRESENT == 0 => Maps::Swap(self.0 - 1),
            _ if self.0 & FOLIO == FOLIO => Maps::Zero,
            _ => Maps::Folio(FolioId(self.0 & FOLIO)),
        }
    }

    fn counts(self) -> (u64, u64) {
        match self.maps() {
            Maps::Folio(_) => (1, 0),
            Maps::Swap(_) => (0, 1),
            Maps::None | Maps::Zero => (0, 0),
        }
    }
}

/// The page tables of one mapping.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    entries: Vec<u32>,
    tables: Vec<u8>,
    resident: u64,
    swapped: u64,
}

impl PageTable {
    /// Tables for a mapping of `pages` pages, none populated.
    pub fn new(pages: u32) -> Self {
        let tables = pages.div_ceil(TABLE_ENTRIES) as usize;
        Self { entries: vec![0; pages as usize], tables: vec![0; tables], resident: 0, swapped: 0 }
    }

    /// What the hardware does for one access. `false`: it cannot, the kernel must (a fault).
    #[inline]
    pub fn access(&mut self, page: u32, write: bool) -> bool {
        let Some(entry) = self.entries.get_mut(page as usize) else { return false };
        let bits = *entry;
        let needs = if write { PRESENT | DIRTY } else { PRESENT };
        if bits & needs != needs {
            return false;
        }
        if bits & ACCESSED == 0 {
            *entry = bits | ACCESSED;
        }
        let table = &mut self.tables[(page >> TABLE_SHIFT) as usize];
        if *table != POPULATED | YOUNG {
            *table = POPULATED | YOUNG;
        }
        true
    }

    /// The raw word of an entry, to bring its cache line near before a batch of accesses.
    #[inline]
    pub fn peek(&self, page: u32) -> u32 {
        self.entries.get(page as usize).copied().unwrap_or(0)
    }

    /// The entry of a page.
    #[inline]
    pub fn get(&self, page: u32) -> Pte {
        Pte(self.entries[page as usize])
    }

    /// Replaces the entry of a page; a present young one makes its PMD young. `true`: this is the
    /// first entry of its table.
    pub fn set(&mut self, page: u32, pte: Pte) -> bool {
        let old = Pte(std::mem::replace(&mut self.entries[page as usize], pte.0));
        let ((was_in, was_out), (is_in, is_out)) = (old.counts(), pte.counts());
        self.resident = self.resident + is_in - was_in;
        self.swapped = self.swapped + is_out - was_out;
        let young = if pte.is_young() { YOUNG } else { 0 };
        let table = &mut self.tables[(page >> TABLE_SHIFT) as usize];
        let first = *table == 0;
        *table |= POPULATED | young;
        first
    }

    /// Tables that were ever populated.
    pub fn populated(&self) -> u64 {
        self.tables.iter().filter(|&&table| table != 0).count() as u64
    }

    /// Does the entry of a page say that it was accessed?
    #[inline]
    pub fn is_young(&self, page: u32) -> bool {
        Pte(self.peek(page)).is_young()
    }

    /// Which entries of up to 64 `pages` are present, and which of those young: a bit each, the
    /// first one lowest. Without a branch, because young entries come in no order.
    #[inline]
    pub fn present_and_young(&self, pages: std::ops::Range<u32>) -> (u64, u64) {
        let entries = &self.entries[pages.start as usize..pages.end as usize];
        debug_assert!(entries.len() <= 64);
        entries.iter().rev().fold((0, 0), |(present, young), &entry| {
            let is_young = entry >= PRESENT | ACCESSED;
            (present << 1 | u64::from(entry >> 31), young << 1 | u64::from(is_young))
        })
    }

    /// Clears the accessed bit and tells what the entry was before.
    #[inline]
    pub fn take_young(&mut self, page: u32) -> Pte {
        let was = self.get(page);
        if was.is_young() {
            self.entries[page as usize] = was.0 & !ACCESSED;
        }
        was
    }

    /// Clears the dirty bit (write-protects the page) and tells whether it was set.
    pub fn take_dirty(&mut self, page: u32) -> bool {
        let was = self.get(page);
        if was.is_dirty() {
            self.entries[page as usize] = was.0 & !DIRTY;
        }
        was.is_dirty()
    }

    /// The first table at or after `from` that was ever populated, and its accessed bit.
    pub fn next_table(&self, from: u32) -> Option<(u32, bool)> {
        let rest = self.tables.get(from as usize..)?;
        let ahead = rest.iter().position(|&t| t != 0)?;
        Some((from + ahead as u32, rest[ahead] & YOUNG != 0))
    }

    /// Clears the accessed bit of a table's PMD.
    pub fn clear_table_young(&mut self, table: u32) {
        self.tables[table as usize] &= !YOUNG;
    }

    /// The pages under one PMD.
    pub fn table_pages(&self, table: u32) -> std::ops::Range<u32> {
        let start = table * TABLE_ENTRIES;
        start..self.pages().min(start + TABLE_ENTRIES)
    }

    /// The table of a page.
    pub fn table_of(page: u32) -> u32 {
        page >> TABLE_SHIFT
    }

    /// Length of the mapping in pages.
    pub fn pages(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Entries that map a folio.
    pub fn resident(&self) -> u64 {
        self.resident
    }

    /// Entries of pages in swap.
    pub fn swapped(&self) -> u64 {
        self.swapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_sets_what_the_hardware_sets() {
        let mut table = PageTable::new(1000);
        assert!(!table.access(700, false), "nothing is mapped");
        table.set(700, Pte::map(FolioId(7)));
        assert_eq!(table.next_table(0), Some((1, false)));
        assert!(table.access(700, false));
        assert!(table.get(700).is_young() && !table.get(700).is_dirty());
        assert_eq!(table.next_table(0), Some((1, true)));
        assert!(!table.access(700, true), "a store to a clean page is the kernel's to see");
        table.set(700, table.get(700).dirty());
        assert!(table.access(700, true));
    }

    #[test]
    fn masks_say_what_the_entries_say() {
        let mut table = PageTable::new(80);
        table.set(3, Pte::map(FolioId(1)).young());
        table.set(4, Pte::map(FolioId(2)).dirty());
        table.set(5, Pte::swap(u32::MAX >> 2));
        table.set(70, Pte::ZERO.young());
        assert_eq!(table.present_and_young(0..64), (0b11000, 0b01000));
        assert_eq!(table.present_and_young(4..6), (0b01, 0));
        assert_eq!(table.present_and_young(16..80), (1 << 54, 1 << 54));
        assert!(table.is_young(3) && !table.is_young(4) && !table.is_young(99));
    }

    #[test]
    fn clearing_the_accessed_bits_lets_them_be_set_again() {
        let mut table = PageTable::new(10);
        table.set(3, Pte::map(FolioId(1)).young());
        assert!(table.take_young(3).is_young());
        assert!(!table.take_young(3).is_young());
        table.clear_table_young(0);
        assert_eq!(table.next_table(0), Some((0, false)));
        assert!(table.access(3, false));
        assert!(table.get(3).is_young());
        assert_eq!(table.next_table(0), Some((0, true)));
    }

    #[test]
    fn an_entry_is_one_of_four_things() {
        assert_eq!(Pte::NONE.maps(), Maps::None);
        assert_eq!(Pte::ZERO.maps(), Maps::Zero);
        assert_eq!(Pte::swap(0).maps(), Maps::Swap(0));
        assert_eq!(Pte::map(FolioId(0)).young().dirty().maps(), Maps::Folio(FolioId(0)));
        assert!(Pte::ZERO.folio().is_none() && !Pte::swap(9).is_young());
    }

    #[test]
    fn resident_and_swapped_pages_are_counted() {
        let mut table = PageTable::new(600);
        table.set(0, Pte::map(FolioId(1)));
        table.set(599, Pte::map(FolioId(2)));
        table.set(599, Pte::swap(4));
        table.set(5, Pte::ZERO);
        assert_eq!((table.resident(), table.swapped()), (1, 1));
        table.set(599, Pte::NONE);
        assert_eq!((table.resident(), table.swapped()), (1, 0));
        assert_eq!(table.table_pages(1), 512..600);
    }
}
