//! How far away evicted pages were when they came back: how much more memory would have kept them.
//!
//! Under LRU the pages that are not in memory stand in the order in which they were evicted, the
//! last one first: a page would still be here if there were room for it and for those evicted
//! after it that are still away. That number is its distance. It is kept without a list: evictions
//! are numbered by epochs, each epoch knows how many of its pages are away, and neighbouring epochs
//! that have lost most of theirs become one.

use mglru::MemcgId;

use crate::sys::PAGE;

/// Epochs kept at most, and how fine they are: one holds no more than this share of what is away,
/// so that a distance is right to within it.
const EPOCHS: usize = 1024;
const SHARE: u64 = 256;
/// An epoch has this many pages at least: 2^32 of them are never used up.
const LEAST: u64 = 16;

/// Counts the classes of distance: four to each power of two, from one page on.
pub const CLASSES: usize = 4 * 36;

/// The class of a distance in pages, which is not above the class's bound.
fn class(pages: u64) -> usize {
    (0..CLASSES - 1).find(|&nth| pages <= bound(nth)).unwrap_or(CLASSES - 1)
}

/// Returns the largest distance of a class, pages.
pub fn bound(class: usize) -> u64 {
    let power = 1u64 << (class / 4);
    power + power * (class as u64 % 4) / 4
}

/// Counts refaults whose distance is at most `most` bytes. A class is its bound in bytes and how
/// often pages came back; the class that `most` falls in counts in proportion.
pub fn refaults_within(classes: &[(u64, u64)], most: u64) -> u64 {
    let part = |&(bound, count): &(u64, u64)| {
        let below = below(bound);
        let share = most.saturating_sub(below) as f64 / (bound - below) as f64;
        count as f64 * share.min(1.0)
    };
    classes.iter().map(part).sum::<f64>().round() as u64
}

/// Where the class of a bound begins, bytes.
fn below(bound: u64) -> u64 {
    let before = class(bound / PAGE as u64).checked_sub(1);
    before.map_or(0, |nth| self::bound(nth) * PAGE as u64)
}

