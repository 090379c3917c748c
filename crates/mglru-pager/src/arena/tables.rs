//! The tables that know the pages of an arena: made ready, and paid for, as they are filled.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Arena;
use crate::pages::Presence;
use crate::sys::heap::TABLE_SPAN;
use crate::sys::{PAGE, idle};

/// Gives the number of pages under one page table.
pub const PER_TABLE: usize = TABLE_SPAN / PAGE;

impl Arena {
    /// Bytes of tables it takes from the start.
    pub fn table_bytes(&self) -> u64 {
        let pages = (self.nr_ready * PER_TABLE).min(self.pages.len() as usize);
        self.page_bytes() * pages as u64
    }

    /// Bytes of tables for a page: its state, when it was evicted, the policy's entry.
    fn page_bytes(&self) -> u64 {
        let state = self.pages.table_bytes() / u64::from(self.pages.len());
        state + (size_of::<AtomicU32>() + size_of::<u64>()) as u64
    }

    /// A page is about to be filled, or to be read for that: the tables that know it are paid for.
    ///
    /// # Errors
    /// The entries of its page table cannot be protected.
    pub fn note_filled(&self, page: u32) -> io::Result<()> {
        let table = page as usize / PER_TABLE;
        if self.tables[table].load(Ordering::Acquire) == 0 {
            self.make_ready(table)?;
        }
        Ok(())
    }

    fn make_ready(&self, table: usize) -> io::Result<()> {
        let _one = idle::lock(&self.readying);
        if table >= self.nr_ready && self.tables[table].load(Ordering::Acquire) == 0 {
            self.protect_table(table)?;
            self.account.charge_anyway(self.late_bytes());
        }
        self.tables[table].store(1, Ordering::Release);
        Ok(())
    }

    /// As [`Ground::shared`] does for those that are ready from the start. A heap's entries are
    /// none of the pager's before they are filled.
    fn protect_table(&self, table: usize) -> io::Result<()> {
        let first = (table * PER_TABLE) as u32;
        let n = (self.pages.len() - first).min(PER_TABLE as u32);
        if self.is_heap() { Ok(()) } else { self.uffd.protect(self.view.pages(first, n)) }
    }

    /// Bytes paid for a table that was not ready from the start.
    fn late_bytes(&self) -> u64 {
        self.page_bytes() * PER_TABLE as u64
    }

    /// The arena is gone, with its tables.
    pub fn uncharge_tables(&self) {
        let late = self.filled_tables((self.nr_ready * PER_TABLE) as u32).count() as u64;
        self.account.uncharge(late * self.late_bytes());
    }

    /// Page tables that were ever filled, by the first page of each.
    pub fn filled_tables(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let filled = |table: &usize| self.tables[*table].load(Ordering::Acquire) != 0;
        let tables = (from as usize / PER_TABLE..self.tables.len()).filter(filled);
        tables.map(|table| (table * PER_TABLE) as u32)
    }

    /// Pages of a range that were ever filled, and those beside them.
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
