//! Inodes and their directory entries: slab objects in order of age, which reclaim frees from the
//! old end. They hold no cached pages of their own.

use std::collections::VecDeque;

use mglru::host::SlabWork;

use super::World;
use crate::physical::Pfn;
use crate::physical::slab::{SlabCache, SlabPage};

/// An inode and its directory entry take a KiB together.
const PER_PAGE: u16 = 4;
/// Slab is scanned twice as hard as the lists: an object costs two disk accesses to make again,
/// where four are the measure.
const PRESSURE: u64 = 2;

/// All inodes, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct Inodes {
    slab: SlabCache,
    by_age: VecDeque<SlabPage>,
}

impl Default for Inodes {
    fn default() -> Self {
        Self { slab: SlabCache::new(PER_PAGE), by_age: VecDeque::new() }
    }
}

impl Inodes {
    pub(super) fn add(&mut self, new_page: impl FnOnce() -> Option<Pfn>) {
        self.by_age.extend(self.slab.alloc(new_page));
    }

    /// Frees the oldest one; the page that fell free with it.
    pub(super) fn free_oldest(&mut self) -> Option<Pfn> {
        let oldest = self.by_age.pop_front()?;
        self.slab.free(oldest)
    }

    pub(super) fn len(&self) -> u64 {
        self.by_age.len() as u64
    }
}

impl World {
    /// Makes inodes.
    pub(crate) fn make_inodes(&mut self, nr: u32) {
        if let Some(frames) = &mut self.frames {
            frames.add_inodes(nr);
            self.mirror_frames();
        }
    }

    /// Frees inodes in proportion to the pressure on the lists.
    pub(super) fn shrink_inodes(&mut self, priority: u8) -> SlabWork {
        let Some(frames) = &mut self.frames else { return SlabWork::default() };
        let scanned = ((frames.inodes.len() * PRESSURE) >> priority).min(frames.inodes.len());
        let freed = frames.free_inodes(scanned);
        self.mirror_frames();
        SlabWork { scanned, freed }
    }

    /// Frees all of them.
    pub(crate) fn drop_inodes(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.free_inodes(frames.inodes.len());
            self.mirror_frames();
        }
    }

    /// Counts pages of slab that can be freed: inodes.
    pub fn nr_inodes(&self) -> u64 {
        self.frames.as_ref().map_or(0, |frames| frames.inodes.len())
    }
}
