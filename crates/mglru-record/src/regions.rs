//! Tells which file's page is mapped at an address.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Log2 of a page's bytes.
const PAGE_SHIFT: u32 = 12;

/// Holds the mappings of files of one process, by page. Memory that is in none is the process's
/// own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    by_start: BTreeMap<u64, Region>,
    /// Pages of private mappings that the process stored to: they are its own since.
    copied: BTreeSet<u64>,
}

/// One mapping, without the page it starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    end: u64,
    space: u32,
    /// Page of the file at the start.
    offset: u64,
    private: bool,
}

/// Says whose page an access met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// Is private memory of the process.
    Own,
    /// Is a page of a file: its space and page.
    File(u32, u64),
    /// Is a page of a file that becomes private by this store.
    Copied(u32, u64),
}

/// Counts whole pages: from the one that has the first byte, to the one behind the last byte.
pub(crate) fn pages(start: u64, bytes: u64) -> Range<u64> {
    let end = start.saturating_add(bytes);
    start >> PAGE_SHIFT..end.div_ceil(1 << PAGE_SHIFT)
}

impl Regions {
    /// Maps pages of a file, or, without one, memory.
    pub(crate) fn map(&mut self, pages: Range<u64>, file: Option<(u32, u64)>, private: bool) {
        self.unmap(pages.clone());
        if let Some((space, offset)) = file.filter(|_| !pages.is_empty()) {
            self.by_start.insert(pages.start, Region { end: pages.end, space, offset, private });
        }
    }

    /// Unmaps pages; what sticks out on either side stays.
    pub(crate) fn unmap(&mut self, pages: Range<u64>) {
        for (start, region) in self.take(&pages) {
            let left = Region { end: pages.start, ..region };
            let right = Region { offset: region.offset + (pages.end.max(start) - start), ..region };
            self.put(start, left);
            self.put(pages.end, right);
        }
        let copied: Vec<u64> = self.copied.range(pages).copied().collect();
        copied.iter().for_each(|page| _ = self.copied.remove(page));
    }

    fn put(&mut self, start: u64, region: Region) {
        if start < region.end {
            self.by_start.insert(start, region);
        }
    }

    /// Removes and returns the regions that overlap with pages.
    fn take(&mut self, pages: &Range<u64>) -> Vec<(u64, Region)> {
        let before = self.by_start.range(..pages.end).rev();
        let found: Vec<_> = before
            .take_while(|(_, region)| region.end > pages.start)
            .map(|(&start, &region)| (start, region))
            .collect();
        found.iter().for_each(|(start, _)| _ = self.by_start.remove(start));
        found
    }

    /// Moves a mapping to another place, with its copied pages.
    pub(crate) fn shift(&mut self, from: Range<u64>, to: Range<u64>) {
        let file = self.at(from.start).map(|(start, region)| {
            ((region.space, region.offset + (from.start - start)), region.private)
        });
        let copied: Vec<u64> = self.copied.range(from.clone()).copied().collect();
        self.unmap(from.clone());
        self.map(to.clone(), file.map(|file| file.0), file.is_some_and(|file| file.1));
        let moved = copied.iter().map(|page| page - from.start + to.start);
        self.copied.extend(moved.filter(|page| *page < to.end));
    }

    fn at(&self, page: u64) -> Option<(u64, Region)> {
        let (&start, &region) = self.by_start.range(..=page).next_back()?;
        (page < region.end).then_some((start, region))
    }

    /// Tells whose page an access meets, and remembers what a store copies.
    pub(crate) fn access(&mut self, page: u64, store: bool) -> Met {
        let Some((start, region)) = self.at(page) else { return Met::Own };
        let at = region.offset + (page - start);
        if !region.private {
            return Met::File(region.space, at);
        }
        if self.copied.contains(&page) {
            return Met::Own;
        }
        if store {
            self.copied.insert(page);
            return Met::Copied(region.space, at);
        }
        Met::File(region.space, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> Regions {
        let mut regions = Regions::default();
        regions.map(10..20, Some((3, 100)), false);
        regions
    }

    #[test]
    fn an_unmapped_middle_leaves_both_ends() {
        let mut regions = mapped();
        regions.unmap(13..15);
        assert_eq!(regions.access(12, false), Met::File(3, 102));
        assert_eq!(regions.access(13, false), Met::Own);
        assert_eq!(regions.access(14, true), Met::Own);
        assert_eq!(regions.access(15, true), Met::File(3, 105));
        assert_eq!(regions.access(19, true), Met::File(3, 109));
        assert_eq!(regions.access(20, true), Met::Own);
    }

    #[test]
    fn a_mapping_over_others_replaces_them() {
        let mut regions = mapped();
        regions.map(20..25, Some((4, 0)), false);
        regions.map(18..22, None, true);
        assert_eq!(regions.access(17, false), Met::File(3, 107));
        assert_eq!(regions.access(18, false), Met::Own);
        assert_eq!(regions.access(22, false), Met::File(4, 2));
        regions.map(0..40, Some((5, 0)), false);
        assert_eq!(regions.access(22, false), Met::File(5, 22));
        assert_eq!(regions.by_start.len(), 1);
    }

    #[test]
    fn a_store_to_a_private_page_makes_it_the_process_own() {
        let mut regions = Regions::default();
        regions.map(10..20, Some((3, 0)), true);
        assert_eq!(regions.access(11, false), Met::File(3, 1));
        assert_eq!(regions.access(11, true), Met::Copied(3, 1));
        assert_eq!(regions.access(11, false), Met::Own);
        assert_eq!(regions.access(12, false), Met::File(3, 2));
        regions.map(10..20, Some((3, 0)), true);
        assert_eq!(regions.access(11, false), Met::File(3, 1), "a new mapping has no copies");
    }

    #[test]
    fn a_moved_mapping_keeps_file_and_copies() {
        let mut regions = Regions::default();
        regions.map(10..20, Some((3, 50)), true);
        regions.access(12, true);
        regions.shift(10..20, 110..130);
        assert_eq!(regions.access(11, false), Met::Own);
        assert_eq!(regions.access(111, false), Met::File(3, 51));
        assert_eq!(regions.access(112, false), Met::Own);
        assert_eq!(regions.access(125, false), Met::File(3, 65));
    }

    #[test]
    fn pages_are_whole() {
        assert_eq!(pages(4096, 1), 1..2);
        assert_eq!(pages(4095, 2), 0..2);
        assert_eq!(pages(u64::MAX, 10), u64::MAX >> 12..1 << 52);
    }
}
