//! ARC (Megiddo and Modha, FAST 03, figure 4): pages seen once (T1) and more often (T2), ghosts of
//! both (B1, B2), and a target for the size of T1 that ghost hits move.
//!
//! The paper's target is a real number; here it is a fixed-point one with 20 bits after the point,
//! so that every machine computes the same.

use super::Cache;
use super::lists::Lists;

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;
/// Bits after the point of the target.
const POINT: u32 = 20;

/// Simulates ARC with a fixed-point target.
pub struct Arc {
    capacity: usize,
    lists: Lists<4>,
    /// Wanted size of T1, in 2^-20 pages.
    target: u64,
}

impl Arc {
    /// Creates an empty cache of `capacity` pages, at least one.
    pub fn new(capacity: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        // No trace has more distinct pages, and 2^32 pages in fixed point fit into the target.
        let capacity = capacity.min(1 << 32) as usize;
        Arc { capacity, lists: Lists::new(), target: 0 }
    }

    fn hit_ghost_of_t1(&mut self, page: u32) {
        let step = self.step(B2, B1);
        self.target = (self.target + step).min((self.capacity as u64) << POINT);
        self.replace(false);
        self.promote(page);
    }

    fn hit_ghost_of_t2(&mut self, page: u32) {
        let step = self.step(B1, B2);
        self.target = self.target.saturating_sub(step);
        self.replace(true);
        self.promote(page);
    }

    /// How far a hit in the ghosts `hit` moves the target: the more, the rarer they are.
    fn step(&self, other: usize, hit: usize) -> u64 {
        let one = 1 << POINT;
        let ratio = ((self.lists.len(other) as u64) << POINT) / self.lists.len(hit) as u64;
        ratio.max(one)
    }

    fn promote(&mut self, page: u32) {
        self.lists.remove(page);
        self.lists.push(T2, page);
    }

    fn insert(&mut self, page: u32) {
        let recent = self.lists.len(T1) + self.lists.len(B1);
        let all = recent + self.lists.len(T2) + self.lists.len(B2);
        if recent == self.capacity && self.lists.len(T1) == self.capacity {
            self.lists.pop(T1);
        } else if recent == self.capacity {
            self.lists.pop(B1);
            self.replace(false);
        } else if all >= self.capacity {
            if all == 2 * self.capacity {
                self.lists.pop(B2);
            }
            self.replace(false);
        }
        self.lists.push(T1, page);
    }

    /// Makes the oldest page of T1 or T2 a ghost.
    fn replace(&mut self, hit_in_b2: bool) {
        let t1 = (self.lists.len(T1) as u64) << POINT;
        let from_t1 = t1 > 0 && (t1 > self.target || (hit_in_b2 && t1 == self.target));
        let (from, to) = if from_t1 { (T1, B1) } else { (T2, B2) };
        let page = self.lists.pop(from);
        self.lists.push(to, page);
    }
}

impl Cache for Arc {
    fn grow(&mut self, unique: u32) {
        self.lists.grow(unique);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        match self.lists.queue_of(page) {
            Some(T1 | T2) => {
                self.promote(page);
                return true;
            }
            Some(B1) => self.hit_ghost_of_t1(page),
            Some(_) => self.hit_ghost_of_t2(page),
            None => self.insert(page),
        }
        false
    }
}
