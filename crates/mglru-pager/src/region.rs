//! Which parts of a heap's reserve are in use: ranges of addresses, first fit.

use std::collections::BTreeMap;
use std::ops::Range;

/// Holds free ranges, by start; neighbours are one range.
#[derive(Clone, Debug)]
pub struct Region {
    free: BTreeMap<usize, usize>,
}

impl Region {
    /// Creates a region that is all free.
    pub fn new(all: Range<usize>) -> Self {
        Self { free: BTreeMap::from([(all.start, all.end)]) }
    }

    /// Makes a region with nothing free.
    pub fn empty() -> Self {
        Self { free: BTreeMap::new() }
    }

    /// Finds the free parts of a range.
    pub fn free_in(&self, range: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (start, end) = (range.start, range.end);
        let below = self.free.range(..end).rev().take_while(move |&(_, &e)| e > start);
        below.map(move |(&s, &e)| s.max(start)..e.min(end))
    }

    /// Finds the parts of a range that are taken, the first one first.
    pub fn taken_in(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut free: Vec<_> = self.free_in(range).collect();
        free.reverse();
        free.push(range.end..range.end);
        let mut at = range.start;
        let before = |free: Range<usize>| std::mem::replace(&mut at, free.end)..free.start;
        free.into_iter().map(before).filter(|part| !part.is_empty()).collect()
    }

    /// Takes `len` bytes whose start is a multiple of `align`.
    pub fn take(&mut self, len: usize, align: usize) -> Option<Range<usize>> {
        let fits = |(&start, &end): (&usize, &usize)| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(len)? <= end).then_some(at)
        };
        let at = self.free.iter().find_map(fits)?;
        self.take_at(at..at + len).then_some(at..at + len)
    }

    /// Takes this range. False: it is not all free.
    pub fn take_at(&mut self, range: Range<usize>) -> bool {
        let around = self.free.range(..=range.start).next_back().map(|(&s, &e)| (s, e));
        let Some((start, end)) = around.filter(|&(_, end)| end >= range.end) else { return false };
        self.free.remove(&start);
        if start < range.start {
            self.free.insert(start, range.start);
        }
        if range.end < end {
            self.free.insert(range.end, end);
        }
        true
    }

    /// Takes a range, of which parts may be taken already.
    pub fn claim(&mut self, range: Range<usize>) {
        self.give(range.clone());
        self.take_at(range);
    }

    /// Gives a range back, of which parts may be free already.
    pub fn give(&mut self, range: Range<usize>) {
        let Range { mut start, mut end } = range;
        let touching = |(&s, &e): (&usize, &usize)| (e >= start && s <= end).then_some((s, e));
        let met: Vec<_> = self.free.range(..=end).rev().map_while(touching).collect();
        for (s, e) in met {
            self.free.remove(&s);
            (start, end) = (start.min(s), end.max(e));
        }
        self.free.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(region: &Region) -> Vec<(usize, usize)> {
        region.free.iter().map(|(&s, &e)| (s, e)).collect()
    }

    #[test]
    fn ranges_are_taken_aligned_and_joined_again() {
        let mut region = Region::new(0x1000..0x9000);
        assert_eq!(region.take(0x1000, 0x1000), Some(0x1000..0x2000));
        assert_eq!(region.take(0x2000, 0x4000), Some(0x4000..0x6000));
        assert_eq!(free(&region), [(0x2000, 0x4000), (0x6000, 0x9000)]);
        assert_eq!(region.take(0x4000, 0x1000), None);
        assert!(region.take_at(0x3000..0x4000) && !region.take_at(0x3000..0x4000));
        region.give(0x3000..0x5000);
        assert_eq!(free(&region), [(0x2000, 0x5000), (0x6000, 0x9000)]);
        region.give(0x5000..0x6000);
        region.give(0x1000..0x3000);
        assert_eq!(free(&region), [(0x1000, 0x9000)]);
    }

    #[test]
    fn what_is_claimed_is_taken_whatever_it_was() {
        let mut region = Region::new(0..0x8000);
        assert!(region.take_at(0x2000..0x4000));
        region.claim(0x1000..0x6000);
        assert_eq!(free(&region), [(0, 0x1000), (0x6000, 0x8000)]);
    }

    #[test]
    fn a_range_is_free_in_part_and_taken_in_part() {
        let mut region = Region::empty();
        region.give(0x1000..0x3000);
        region.give(0x5000..0x6000);
        let found = |range| region.free_in(&range).collect::<Vec<_>>();
        assert_eq!(found(0x2000..0x5800), [0x5000..0x5800, 0x2000..0x3000]);
        assert_eq!(found(0x3000..0x5000), []);
        assert_eq!(region.taken_in(&(0..0x8000)), [0..0x1000, 0x3000..0x5000, 0x6000..0x8000]);
        assert_eq!(region.taken_in(&(0x2000..0x3000)), []);
        assert_eq!(region.taken_in(&(0x2000..0x5000)), [0x3000..0x5000; 1]);
    }

    #[test]
    fn what_is_given_twice_is_free_once() {
        let mut region = Region::new(0..0x8000);
        assert!(region.take_at(0..0x8000));
        for range in [0x1000..0x2000, 0x3000..0x4000, 0x6000..0x7000, 0..0x5000] {
            region.give(range);
        }
        assert_eq!(free(&region), [(0, 0x5000), (0x6000, 0x7000)]);
    }
}
