//! A set of small numbers that grows, as a bitmap under summary bitmaps: a bit of a level says that
//! the word below it is not empty. Finding the next member costs one word a level, however far it
//! is; used for dirty pages of files and for free swap slots.

const BITS: u64 = u64::BITS as u64;

/// Holds a growing set of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitTree {
    /// `levels[0]` holds the members; the last level is one word.
    levels: Vec<Vec<u64>>,
    count: u64,
}

impl Default for BitTree {
    fn default() -> Self {
        Self { levels: vec![vec![0]], count: 0 }
    }
}

impl BitTree {
    /// Creates the empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Members.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Tells whether `n` is a member.
    pub fn contains(&self, n: u64) -> bool {
        let word = self.levels[0].get((n / BITS) as usize);
        word.is_some_and(|word| word >> (n % BITS) & 1 == 1)
    }

    /// Adds `n`; false if it was there.
    pub fn insert(&mut self, n: u64) -> bool {
        if self.contains(n) {
            return false;
        }
        self.grow_to(n);
        self.count += 1;
        let mut at = n;
        for level in &mut self.levels {
            let word = &mut level[(at / BITS) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (at % BITS);
            if !was_empty {
                break;
            }
            at /= BITS;
        }
        true
    }

    /// Removes `n`; false if it was not there.
    pub fn remove(&mut self, n: u64) -> bool {
        if !self.contains(n) {
            return false;
        }
        self.count -= 1;
        let mut at = n;
        for level in &mut self.levels {
            let word = &mut level[(at / BITS) as usize];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                break;
            }
            at /= BITS;
        }
        true
    }

    /// Returns the smallest member that is `from` or more.
    pub fn next(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for height in 0..self.levels.len() {
            if let Some(found) = member_in_word(&self.levels[height], at) {
                return Some(self.descend(height, found));
            }
            at = at / BITS + 1;
        }
        None
    }

    /// Finds the first run of members at or after `from`: (first, length), at most `max` long.
    pub fn next_run(&self, from: u64, max: u64) -> Option<(u64, u64)> {
        let first = self.next(from)?;
        let mut length = 0;
        while length < max {
            let at = first + length;
            let Some(word) = self.levels[0].get((at / BITS) as usize) else { break };
            let run = u64::from((word >> (at % BITS)).trailing_ones());
            length += run;
            if run == 0 || (at + run) % BITS != 0 {
                break;
            }
        }
        Some((first, length.min(max)))
    }

    /// Returns the largest member.
    pub fn last(&self) -> Option<u64> {
        let below_last = |at: u64, level: &Vec<u64>| {
            at * BITS + u64::from(u64::BITS - 1 - level[at as usize].leading_zeros())
        };
        (self.count > 0).then(|| self.levels.iter().rev().fold(0, below_last))
    }

    /// Returns the host memory of the set, bytes.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<u64>()).sum()
    }

    fn grow_to(&mut self, n: u64) {
        let mut words = n / BITS + 1;
        let mut height = 0;
        loop {
            if height == self.levels.len() {
                let below_is_used = self.levels[height - 1].iter().any(|word| *word != 0);
                self.levels.push(vec![u64::from(below_is_used)]);
            }
            let level = &mut self.levels[height];
            if (level.len() as u64) < words {
                level.resize(words as usize, 0);
            }
            if level.len() == 1 {
                return;
            }
            words = (level.len() as u64).div_ceil(BITS);
            height += 1;
        }
    }

    fn descend(&self, height: usize, mut at: u64) -> u64 {
        for level in self.levels[..height].iter().rev() {
            at = at * BITS + u64::from(level[at as usize].trailing_zeros());
        }
        at
    }
}

/// The first bit set at or after `at`, in the word of `at`.
fn member_in_word(level: &[u64], at: u64) -> Option<u64> {
    let word = level.get((at / BITS) as usize)? >> (at % BITS);
    (word != 0).then(|| at + u64::from(word.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mglru_workload::rng::Rng;

    use super::*;

    fn naive_run(set: &BTreeSet<u64>, from: u64, max: u64) -> Option<(u64, u64)> {
        let first = *set.range(from..).next()?;
        let length = (0..max).take_while(|i| set.contains(&(first + i))).count();
        Some((first, length as u64))
    }

    #[test]
    fn agrees_with_an_ordered_set() {
        for (range, density) in [(70, 3), (5_000, 2), (300_000, 50), (20_000_000, 1_000)] {
            let (mut tree, mut set) = (BitTree::new(), BTreeSet::new());
            let mut rng = Rng::new(range, 0);
            for _ in 0..20_000 {
                let n = rng.below(range) / density * density + rng.below(density.min(2));
                match rng.below(3) {
                    0 => assert_eq!(tree.remove(n), set.remove(&n)),
                    _ => assert_eq!(tree.insert(n), set.insert(n)),
                }
                let (from, max) = (rng.below(range + 100), 1 + rng.below(200));
                assert_eq!(tree.next_run(from, max), naive_run(&set, from, max));
                assert_eq!(tree.contains(from), set.contains(&from));
            }
            assert_eq!(tree.count(), set.len() as u64);
            assert_eq!(tree.last(), set.last().copied());
        }
    }

    #[test]
    fn runs_cross_words_and_stop_at_the_limit() {
        let mut tree = BitTree::new();
        (60..200).for_each(|n| assert!(tree.insert(n)));
        assert_eq!(tree.next_run(0, 1_000), Some((60, 140)));
        assert_eq!(tree.next_run(0, 68), Some((60, 68)));
        assert_eq!(tree.next_run(100, 320), Some((100, 100)));
        assert_eq!(tree.next_run(200, 320), None);
    }

    #[test]
    fn a_large_file_costs_an_eighth_of_a_byte_per_page() {
        let mut tree = BitTree::new();
        tree.insert(6_000_000);
        assert_eq!(tree.next(0), Some(6_000_000));
        assert!(tree.bytes() < 6_000_000 / 8 * 21 / 20 + 64, "{}", tree.bytes());
    }
}
