//! S3-FIFO as the paper's Algorithm 1 has it (Yang et al., SOSP 23), not any later revision.
//!
//! Small queue: a tenth of the cache (rounded down, at least one page); main queue: the rest;
//! ghost queue: as many entries as the main queue has pages. Counters stop at 3. A page leaves the
//! small queue for the main one when its counter exceeds 1 (room is made first, the counter is
//! cleared), else it becomes a ghost; a request for a ghost inserts the page into the main queue.
//! The main queue reinserts pages whose counter is not 0 and takes 1 off. A cache of one page has
//! no main queue and is FIFO.

use super::Cache;
use super::lists::Lists;

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;
const COUNT_MAX: u8 = 3;
/// The small queue is 1/10 of the cache.
const SMALL_SHARE: usize = 10;

/// Simulates S3-FIFO, the variant of the SOSP 23 paper.
pub struct S3Fifo {
    capacity: usize,
    small_target: usize,
    main_capacity: usize,
    lists: Lists<3>,
    count: Vec<u8>,
}

impl S3Fifo {
    /// Creates an empty cache of `capacity` pages, at least one.
    pub fn new(capacity: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        let small_target = (capacity / SMALL_SHARE).max(1);
        S3Fifo {
            capacity,
            small_target,
            main_capacity: capacity - small_target,
            lists: Lists::new(),
            count: Vec::new(),
        }
    }

    fn insert(&mut self, page: u32) {
        let was_ghost = self.lists.queue_of(page) == Some(GHOST);
        if was_ghost {
            self.lists.remove(page);
        }
        while self.lists.len(SMALL) + self.lists.len(MAIN) >= self.capacity {
            if self.lists.len(SMALL) >= self.small_target || self.lists.len(MAIN) == 0 {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
        self.count[page as usize] = 0;
        let queue = if was_ghost && self.main_capacity > 0 { MAIN } else { SMALL };
        self.lists.push(queue, page);
    }

    fn evict_small(&mut self) {
        while self.lists.len(SMALL) > 0 {
            let page = self.lists.pop(SMALL);
            let count = std::mem::take(&mut self.count[page as usize]);
            if count <= 1 || self.main_capacity == 0 {
                self.haunt(page);
                return;
            }
            if self.lists.len(MAIN) >= self.main_capacity {
                self.evict_main();
            }
            self.lists.push(MAIN, page);
        }
    }

    fn evict_main(&mut self) {
        while self.lists.len(MAIN) > 0 {
            let page = self.lists.pop(MAIN);
            if self.count[page as usize] == 0 {
                return;
            }
            self.count[page as usize] -= 1;
            self.lists.push(MAIN, page);
        }
    }

    fn haunt(&mut self, page: u32) {
        self.lists.push(GHOST, page);
        if self.lists.len(GHOST) > self.main_capacity {
            self.lists.pop(GHOST);
        }
    }
}

impl Cache for S3Fifo {
    fn grow(&mut self, unique: u32) {
        self.lists.grow(unique);
        self.count.resize(unique as usize, 0);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        if matches!(self.lists.queue_of(page), Some(SMALL | MAIN)) {
            let count = &mut self.count[page as usize];
            *count = (*count + 1).min(COUNT_MAX);
            return true;
        }
        self.insert(page);
        false
    }
}