/// Counts the pages that came back, by class of distance.
pub type Histogram = [u64; CLASSES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Epoch {
    /// Its first number; it goes up to the next one's.
    first: u32,
    /// Pages evicted in it that are away.
    away: u64,
}

/// Tracks the evicted pages of one group.
#[derive(Clone, Debug)]
pub struct Distances {
    /// By number, the first of them 1: 0 says that a page was not evicted.
    epochs: Vec<Epoch>,
    /// The number of the next one.
    next: u32,
    /// Pages evicted in the last one.
    evicted: u64,
    away: u64,
    /// Holds the distances of pages that came back because they were used.
    pub histogram: Histogram,
}

impl Default for Distances {
    fn default() -> Self {
        let first = Epoch { first: 1, away: 0 };
        Self { epochs: vec![first], next: 2, evicted: 0, away: 0, histogram: [0; CLASSES] }
    }
}

impl Distances {
    /// Records that a page is evicted; returns its number.
    pub fn evict(&mut self) -> u32 {
        if self.evicted >= self.most() {
            self.open();
        }
        self.evicted += 1;
        self.away += 1;
        let last = self.last();
        last.away += 1;
        last.first
    }

    /// Records that the page of a number is back. If it was used, its distance counts.
    pub fn come_back(&mut self, number: u32, used: bool) {
        let at = self.at(number);
        if used {
            let after: u64 = self.epochs[at + 1..].iter().map(|epoch| epoch.away).sum();
            // The order within an epoch is unknown: take half of it.
            let distance = after + self.epochs[at].away.div_ceil(2);
            self.histogram[class(distance)] += 1;
        }
        self.forget(number);
    }

    /// Forgets the page of a number: it is neither resident nor evicted any more.
    pub fn forget(&mut self, number: u32) {
        let at = self.at(number);
        self.epochs[at].away -= 1;
        self.away -= 1;
    }

    /// Tells whether the last page was the first of its epoch.
    pub fn is_new_epoch(&self) -> bool {
        self.evicted == 1
    }

    /// Returns the number from which on a page would be resident if the group had twice its
    /// `resident` pages: since then it belongs to the working set.
    pub fn recent(&self, resident: u64) -> u32 {
        let mut after = 0;
        let near = |epoch: &&Epoch| {
            after += epoch.away;
            after <= resident
        };
        self.epochs.iter().rev().take_while(near).last().map_or(u32::MAX, |epoch| epoch.first)
    }

    fn at(&self, number: u32) -> usize {
        self.epochs.partition_point(|epoch| epoch.first <= number) - 1
    }

    fn last(&mut self) -> &mut Epoch {
        self.epochs.last_mut().expect("there is always one")
    }

    /// Pages of one epoch at most.
    fn most(&self) -> u64 {
        (self.away / SHARE).max(LEAST)
    }

    fn open(&mut self) {
        if self.epochs.len() == EPOCHS {
            self.join();
        }
        self.epochs.push(Epoch { first: self.next, away: 0 });
        self.next += 1;
        self.evicted = 0;
    }

    /// Neighbours that together are not too large become one.
    fn join(&mut self) {
        let most = self.most();
        let mut joined: Vec<Epoch> = Vec::with_capacity(EPOCHS);
        for epoch in self.epochs.drain(..) {
            match joined.last_mut() {
                Some(before) if before.away + epoch.away <= most => before.away += epoch.away,
                _ => joined.push(epoch),
            }
        }
        self.epochs = joined;
    }
}

/// Holds the distances of all groups.
#[derive(Debug, Default)]
pub struct AllDistances(Vec<Distances>);

impl AllDistances {
    /// Returns the distances of one group.
    pub fn of(&mut self, memcg: MemcgId) -> &mut Distances {
        if self.0.len() <= memcg.index() {
            self.0.resize_with(memcg.index() + 1, Distances::default);
        }
        &mut self.0[memcg.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, VecDeque};

    #[test]
    fn a_class_is_bounded_by_its_bound() {
        assert_eq!([1, 2, 5, 6, 100, 128].map(|n| bound(class(n))), [1, 2, 5, 6, 112, 128]);
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn a_class_is_shared_in_proportion() {
        assert_eq!([2 << 20, 5 << 18].map(below), [7 << 18, 1 << 20]);
        assert_eq!(refaults_within(&[(2 << 20, 100)], 15 << 17), 50);
        assert_eq!(refaults_within(&[(4096, 10), (8192, 5)], 4096), 10);
    }

    /// Pages drawn with a skew: the smallest of `tries` random numbers below `n`.
    fn skewed(n: u32, tries: u32) -> impl FnMut() -> u32 {
        let mut x = 1u64;
        move || {
            let mut draw = || {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (x >> 33) as u32 % n
            };
            (0..tries).map(|_| draw()).min().unwrap()
        }
    }

    /// An exact LRU cache under `accesses`: its refaults, and their distances.
    fn lru(size: usize, accesses: impl Iterator<Item = u32>) -> (u64, Distances) {
        let (mut cache, mut away) = (VecDeque::new(), HashMap::new());
        let (mut refaults, mut distances) = (0, Distances::default());
        for page in accesses {
            if let Some(at) = cache.iter().position(|&p| p == page) {
                cache.remove(at);
            } else if let Some(number) = away.remove(&page) {
                refaults += 1;
                distances.come_back(number, true);
            }
            cache.push_front(page);
            if cache.len() > size {
                away.insert(cache.pop_back().unwrap(), distances.evict());
            }
        }
        (refaults, distances)
    }

    #[test]
    fn under_lru_the_distances_predict_what_more_memory_would_have_saved() {
        for tries in [1, 3] {
            let run = |size| {
                let mut next = skewed(4000, tries);
                lru(size, (0..100_000).map(move |_| next()))
            };
            let (refaults, distances) = run(400);
            for more in [64, 128, 512, 1024, 2048] {
                let saved: u64 = distances.histogram[..=class(more)].iter().sum();
                let (left, _) = run(400 + more as usize);
                let predicted = (refaults - saved) as f64;
                let off = (predicted - left as f64).abs() / refaults as f64;
                assert!(
                    off < 0.02,
                    "{more} pages more: {predicted} refaults predicted, {left} made"
                );
            }
        }
    }

    #[test]
    fn a_loop_comes_back_at_its_own_length() {
        let (refaults, distances) = lru(300, (0..5000).map(|n| n % 500));
        assert_eq!(refaults, 4500);
        let near: u64 = distances.histogram[..class(180)].iter().sum();
        let far: u64 = distances.histogram[..=class(224)].iter().sum();
        assert_eq!((near, far), (0, 4500));
    }

    #[test]
    fn epochs_stay_few_whatever_is_evicted() {
        let mut distances = Distances::default();
        let mut away = VecDeque::new();
        for n in 0..400_000 {
            away.push_back(distances.evict());
            if n % 3 > 0 {
                let number = away.pop_front().unwrap();
                distances.come_back(number, true);
            }
        }
        assert!(distances.epochs.len() <= EPOCHS);
        assert_eq!(distances.away, away.len() as u64);
        let counted: u64 = distances.epochs.iter().map(|epoch| epoch.away).sum();
        assert_eq!(counted, distances.away);
        assert!(away.drain(..).all(|number| number > 0 && number < distances.next));
    }

    #[test]
    fn what_left_last_is_recent() {
        let mut distances = Distances::default();
        let numbers: Vec<u32> = (0..1000).map(|_| distances.evict()).collect();
        let recent = distances.recent(100);
        let near = numbers.iter().filter(|&&number| number >= recent).count();
        assert!((80..=100).contains(&near), "{near}");
        assert_eq!(distances.recent(1000), 1);
        assert_eq!(distances.recent(0), u32::MAX);
    }
}
