//! LRU without a list: the log of requests is the queue.
//!
//! A page's place in the recency order is the position of its last request in the log, so a hit
//! writes one word and one log entry, in place of relinking four neighbours. Eviction walks the
//! log from its old end; an entry counts only if it is still its page's last request. The walk
//! passes each request once, and its loads do not depend on each other, unlike those of a list.
//!
//! The log is a ring. Should it fill up, only the entries that count are kept.

use super::Cache;

/// The page is not in the cache.
const ABSENT: u32 = u32::MAX;
/// Entries of the smallest ring.
const LOG_MIN: usize = 1 << 12;
/// Ring entries per page in the cache: dropping dead entries costs each request 1/3 of a step.
const LOG_PER_PAGE: usize = 4;
/// Positions are below [`ABSENT`], and the ring holds twice the pages a numbering can have.
const LOG_MAX: usize = 1 << 31;

/// Evicts the least recently used page.
pub struct Lru {
    capacity: usize,
    resident: usize,
    /// Per page: position of its last request in the log, or [`ABSENT`].
    last: Vec<u32>,
    /// A ring; its length is a power of two.
    log: Vec<u32>,
    /// Where the next request goes.
    head: usize,
    /// The oldest request that may count; equal to `head` when there is none.
    tail: usize,
}

impl Lru {
    /// Creates an empty cache of `capacity` pages, at least one.
    pub fn new(capacity: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        Lru {
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            resident: 0,
            last: Vec::new(),
            log: vec![0; LOG_MIN],
            head: 0,
            tail: 0,
        }
    }

    #[inline]
    fn after(&self, position: usize) -> usize {
        (position + 1) & (self.log.len() - 1)
    }

    #[inline]
    fn evict(&mut self) {
        loop {
            let at = self.tail;
            let page = self.log[at] as usize;
            self.tail = self.after(at);
            if self.last[page] as usize == at {
                self.last[page] = ABSENT;
                return;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        let wanted = (self.resident * LOG_PER_PAGE).next_power_of_two();
        let size = wanted.clamp(self.log.len(), LOG_MAX);
        let mut kept = Vec::with_capacity(size);
        while self.tail != self.head {
            let page = self.log[self.tail];
            if self.last[page as usize] as usize == self.tail {
                self.last[page as usize] = kept.len() as u32;
                kept.push(page);
            }
            self.tail = self.after(self.tail);
        }
        (self.tail, self.head) = (0, kept.len());
        kept.resize(size, 0);
        self.log = kept;
    }
}

impl Cache for Lru {
    fn grow(&mut self, unique: u32) {
        self.last.resize(unique as usize, ABSENT);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        let at = self.head;
        self.head = self.after(at);
        self.log[at] = page;
        let before = std::mem::replace(&mut self.last[page as usize], at as u32);
        let hit = before != ABSENT;
        if !hit {
            if self.resident < self.capacity {
                self.resident += 1;
            } else {
                self.evict();
            }
        }
        if self.after(self.head) == self.tail {
            self.compact();
        }
        hit
    }
}
