//! The tables that know the pages of an arena: made ready, and paid for, as they are filled.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use super::Arena;
use super::evictions::Evictions;
use crate::pages::Presence;
use crate::sys::heap::TABLE_SPAN;
use crate::sys::table::Table;
use crate::sys::{PAGE, idle};

/// Gives the number of pages under one page table.
const PER_TABLE: usize = TABLE_SPAN / PAGE;

/// Page tables that were ever filled. The thread that fills a page first makes its table ready,
/// under the lock.
pub(super) struct Tables {
    filled: Table<AtomicU8>,
    /// The first of them are ready from the start.
    nr_ready: usize,
    readying: Mutex<()>,
}

impl Tables {
    /// The tables of an arena of `len` bytes; those of the first `nr_held` pages are ready.
    pub(super) fn new(len: usize, nr_held: u32) -> io::Result<Self> {
        let nr_ready = (nr_held as usize).div_ceil(PER_TABLE);
        let filled = Table::new(len.div_ceil(TABLE_SPAN))?;
        Ok(Self { filled, nr_ready, readying: Mutex::default() })
    }

    /// Bytes of the arena under the tables that are ready from the start, its end not regarded.
    pub(super) fn ready_bytes(&self) -> usize {
        self.nr_ready * TABLE_SPAN
    }

    /// Pages under them.
    fn nr_ready_pages(&self) -> usize {
        self.nr_ready * PER_TABLE
    }

    fn is_filled(&self, table: usize) -> bool {
        self.filled[table].load(Ordering::Acquire) != 0
    }

    /// Marks a table as filled, after `first_use` if it was not ready from the start.
    fn fill(&self, table: usize, first_use: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let _one = idle::lock(&self.readying);
        if table >= self.nr_ready && !self.is_filled(table) {
            first_use()?;
        }
        self.filled[table].store(1, Ordering::Release);
        Ok(())
    }

    /// The tables that are filled, by the first page of each.
    fn filled_from(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let tables = page as usize / PER_TABLE..self.filled.len();
        tables.filter(|&table| self.is_filled(table)).map(|table| (table * PER_TABLE) as u32)
    }
}

impl Arena {
    /// Counts bytes of tables that the arena takes from the start.
    pub fn table_bytes(&self) -> u64 {
        let pages = self.tables.nr_ready_pages().min(self.pages.len() as usize);
        self.page_bytes() * pages as u64
    }

    /// Bytes of tables for a page: its state, when it was evicted, the policy's entry.
    fn page_bytes(&self) -> u64 {
        let state = self.pages.table_bytes() / u64::from(self.pages.len());
        state + Evictions::BYTES + size_of::<u64>() as u64
    }

    /// Notes that a page is about to be filled, or to be read for that, and pays for the tables
    /// that know it.
    ///
    /// # Errors
    /// The entries of its page table cannot be protected.
    pub fn note_filled(&self, page: u32) -> io::Result<()> {
        let table = page as usize / PER_TABLE;
        if self.tables.is_filled(table) {
            return Ok(());
        }
        self.tables.fill(table, || {
            self.protect_table(table)?;
            self.account().charge_anyway(self.late_bytes());
            Ok(())
        })
    }

    /// As [`super::ground::Ground`] does for those that are ready from the start. A heap's entries
    /// are none of the pager's before they are filled.
    fn protect_table(&self, table: usize) -> io::Result<()> {
        let first = (table * PER_TABLE) as u32;
        let n = (self.pages.len() - first).min(PER_TABLE as u32);
        if self.is_heap() { Ok(()) } else { self.uffd().protect(self.view().pages(first, n)) }
    }

    /// Bytes paid for a table that was not ready from the start.
    fn late_bytes(&self) -> u64 {
        self.page_bytes() * PER_TABLE as u64
    }

    /// Bytes paid for all tables that were not ready from the start.
    pub(super) fn late_table_bytes(&self) -> u64 {
        let late = self.filled_tables(self.tables.nr_ready_pages() as u32).count() as u64;
        late * self.late_bytes()
    }

    /// Lists page tables that were ever filled, by the first page of each.
    pub fn filled_tables(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.tables.filled_from(from)
    }

    /// Lists pages of a range that were ever filled, and those beside them.
    pub fn filled_pages(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let end = range.end.min(self.pages.len());
        let tables = self.filled_tables(range.start).take_while(move |&table| table < end);
        tables.flat_map(move |table| {
            table.max(range.start)..end.min(table.saturating_add(PER_TABLE as u32))
        })
    }

    /// Lists the dirty pages of a range, in order, as of now.
    pub fn dirty(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.filled_pages(range).filter(|&page| self.pages.presence(page) == Presence::Dirty)
    }
}
