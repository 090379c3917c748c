//! Where leaf blocks lie in the table file: copy-on-write extents of [`BLOCK_PAGES`] pages.
//!
//! A block is written to the best-fitting free extent, or to the end of the file, which grows. Its
//! old extent still belongs to the last checkpoint and is free only after the next one.

use std::collections::{BTreeMap, BTreeSet};

use super::BLOCK_PAGES;

/// The file's first page describes the file.
const HEADER_PAGES: u32 = 1;

/// The blocks' places and the free space, in pages.
#[derive(Debug)]
pub(super) struct Extents {
    /// First page of each block.
    start_of: Vec<u32>,
    /// Pages in the file.
    end: u32,
    /// Free extents: length by start, and the same by length.
    free: BTreeMap<u32, u32>,
    by_length: BTreeSet<(u32, u32)>,
    /// Blocks' old extents that the last checkpoint still needs.
    discarded: Vec<u32>,
    /// The same, free as soon as the checkpoint under way is durable.
    retiring: Vec<u32>,
}

impl Extents {
    /// A table as loaded: `blocks` blocks one after the other.
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            start_of: (0..blocks).map(|block| HEADER_PAGES + block * BLOCK_PAGES).collect(),
            end: HEADER_PAGES + blocks * BLOCK_PAGES,
            free: BTreeMap::new(),
            by_length: BTreeSet::new(),
            discarded: Vec::new(),
            retiring: Vec::new(),
        }
    }

    /// First page of a block.
    pub(super) fn start(&self, block: u32) -> u32 {
        self.start_of[block as usize]
    }

    /// Pages in the file.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Moves a block to a new extent, whose first page it returns. The old one can be reused after
    /// the next checkpoint: the one under way if it is this checkpoint that moves the block.
    pub(super) fn relocate(&mut self, block: u32, by_checkpoint: bool) -> u32 {
        let start = self.allocate();
        let old = std::mem::replace(&mut self.start_of[block as usize], start);
        let list = if by_checkpoint { &mut self.retiring } else { &mut self.discarded };
        list.push(old);
        start
    }

    /// Marks the blocks discarded so far to be free at the end of this checkpoint.
    pub(super) fn begin_checkpoint(&mut self) {
        self.retiring.append(&mut self.discarded);
    }

    /// The checkpoint is durable.
    pub(super) fn end_checkpoint(&mut self) {
        for start in std::mem::take(&mut self.retiring) {
            self.release(start);
        }
    }

    fn allocate(&mut self) -> u32 {
        let Some(&(length, start)) = self.by_length.range((BLOCK_PAGES, 0)..).next() else {
            let start = self.end;
            self.end += BLOCK_PAGES;
            return start;
        };
        self.remove(start, length);
        if length > BLOCK_PAGES {
            self.insert(start + BLOCK_PAGES, length - BLOCK_PAGES);
        }
        start
    }

    /// Frees an extent and merges it with its free neighbours.
    fn release(&mut self, start: u32) {
        let (mut from, mut to) = (start, start + BLOCK_PAGES);
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.remove(before, length);
            from = before;
        }
        if let Some(&length) = self.free.get(&to) {
            self.remove(to, length);
            to += length;
        }
        self.insert(from, to - from);
    }

    fn insert(&mut self, start: u32, length: u32) {
        self.free.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: u32, length: u32) {
        self.free.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every page of the file belongs to exactly one block, free extent or extent to be freed.
    fn check(extents: &Extents) {
        let waiting = extents.discarded.iter().chain(&extents.retiring);
        let blocks = extents.start_of.iter().chain(waiting).map(|&start| (start, BLOCK_PAGES));
        let free = extents.free.iter().map(|(&start, &length)| (start, length));
        let mut all: Vec<(u32, u32)> = blocks.chain(free).collect();
        all.sort_unstable();
        let mut next = HEADER_PAGES;
        for (start, length) in all {
            assert_eq!(start, next, "overlap or hole");
            next = start + length;
        }
        assert_eq!(next, extents.end);
        let same = extents.by_length.iter().map(|&(length, start)| (start, length));
        assert_eq!(same.collect::<BTreeMap<_, _>>(), extents.free);
    }

    #[test]
    fn old_extent_is_reused_only_after_the_next_checkpoint() {
        let mut extents = Extents::new(4);
        let old = extents.start(2);
        assert_eq!(extents.relocate(2, false), 1 + 4 * BLOCK_PAGES);
        assert_ne!(extents.relocate(3, false), old);
        extents.begin_checkpoint();
        let during = extents.start(0);
        assert_ne!(extents.relocate(0, false), old);
        extents.end_checkpoint();
        assert_eq!(extents.relocate(1, false), old);
        // Discarded while the checkpoint was under way: not before the one after it.
        assert_ne!(extents.relocate(2, false), during);
        check(&extents);
    }

    #[test]
    fn best_fit_takes_the_smallest_extent_that_is_large_enough() {
        let mut extents = Extents::new(6);
        for block in [0, 1, 4] {
            extents.relocate(block, false);
        }
        extents.begin_checkpoint();
        extents.end_checkpoint();
        assert_eq!(extents.relocate(5, false), 1 + 4 * BLOCK_PAGES);
        assert_eq!(extents.relocate(5, false), 1);
        check(&extents);
    }

    proptest! {
        #[test]
        fn pages_are_conserved(steps in prop::collection::vec((0u32..20, 0u8..8), 1..400)) {
            let mut extents = Extents::new(20);
            let (mut end, mut under_way) = (extents.end(), false);
            for (block, what) in steps {
                match what {
                    0 if under_way => extents.end_checkpoint(),
                    0 => extents.begin_checkpoint(),
                    _ => { extents.relocate(block, under_way && what == 1); }
                }
                under_way ^= what == 0;
                check(&extents);
                prop_assert!(extents.end() >= end);
                end = extents.end();
            }
        }
    }
}
