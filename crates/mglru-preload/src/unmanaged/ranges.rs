//! Which mappings were left to the kernel and why: a table of fixed size without a lock, for it is
//! written in the midst of mmap, which malloc and handlers of signals call. It may be wrong for a
//! moment, and where it overflows: what is resident is always asked of the kernel.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use super::reason::Reason;

/// Ranges at most; neighbours with one reason are one.
const MOST: usize = 1024;
/// The end of a range that is being written.
const BUSY: usize = 1;

/// Holds addresses with reasons.
pub struct Ranges {
    all: [Slot; MOST],
    /// How many of these were ever in use.
    used: AtomicUsize,
    overflowed: AtomicBool,
}

/// Addresses; none while the end is zero.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    reason: AtomicU8,
}

impl Slot {
    const fn new() -> Self {
        let (start, end) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { start, end, reason: AtomicU8::new(0) }
    }

    fn range(&self) -> Range<usize> {
        let end = self.end.load(Ordering::Acquire);
        self.start.load(Ordering::Relaxed)..end
    }

    fn reason(&self) -> Reason {
        Reason::of_number(self.reason.load(Ordering::Relaxed))
    }

    /// Takes a free slot.
    fn claim(&self) -> bool {
        self.end.compare_exchange(0, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn set(&self, range: &Range<usize>, reason: Reason) {
        self.start.store(range.start, Ordering::Relaxed);
        self.reason.store(reason as u8, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Release);
    }

    /// Grows by a neighbour.
    fn join(&self, range: &Range<usize>, reason: Reason) -> bool {
        let own = self.range();
        if own.end <= BUSY || self.reason() != reason {
            return false;
        }
        match (own.end == range.start, range.end == own.start) {
            (true, _) => self.end.store(range.end, Ordering::Release),
            (_, true) => self.start.store(range.start, Ordering::Release),
            _ => return false,
        }
        true
    }
}

fn meet(one: &Range<usize>, other: &Range<usize>) -> usize {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

impl Ranges {
    /// Makes an empty table.
    pub const fn new() -> Self {
        let all = [const { Slot::new() }; MOST];
        Self { all, used: AtomicUsize::new(0), overflowed: AtomicBool::new(false) }
    }

    fn used(&self) -> &[Slot] {
        &self.all[..self.used.load(Ordering::Acquire)]
    }

    /// Notes a mapping that was just made, instead of what was there.
    pub fn note(&self, range: &Range<usize>, reason: Reason) {
        self.forget(range);
        if range.is_empty() || self.used().iter().any(|slot| slot.join(range, reason)) {
            return;
        }
        match self.all.iter().position(Slot::claim) {
            Some(nth) => {
                self.all[nth].set(range, reason);
                self.used.fetch_max(nth + 1, Ordering::AcqRel);
            }
            None => self.overflowed.store(true, Ordering::Relaxed),
        }
    }

    /// Notes that a range is no longer mapped, or not so.
    pub fn forget(&self, range: &Range<usize>) {
        for slot in self.used() {
            let own = slot.range();
            if meet(&own, range) == 0 {
                continue;
            }
            match (range.start <= own.start, own.end <= range.end) {
                (true, true) => slot.end.store(0, Ordering::Release),
                (true, false) => slot.start.store(range.end, Ordering::Release),
                (false, true) => slot.end.store(range.start, Ordering::Release),
                (false, false) => {
                    slot.end.store(range.start, Ordering::Release);
                    self.note(&(range.end..own.end), slot.reason());
                }
            }
        }
    }

    /// Finds the reason of an address.
    pub fn at(&self, address: usize) -> Option<Reason> {
        let slot = self.used().iter().find(|slot| slot.range().contains(&address));
        slot.map(Slot::reason)
    }

    /// Tells how many bytes of a range have which reason.
    pub fn parts(&self, range: &Range<usize>) -> impl Iterator<Item = (Reason, usize)> {
        self.used().iter().filter_map(move |slot| {
            let bytes = meet(&slot.range(), range);
            (bytes > 0).then(|| (slot.reason(), bytes))
        })
    }

    /// Tells whether any mapping has this reason.
    pub fn has(&self, reason: Reason) -> bool {
        self.used().iter().any(|slot| slot.range().end > BUSY && slot.reason() == reason)
    }

    /// Tells whether some ranges had no room. That many there are of short ones alone.
    pub fn overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(ranges: &Ranges, range: Range<usize>) -> Vec<(Reason, usize)> {
        ranges.parts(&range).collect()
    }

    #[test]
    fn ranges_are_cut_joined_and_replaced() {
        static RANGES: Ranges = Ranges::new();
        RANGES.note(&(100..200), Reason::Hint);
        RANGES.note(&(200..300), Reason::Hint);
        RANGES.note(&(50..100), Reason::Hint);
        assert_eq!(RANGES.used_slots(), 1, "neighbours are one");
        RANGES.forget(&(120..150));
        assert_eq!(parts(&RANGES, 0..1000), [(Reason::Hint, 70), (Reason::Hint, 150)]);
        RANGES.note(&(110..160), Reason::Shared);
        assert_eq!(RANGES.at(115), Some(Reason::Shared));
        assert_eq!((RANGES.at(160), RANGES.at(300)), (Some(Reason::Hint), None));
        assert_eq!(parts(&RANGES, 155..165), [(Reason::Hint, 5), (Reason::Shared, 5)]);
        RANGES.forget(&(0..1000));
        assert!(!RANGES.has(Reason::Hint) && parts(&RANGES, 0..1000).is_empty());
    }

    impl Ranges {
        fn used_slots(&self) -> usize {
            self.used().len()
        }
    }

    #[test]
    fn a_full_table_says_so_and_has_room_again() {
        static RANGES: Ranges = Ranges::new();
        for nth in 1..=MOST {
            RANGES.note(&(nth * 100..nth * 100 + 10), Reason::Small);
        }
        assert!(!RANGES.overflowed() && RANGES.used_slots() == MOST);
        RANGES.note(&(10..20), Reason::Hint);
        assert!(RANGES.overflowed() && RANGES.at(10).is_none());
        RANGES.forget(&(100..110));
        RANGES.note(&(10..20), Reason::Hint);
        assert_eq!(RANGES.at(10), Some(Reason::Hint));
    }
}
