//! When each page of an arena was evicted.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::table::Table;

/// The number of each page's eviction; 0: it was not evicted, or came back. The policy writes it
/// ([`ForPolicy`](super::ForPolicy)), faults read it.
pub(super) struct Evictions(Table<AtomicU32>);

impl Evictions {
    /// Bytes for a page.
    pub(super) const BYTES: u64 = size_of::<AtomicU32>() as u64;

    pub(super) fn new(nr_pages: u32) -> io::Result<Self> {
        Ok(Self(Table::new(nr_pages as usize)?))
    }

    pub(super) fn number(&self, page: u32) -> u32 {
        self.0[page as usize].load(Ordering::Acquire)
    }

    /// Notes a number and returns the one before.
    pub(super) fn set(&self, page: u32, number: u32) -> u32 {
        self.0[page as usize].swap(number, Ordering::AcqRel)
    }
}
