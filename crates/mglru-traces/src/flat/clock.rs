//! CLOCK with one reference bit: a new page takes the place of the evicted one behind the hand,
//! with its bit clear; a hit sets the bit; the hand clears bits until it finds a clear one. The
//! same as FIFO with reinsertion.

use super::Cache;

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;
const REFERENCED: u8 = 2;

/// Simulates CLOCK with one bit per page.
pub struct Clock {
    capacity: usize,
    state: Vec<u8>,
    ring: Vec<u32>,
    hand: usize,
}

impl Clock {
    /// Creates an empty cache of `capacity` pages, at least one.
    pub fn new(capacity: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        Clock { capacity, state: Vec::new(), ring: Vec::new(), hand: 0 }
    }

    fn insert(&mut self, page: u32) {
        self.state[page as usize] = RESIDENT;
        if self.ring.len() < self.capacity {
            self.ring.push(page);
            return;
        }
        loop {
            let slot = &mut self.ring[self.hand];
            self.hand = if self.hand + 1 == self.capacity { 0 } else { self.hand + 1 };
            let state = &mut self.state[*slot as usize];
            if *state == RESIDENT {
                *state = ABSENT;
                *slot = page;
                return;
            }
            *state = RESIDENT;
        }
    }
}

impl Cache for Clock {
    fn grow(&mut self, unique: u32) {
        self.state.resize(unique as usize, ABSENT);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        let state = &mut self.state[page as usize];
        if *state != ABSENT {
            *state = REFERENCED;
            return true;
        }
        self.insert(page);
        false
    }
}
