//! Page tables of one mapping: entries with accessed and dirty bits, and the accessed bit of each
//! table's PMD (spec §4.3).
//!
//! An entry is a byte of bits; what the bits are about lies apart, so that an access looks at one
//! byte and the entries of 64 pages share a line of the host's cache. For swap-backed memory that
//! is a word a page, the folio or the swap slot. A mapping of a file needs none: a present entry
//! maps the folio that the page cache holds, because reclaim and truncation unmap a page before
//! they take it out. Both arrays are lazily zeroed: untouched tables cost nothing.

use mglru::types::FolioId;

/// Counts the entries under one PMD.
pub const TABLE_ENTRIES: u32 = 512;

const TABLE_SHIFT: u32 = TABLE_ENTRIES.trailing_zeros();
const PRESENT: u8 = 1;
const ACCESSED: u8 = 1 << 1;
const DIRTY: u8 = 1 << 2;
const ZEROES: u8 = 1 << 3;
const SWAPPED: u8 = 1 << 4;

const POPULATED: u8 = 1;
const YOUNG: u8 = 2;

/// Holds the bits of a page-table entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pte(u8);

/// Names the content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maps {
    /// Maps nothing.
    None,
    /// Maps the shared page of zeroes, read-only.
    Zero,
    /// Maps this folio.
    Folio(FolioId),
    /// Holds the slot to which the page is swapped out.
    Swap(u32),
}

impl Pte {
    /// Maps nothing.
    pub const NONE: Self = Self(0);
    /// Maps the shared page of zeroes.
    pub const ZERO: Self = Self(PRESENT | ZEROES);
    /// Maps a folio, not accessed and clean.
    pub const FOLIO: Self = Self(PRESENT);
    /// Says that the page is in swap.
    pub const SWAP: Self = Self(SWAPPED);

    /// Returns the entry with its accessed bit set.
    #[must_use]
    pub fn young(self) -> Self {
        Self(self.0 | ACCESSED)
    }

    /// Returns the entry with its dirty bit set.
    #[must_use]
    pub fn dirty(self) -> Self {
        Self(self.0 | DIRTY)
    }

    /// Tells whether the accessed bit is set.
    #[inline]
    pub fn is_young(self) -> bool {
        self.0 & ACCESSED != 0
    }

    /// Tells whether the dirty bit is set.
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// Does it map a folio, the page of zeroes apart?
    #[inline]
    pub fn has_folio(self) -> bool {
        self.0 & (PRESENT | ZEROES) == PRESENT
    }

    #[inline]
    fn is_swap(self) -> bool {
        self.0 & SWAPPED != 0
    }
}

/// Holds the page tables of one mapping.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    /// Bits, as in [`Pte`].
    entries: Vec<u8>,
    /// Folio or slot of each entry; empty for a file.
    targets: Vec<u32>,
    tables: Vec<u8>,
    resident: u64,
    swapped: u64,
}

impl PageTable {
    /// Creates tables for a mapping of `pages` pages, none populated.
    pub fn new(pages: u32, is_swap_backed: bool) -> Self {
        let targets = if is_swap_backed { pages } else { 0 };
        Self {
            entries: vec![0; pages as usize],
            targets: vec![0; targets as usize],
            tables: vec![0; pages.div_ceil(TABLE_ENTRIES) as usize],
            resident: 0,
            swapped: 0,
        }
    }

    /// Does what the hardware does for one access. `false`: it cannot, the kernel must (a fault).
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

    /// Returns the bits of an entry, none beyond the mapping.
    #[inline]
    pub fn peek(&self, page: u32) -> Pte {
        Pte(self.entries.get(page as usize).copied().unwrap_or(0))
    }

    /// Returns the folio of an entry, as [`Self::peek`].
    #[inline]
    pub fn peek_target(&self, page: u32) -> u32 {
        self.targets.get(page as usize).copied().unwrap_or(0)
    }

    /// Returns the entry of a page.
    #[inline]
    pub fn get(&self, page: u32) -> Pte {
        Pte(self.entries[page as usize])
    }

