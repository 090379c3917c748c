//! How many faults there were, of which kind, and how long they took.

use std::sync::atomic::{AtomicU64, Ordering};

/// Names the kind of access that faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fills a page that never held anything.
    Minor,
    /// Reads the page's content.
    Major,
    /// Unpacks the page from the compressed pool.
    Zswap,
    /// Takes back a staged page, on its way out, that is used again.
    Limbo,
    /// Serves the first store to a clean page.
    Protect,
}

impl Kind {
    /// Lists all kinds, in order.
    pub const ALL: [Self; 5] = [Self::Minor, Self::Major, Self::Zswap, Self::Limbo, Self::Protect];

    /// Returns the name that metrics give it.
    pub fn name(self) -> &'static str {
        ["minor", "major", "zswap", "limbo", "wp"][self as usize]
    }
}

/// Counts the classes of duration: below 1 µs, below 2 µs, and so on; the last has no bound.
pub const CLASSES: usize = 25;

/// The class that a duration falls in, ns.
fn class(ns: u64) -> usize {
    let us = ns / 1000;
    ((u64::BITS - us.leading_zeros()) as usize).min(CLASSES - 1)
}

/// Counts the durations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Counts faults by class.
    pub counts: [u64; CLASSES],
    /// Sums up durations, ns.
    pub sum: u64,
}

impl Durations {
    /// Counts the faults.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Counts the faults of one group, by kind.
#[derive(Debug, Default)]
pub struct Faults {
    counts: [[AtomicU64; CLASSES]; Kind::ALL.len()],
    sums: [AtomicU64; Kind::ALL.len()],
}

impl Faults {
    /// Counts a fault and how long it took, ns.
    pub fn note(&self, kind: Kind, ns: u64) {
        self.counts[kind as usize][class(ns)].fetch_add(1, Ordering::Relaxed);
        self.sums[kind as usize].fetch_add(ns, Ordering::Relaxed);
    }

    /// Adds what there was of each kind.
    pub fn add_to(&self, all: &mut [Durations; Kind::ALL.len()]) {
        for ((into, counts), sum) in all.iter_mut().zip(&self.counts).zip(&self.sums) {
            into.sum += sum.load(Ordering::Relaxed);
            for (into, count) in into.counts.iter_mut().zip(counts) {
                *into += count.load(Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_falls_in_the_class_below_whose_bound_it_is() {
        assert_eq!([0, 999, 1000, 1999, 2000, 4_000_000].map(class), [0, 0, 1, 1, 2, 12]);
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn groups_add_up() {
        let (a, b) = (Faults::default(), Faults::default());
        a.note(Kind::Major, 1500);
        b.note(Kind::Major, 500);
        b.note(Kind::Protect, 7);
        let mut all = [Durations::default(); Kind::ALL.len()];
        a.add_to(&mut all);
        b.add_to(&mut all);
        assert_eq!((all[1].count(), all[1].sum, all[1].counts[1]), (2, 2000, 1));
        assert_eq!(all.map(|d| d.count()), [0, 2, 0, 0, 1]);
    }
}
