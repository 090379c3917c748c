//! The `_id` index: leaves of hashed keys, most of them cached.
//!
//! Keys are hashes of record numbers, so a leaf is chosen by the hash and neighbours in the index
//! have nothing else in common. The engine keeps most of the index in its cache; how much is a
//! parameter, replaced in exact LRU order. The rest is read through the page cache, in blocks of
//! 3 or 4 pages that alternate in the file.

use crate::scrambled::fnv64;

const NONE: u32 = u32::MAX;
/// Two leaves take so many pages.
const PAGES_OF_TWO: u64 = 7;

/// Records which leaves are cached, and in which frames.
#[derive(Debug)]
pub(super) struct IndexCache {
    frame_of: Vec<u32>,
    frames: Vec<Frame>,
    /// Frames that hold a leaf.
    filled: u32,
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    leaf: u32,
    newer: u32,
    older: u32,
}

/// Says how a lookup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) leaf: u32,
    pub(super) frame: u32,
    pub(super) was_cached: bool,
}

impl IndexCache {
    pub(super) fn new(leaves: u32, frames: u32) -> Self {
        Self {
            frame_of: vec![NONE; leaves as usize],
            frames: vec![Frame { leaf: NONE, newer: NONE, older: NONE }; frames as usize],
            filled: 0,
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Finds the leaf of a record's key, bringing it in if it is not cached.
    pub(super) fn look_up(&mut self, record: u64) -> Lookup {
        let hash = u128::from(fnv64(record)) << 1;
        let leaf = ((hash * self.frame_of.len() as u128) >> 64) as u32;
        let known = self.frame_of[leaf as usize];
        let was_cached = known != NONE;
        let frame = if was_cached { self.unlink(known) } else { self.take_frame() };
        self.frames[frame as usize].leaf = leaf;
        self.frame_of[leaf as usize] = frame;
        self.link_newest(frame);
        Lookup { leaf, frame, was_cached }
    }

    /// An empty frame, or that of the oldest leaf.
    fn take_frame(&mut self) -> u32 {
        if (self.filled as usize) < self.frames.len() {
            self.filled += 1;
            return self.filled - 1;
        }
        let frame = self.unlink(self.oldest);
        self.frame_of[self.frames[frame as usize].leaf as usize] = NONE;
        frame
    }

    fn unlink(&mut self, frame: u32) -> u32 {
        let Frame { newer, older, .. } = self.frames[frame as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.frames[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.frames[older as usize].newer = newer,
        }
        frame
    }

    fn link_newest(&mut self, frame: u32) {
        let older = std::mem::replace(&mut self.newest, frame);
        let state = &mut self.frames[frame as usize];
        (state.newer, state.older) = (NONE, older);
        match older {
            NONE => self.oldest = frame,
            older => self.frames[older as usize].newer = frame,
        }
    }
}

/// First page and number of pages of a leaf in the index file.
pub(super) fn leaf_extent(leaf: u32) -> (u64, u32) {
    let start = |leaf: u64| leaf * PAGES_OF_TWO / 2;
    let (from, to) = (start(u64::from(leaf)), start(u64::from(leaf) + 1));
    (from, (to - from) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_follow_each_other_in_3_and_4_pages() {
        let extents: Vec<_> = (0..4).map(leaf_extent).collect();
        assert_eq!(extents, [(0, 3), (3, 4), (7, 3), (10, 4)]);
    }

    #[test]
    fn hashed_keys_fill_all_leaves_evenly() {
        let mut index = IndexCache::new(100, 100);
        let mut seen = [0u32; 100];
        (0..100_000).for_each(|record| seen[index.look_up(record).leaf as usize] += 1);
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
    }

    #[test]
    fn replacement_is_least_recently_used() {
        let mut index = IndexCache::new(64, 8);
        let mut model: Vec<u32> = Vec::new();
        for record in (0..5000).map(|i| i * i % 997) {
            let found = index.look_up(record);
            let known = model.iter().position(|&leaf| leaf == found.leaf);
            assert_eq!(found.was_cached, known.is_some());
            if let Some(at) = known {
                model.remove(at);
            }
            model.push(found.leaf);
            if model.len() > 8 {
                model.remove(0);
            }
            assert_eq!(index.frames[found.frame as usize].leaf, found.leaf);
        }
    }
}
