//! FIFO: a ring of pages and one bit per page.

use super::Cache;

/// Simulates first in, first out.
pub struct Fifo {
    capacity: usize,
    resident: Vec<u64>,
    ring: Vec<u32>,
    /// Oldest entry of a full ring.
    oldest: usize,
}

impl Fifo {
    /// Creates an empty cache of `capacity` pages, at least one.
    pub fn new(capacity: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        Fifo { capacity, resident: Vec::new(), ring: Vec::new(), oldest: 0 }
    }

    fn insert(&mut self, page: u32) {
        if self.ring.len() < self.capacity {
            self.ring.push(page);
            return;
        }
        let evicted = std::mem::replace(&mut self.ring[self.oldest], page);
        self.resident[evicted as usize / 64] &= !(1 << (evicted % 64));
        self.oldest += 1;
        if self.oldest == self.capacity {
            self.oldest = 0;
        }
    }
}

impl Cache for Fifo {
    fn grow(&mut self, unique: u32) {
        self.resident.resize((unique as usize).div_ceil(64), 0);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        let word = &mut self.resident[page as usize / 64];
        let bit = 1 << (page % 64);
        if *word & bit != 0 {
            return true;
        }
        *word |= bit;
        self.insert(page);
        false
    }
}
