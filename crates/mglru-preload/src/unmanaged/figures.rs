//! Bytes by reason.

use std::sync::atomic::{AtomicU64, Ordering};

use super::reason::{ALL, REASONS, Reason};

/// Counts bytes by reason, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures([u64; REASONS]);

impl Figures {
    /// Counts bytes; what is the pager's own is not counted.
    pub fn add(&mut self, reason: Reason, bytes: u64) {
        self.0.get_mut(reason as usize).into_iter().for_each(|all| *all += bytes);
    }

    /// Counts bytes of a range by the reasons of its parts; what has none has `other`.
    pub fn spread(
        &mut self,
        bytes: u64,
        len: usize,
        parts: impl Iterator<Item = (Reason, usize)>,
        other: Reason,
    ) {
        let mut left = bytes;
        for (reason, part) in parts {
            let share = (u128::from(bytes) * part as u128 / len.max(1) as u128) as u64;
            self.add(reason, share.min(left));
            left -= share.min(left);
        }
        self.add(other, left);
    }

    /// Returns the bytes of one reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// Sums all but the page cache's, which the kernel takes back.
    pub fn total(&self) -> u64 {
        self.0.iter().sum::<u64>() - self.of(Reason::File)
    }
}

/// Holds figures that one thread writes and any reads.
pub struct Shown([AtomicU64; REASONS]);

impl Shown {
    /// Makes figures that are all 0.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; REASONS])
    }

    /// Reads the figures.
    pub fn get(&self) -> Figures {
        let mut figures = Figures::default();
        ALL.iter().for_each(|&r| figures.add(r, self.0[r as usize].load(Ordering::Relaxed)));
        figures
    }

    /// Replaces the figures.
    pub fn set(&self, figures: &Figures) {
        ALL.iter().for_each(|&r| self.0[r as usize].store(figures.of(r), Ordering::Relaxed));
    }

    /// Keeps the greatest sum with its parts, and the most of the page cache's.
    pub fn raise(&self, now: &Figures) {
        let before = self.get();
        let mut peak = if now.total() > before.total() { *now } else { before };
        peak.0[Reason::File as usize] = now.of(Reason::File).max(before.of(Reason::File));
        self.set(&peak);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spread_and_what_is_own_is_not_counted() {
        let mut figures = Figures::default();
        let parts = [(Reason::Own, 250), (Reason::Hint, 500)];
        figures.spread(100, 1000, parts.into_iter(), Reason::Raw);
        assert_eq!([Reason::Hint, Reason::Raw].map(|r| figures.of(r)), [50, 25]);
        let stale = [(Reason::Small, 900), (Reason::Shared, 900)];
        figures.spread(10, 1000, stale.into_iter(), Reason::Raw);
        assert_eq!(figures.total(), 85, "never more than there is");
    }

    #[test]
    fn peaks_are_of_one_moment_but_for_files() {
        let shown = Shown::new();
        for (hint, brk, file) in [(5, 1, 9), (1, 8, 2), (6, 0, 3)] {
            let mut now = Figures::default();
            now.add(Reason::Hint, hint);
            now.add(Reason::Brk, brk);
            now.add(Reason::File, file);
            shown.raise(&now);
        }
        let peak = shown.get();
        let of = [Reason::Hint, Reason::Brk, Reason::File].map(|r| peak.of(r));
        assert_eq!((of, peak.total()), ([1, 8, 9], 9));
    }
}
