//! SIEVE (Zhang et al., NSDI 24): a queue in order of insertion that hits never reorder, and a
//! hand that moves from old to new, clears visited bits and evicts the first page without one.
//!
//! The queue is an array with holes. New pages go to its end, so its last entry is always a page,
//! and the hand reads forward; when the array is full, its pages move to the front.

use super::Cache;

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;
const VISITED: u8 = 2;
/// An entry whose page was evicted.
const HOLE: u32 = u32::MAX;
/// Entries of the shortest queue.
const QUEUE_MIN: usize = 64;

/// Simulates SIEVE.
pub struct Sieve {
    capacity: usize,
    resident: usize,
    state: Vec<u8>,
    queue: Vec<u32>,
    queue_limit: usize,
    hand: usize,
}

impl Sieve {
    /// Creates an empty cache of `capacity` pages, at least one.
    pub fn new(capacity: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        Sieve {
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            resident: 0,
            state: Vec::new(),
            queue: Vec::new(),
            queue_limit: QUEUE_MIN,
            hand: 0,
        }
    }

    fn insert(&mut self, page: u32) {
        if self.resident < self.capacity {
            self.resident += 1;
        } else {
            self.evict();
        }
        if self.queue.len() == self.queue_limit {
            self.compact();
        }
        self.state[page as usize] = RESIDENT;
        self.queue.push(page);
    }

    fn evict(&mut self) {
        loop {
            let slot = &mut self.queue[self.hand];
            let page = *slot;
            if page != HOLE && self.state[page as usize] == RESIDENT {
                self.state[page as usize] = ABSENT;
                *slot = HOLE;
                self.advance();
                return;
            }
            if page != HOLE {
                self.state[page as usize] = RESIDENT;
            }
            self.advance();
        }
    }

    /// From the newest page the hand goes to the oldest, before a newer one is inserted.
    fn advance(&mut self) {
        self.hand = if self.hand + 1 == self.queue.len() { 0 } else { self.hand + 1 };
    }

    #[cold]
    fn compact(&mut self) {
        let before_hand = &self.queue[..self.hand];
        let hand = before_hand.iter().filter(|&&page| page != HOLE).count();
        self.queue.retain(|&page| page != HOLE);
        self.hand = hand;
        self.queue_limit = (self.queue.len() * 2).max(QUEUE_MIN);
    }
}

impl Cache for Sieve {
    fn grow(&mut self, unique: u32) {
        self.state.resize(unique as usize, ABSENT);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        let state = &mut self.state[page as usize];
        if *state != ABSENT {
            *state = VISITED;
            return true;
        }
        self.insert(page);
        false
    }
}
