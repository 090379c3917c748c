//! The two optima. Both evict the page whose next request is farthest away; they differ in what a
//! miss must do:
//!
//! - `min` (Belady): the missing page must be inserted, as a page fault must.
//! - `min-bypass`: the missing page may be refused, as a read into a caller's buffer may; never
//!   more misses than `min`.
//!
//! The pages in the cache are a set of positions: where each is asked for next. Positions up to
//! the current one are stale and need no removal, for they are never the largest while a later one
//! is in. Pages that are never asked for again need only be counted.

use mglru_workload::trace::Dense;

/// The page is not asked for again.
const NEVER: u32 = u32::MAX;

/// Says whether a missing page may stay out of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// Inserts every missing page (`min`).
    Forbidden,
    /// Allows the cache to refuse a missing page (`min-bypass`).
    Allowed,
}

/// Holds for each request the position of the next request for the same page.
pub struct NextUses(Vec<u32>);

impl NextUses {
    /// Looks up every request's successor.
    pub fn of(trace: &Dense) -> Self {
        assert!(trace.ids.len() < NEVER as usize, "positions are 32-bit numbers");
        let mut next = vec![NEVER; trace.unique as usize];
        let mut uses = vec![NEVER; trace.ids.len()];
        for (at, &page) in trace.ids.iter().enumerate().rev() {
            uses[at] = std::mem::replace(&mut next[page as usize], at as u32);
        }
        NextUses(uses)
    }
}

/// Counts misses of an optimal cache of `capacity` pages, at least one.
pub fn min_misses(trace: &Dense, uses: &NextUses, capacity: u64, bypass: Bypass) -> u64 {
    assert!(capacity > 0, "a cache has at least one page");
    let mut cache = Optimal {
        free: capacity,
        never_again: 0,
        resident: vec![0; (trace.unique as usize).div_ceil(64)],
        coming: Positions::new(trace.ids.len()),
    };
    let mut misses = 0;
    for (&page, &next) in trace.ids.iter().zip(&uses.0) {
        if cache.holds(page) {
            cache.renew(page, next);
        } else {
            misses += 1;
            cache.admit(page, next, &trace.ids, bypass);
        }
    }
    misses
}

struct Optimal {
    free: u64,
    /// Pages in the cache that are never asked for again: the first to go.
    never_again: u64,
    resident: Vec<u64>,
    coming: Positions,
}

impl Optimal {
    #[inline]
    fn holds(&self, page: u32) -> bool {
        self.resident[page as usize / 64] >> (page % 64) & 1 != 0
    }

    #[inline]
    fn renew(&mut self, page: u32, next: u32) {
        if next == NEVER {
            self.resident[page as usize / 64] &= !(1 << (page % 64));
            self.never_again += 1;
        } else {
            self.coming.insert(next);
        }
    }

    #[inline]
    fn admit(&mut self, page: u32, next: u32, ids: &[u32], bypass: Bypass) {
        if self.free > 0 {
            self.free -= 1;
        } else if self.never_again > 0 {
            self.never_again -= 1;
        } else {
            let farthest = self.coming.largest();
            if bypass == Bypass::Allowed && next > farthest {
                return;
            }
            self.coming.remove(farthest);
            let evicted = ids[farthest as usize];
            self.resident[evicted as usize / 64] &= !(1 << (evicted % 64));
        }
        self.resident[page as usize / 64] |= 1 << (page % 64);
        self.renew(page, next);
    }
}

/// A set of positions in the trace: a tree of bits, 64 children a word, whose inner bits say which
/// words below are not empty.
struct Positions {
    /// Bottom first; the top has one word.
    levels: Vec<Vec<u64>>,
}

impl Positions {
    fn new(limit: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = limit;
        loop {
            words = words.div_ceil(64).max(1);
            levels.push(vec![0; words]);
            if words == 1 {
                return Positions { levels };
            }
        }
    }

    #[inline]
    fn insert(&mut self, position: u32) {
        let mut at = position as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            at /= 64;
        }
    }

    #[inline]
    fn remove(&mut self, position: u32) {
        let mut at = position as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The largest position of a set that is not empty.
    #[inline]
    fn largest(&self) -> u32 {
        let step = |at: usize, level: &Vec<u64>| at * 64 + level[at].ilog2() as usize;
        self.levels.iter().rev().fold(0, step) as u32
    }
}