    /// Reads the entry of a page of swap-backed memory.
    #[inline]
    pub fn maps(&self, page: u32) -> Maps {
        let pte = self.get(page);
        if pte.has_folio() {
            Maps::Folio(FolioId(self.targets[page as usize]))
        } else if pte.is_swap() {
            Maps::Swap(self.targets[page as usize])
        } else if pte == Pte::NONE {
            Maps::None
        } else {
            Maps::Zero
        }
    }

    /// Returns the slot that holds a page of swap-backed memory, as [`Self::peek`].
    #[inline]
    pub fn swapped_to(&self, page: u32) -> Option<u32> {
        self.peek(page).is_swap().then(|| self.targets[page as usize])
    }

    /// Replaces the bits of an entry; a present young one makes its PMD young. `true`: this is the
    /// first entry of its table.
    pub fn set(&mut self, page: u32, pte: Pte) -> bool {
        let old = Pte(std::mem::replace(&mut self.entries[page as usize], pte.0));
        self.resident = self.resident + u64::from(pte.has_folio()) - u64::from(old.has_folio());
        self.swapped = self.swapped + u64::from(pte.is_swap()) - u64::from(old.is_swap());
        let young = if pte.is_young() { YOUNG } else { 0 };
        let table = &mut self.tables[(page >> TABLE_SHIFT) as usize];
        let first = *table == 0;
        *table |= POPULATED | young;
        first
    }

    /// Makes an entry of swap-backed memory stand for another folio (or slot).
    pub fn point(&mut self, page: u32, target: u32) {
        self.targets[page as usize] = target;
    }

    /// Counts the tables that were ever populated.
    pub fn populated(&self) -> u64 {
        self.tables.iter().filter(|&&table| table != 0).count() as u64
    }

    /// Returns which entries of up to 64 `pages` are present, and which of those young: a bit each,
    /// the first one lowest. Without a branch, because young entries come in no order.
    #[inline]
    pub fn present_and_young(&self, pages: std::ops::Range<u32>) -> (u64, u64) {
        let entries = &self.entries[pages.start as usize..pages.end as usize];
        debug_assert!(entries.len() <= 64);
        let eights = entries.chunks_exact(8);
        let last = eights.remainder().iter().rev().fold(0, |bytes, &e| bytes << 8 | u64::from(e));
        let word = |eight: &[u8]| u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        std::iter::once(last).chain(eights.rev().map(word)).fold(
            (0, 0),
            |(present, young), bytes| {
                (present << 8 | low_bits(bytes), young << 8 | low_bits(bytes >> 1))
            },
        )
    }

    /// Clears the accessed bit and returns what the entry was before.
    #[inline]
    pub fn take_young(&mut self, page: u32) -> Pte {
        let entry = &mut self.entries[page as usize];
        let was = Pte(*entry);
        *entry &= !ACCESSED;
        was
    }

    /// Clears the dirty bit: write-protects the page.
    pub fn clear_dirty(&mut self, page: u32) {
        self.entries[page as usize] &= !DIRTY;
    }

    /// Returns the first table at or after `from` that was ever populated, and its accessed bit.
    pub fn next_table(&self, from: u32) -> Option<(u32, bool)> {
        let rest = self.tables.get(from as usize..)?;
        let ahead = rest.iter().position(|&t| t != 0)?;
        Some((from + ahead as u32, rest[ahead] & YOUNG != 0))
    }

    /// Clears the accessed bit of a table's PMD.
    pub fn clear_table_young(&mut self, table: u32) {
        self.tables[table as usize] &= !YOUNG;
    }

    /// Returns the pages under one PMD.
    pub fn table_pages(&self, table: u32) -> std::ops::Range<u32> {
        let start = table * TABLE_ENTRIES;
        start..self.pages().min(start + TABLE_ENTRIES)
    }

    /// Returns the table of a page.
    pub fn table_of(page: u32) -> u32 {
        page >> TABLE_SHIFT
    }

    /// Returns the length of the mapping in pages.
    pub fn pages(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Counts entries that map a folio.
    pub fn resident(&self) -> u64 {
        self.resident
    }

    /// Counts entries of pages in swap.
    pub fn swapped(&self) -> u64 {
        self.swapped
    }
}

/// The lowest bit of each of eight bytes, together: the product moves bit `8n` to `56 + n`.
#[inline]
fn low_bits(bytes: u64) -> u64 {
    (bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests;
