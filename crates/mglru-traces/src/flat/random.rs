//! Random replacement: the victim is drawn from a seeded generator, so a run can be repeated.

use super::Cache;

/// Evicts a page at random.
pub struct Random {
    capacity: usize,
    resident: Vec<bool>,
    slots: Vec<u32>,
    state: u64,
}

impl Random {
    /// Creates an empty cache of `capacity` pages, at least one; `seed` settles all draws.
    pub fn new(capacity: u64, seed: u64) -> Self {
        assert!(capacity > 0, "a cache has at least one page");
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        Random { capacity, resident: Vec::new(), slots: Vec::new(), state: seed }
    }

    /// A number below `limit`, from SplitMix64 and a multiplication.
    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * limit as u128) >> 64) as usize
    }
}

impl Cache for Random {
    fn grow(&mut self, unique: u32) {
        self.resident.resize(unique as usize, false);
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        if std::mem::replace(&mut self.resident[page as usize], true) {
            return true;
        }
        if self.slots.len() < self.capacity {
            self.slots.push(page);
        } else {
            let victim = self.below(self.capacity);
            let evicted = std::mem::replace(&mut self.slots[victim], page);
            self.resident[evicted as usize] = false;
        }
        false
    }
}
