//! The engine's cache of leaf blocks: frames, which of them are dirty, and which is evicted.
//!
//! Approximate LRU as in the engine: a queue of candidates is filled from a random sample, of which
//! the least recently used third stays; a candidate that was used or replaced since is passed over.
//! Clean and dirty blocks are sampled apart, because the engine evicts clean blocks when the cache
//! is too full and dirty ones when too much of it is dirty. Freed frames are reused in the order
//! they were freed, so that all of them come to be resident, like a heap that was once full.
//! A block stays while it is written, so that nobody reads it from where it is not yet.

use std::collections::VecDeque;

use crate::rng::Rng;

use super::params::WiredTigerParams;

const NONE: u32 = u32::MAX;
/// Blocks looked at to fill a queue of candidates.
const SAMPLE: usize = 400;
/// One candidate for so many blocks looked at.
const ONE_OF: usize = 3;

/// Frames that hold blocks.
#[derive(Debug)]
pub(super) struct LeafCache {
    frames: Vec<Frame>,
    /// Frame of each block of the table.
    frame_of: Vec<u32>,
    free: VecDeque<u32>,
    /// Frames of dirty blocks, in no order.
    dirty: Vec<u32>,
    candidates: Candidates,
    limits: Limits,
    rng: Rng,
    /// Counts uses: a block's age is measured in it.
    tick: u32,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    block: u32,
    /// Place in the list of dirty frames.
    dirty: u32,
    used: u32,
    /// Writes under way.
    writes: u32,
}

impl Frame {
    const FREE: Self = Self { block: NONE, dirty: NONE, used: 0, writes: 0 };

    /// Tells whether the frame holds a block that can be dropped at once.
    fn is_clean(&self) -> bool {
        self.block != NONE && self.dirty == NONE && self.writes == 0
    }
}

/// Queues of `(frame, when it was last used)`, the oldest last.
#[derive(Debug, Default)]
struct Candidates {
    clean: Vec<(u32, u32)>,
    dirty: Vec<(u32, u32)>,
}

/// Numbers of blocks at which eviction begins.
#[derive(Clone, Copy, Debug)]
struct Limits {
    full_target: usize,
    full_trigger: usize,
    dirty_target: usize,
    dirty_trigger: usize,
}

impl Limits {
    fn new(params: &WiredTigerParams) -> Self {
        let share =
            |percent: u32| (u64::from(params.cache_blocks) * u64::from(percent) / 100) as usize;
        Self {
            full_target: share(params.full_target),
            full_trigger: share(params.full_trigger),
            dirty_target: share(params.dirty_target),
            dirty_trigger: share(params.dirty_trigger),
        }
    }
}

/// Names the task that asks whether a block must be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evictor {
    /// Serves a client: evicts from the triggers on.
    Client,
    /// Works in the background: evicts from the targets on.
    Worker,
}

/// A block being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) block: u32,
    pub(super) frame: u32,
    /// The block is to leave if it was not used since this tick.
    evict_since: Option<u32>,
}

impl LeafCache {
    pub(super) fn new(params: &WiredTigerParams, rng: Rng) -> Self {
        Self {
            frames: vec![Frame::FREE; params.cache_blocks as usize],
            frame_of: vec![NONE; params.blocks() as usize],
            free: (0..params.cache_blocks).collect(),
            dirty: Vec::new(),
            candidates: Candidates::default(),
            limits: Limits::new(params),
            rng,
            tick: 0,
        }
    }

    /// The frame of a cached block, which counts as a use.
    pub(super) fn use_block(&mut self, block: u32) -> Option<u32> {
        let frame = self.frame_of[block as usize];
        if frame == NONE {
            return None;
        }
        self.tick += 1;
        self.frames[frame as usize].used = self.tick;
        Some(frame)
    }

    /// Whether a block is in the cache.
    pub(super) fn is_cached(&self, block: u32) -> bool {
        self.frame_of[block as usize] != NONE
    }

    /// Whether a block can be inserted without evicting one.
    pub(super) fn has_free_frame(&self) -> bool {
        !self.free.is_empty()
    }

    /// Gives a block that is not cached a frame; there must be a free one.
    pub(super) fn insert(&mut self, block: u32) -> u32 {
        let frame = self.free.pop_front().expect("the caller made room");
        self.tick += 1;
        self.frames[frame as usize] = Frame { block, used: self.tick, ..Frame::FREE };
        self.frame_of[block as usize] = frame;
        frame
    }

    /// A block was changed.
    pub(super) fn set_dirty(&mut self, frame: u32) {
        let state = &mut self.frames[frame as usize];
        if state.dirty == NONE {
            state.dirty = self.dirty.len() as u32;
            self.dirty.push(frame);
        }
    }

    /// Begins to write a block that stays, if it is cached and dirty.
    pub(super) fn begin_write(&mut self, block: u32) -> Option<Writing> {
        let frame = self.frame_of[block as usize];
        if frame == NONE || self.frames[frame as usize].dirty == NONE {
            return None;
        }
        Some(self.start_writing(frame, None))
    }

    /// Begins to write an old dirty block, which leaves when that is done.
    pub(super) fn begin_eviction(&mut self) -> Option<Writing> {
        if self.candidates.dirty.is_empty() {
            self.candidates.dirty = self.sample_dirty();
        }
        while let Some((frame, used)) = self.candidates.dirty.pop() {
            let state = self.frames[frame as usize];
            if state.used == used && state.dirty != NONE && state.writes == 0 {
                return Some(self.start_writing(frame, Some(used)));
            }
        }
        None
    }

    fn start_writing(&mut self, frame: u32, evict_since: Option<u32>) -> Writing {
        self.set_clean(frame);
        let state = &mut self.frames[frame as usize];
        state.writes += 1;
        Writing { block: state.block, frame, evict_since }
    }

    /// A write is done.
    pub(super) fn end_write(&mut self, writing: Writing) {
        let state = &mut self.frames[writing.frame as usize];
        state.writes -= 1;
        let is_idle = state.writes == 0 && state.dirty == NONE;
        if is_idle && writing.evict_since == Some(state.used) {
            self.evict(writing.frame);
        }
    }

    fn set_clean(&mut self, frame: u32) {
        let at = std::mem::replace(&mut self.frames[frame as usize].dirty, NONE);
        if at != NONE {
            self.dirty.swap_remove(at as usize);
            if let Some(&moved) = self.dirty.get(at as usize) {
                self.frames[moved as usize].dirty = at;
            }
        }
    }

    /// The dirty blocks in the order of the table.
    pub(super) fn dirty_blocks(&self) -> Vec<u32> {
        let blocks = self.dirty.iter().map(|&frame| self.frames[frame as usize].block);
        let mut blocks: Vec<u32> = blocks.collect();
        blocks.sort_unstable();
        blocks
    }

    pub(super) fn is_too_full(&self, who: Evictor) -> bool {
        let used = self.frames.len() - self.free.len();
        match who {
            Evictor::Client => used >= self.limits.full_trigger,
            Evictor::Worker => used > self.limits.full_target,
        }
    }

    pub(super) fn is_too_dirty(&self, who: Evictor) -> bool {
        match who {
            Evictor::Client => self.dirty.len() >= self.limits.dirty_trigger.max(1),
            Evictor::Worker => self.dirty.len() > self.limits.dirty_target,
        }
    }

    /// Evicts an old clean block; `false` when none was found.
    pub(super) fn evict_clean(&mut self) -> bool {
        if self.candidates.clean.is_empty() {
            self.candidates.clean = self.sample_clean();
        }
        while let Some((frame, used)) = self.candidates.clean.pop() {
            let state = self.frames[frame as usize];
            if state.used == used && state.is_clean() {
                self.evict(frame);
                return true;
            }
        }
        false
    }

    fn evict(&mut self, frame: u32) {
        let block = self.frames[frame as usize].block;
        self.frames[frame as usize] = Frame::FREE;
        self.frame_of[block as usize] = NONE;
        self.free.push_back(frame);
    }

    fn sample_clean(&mut self) -> Vec<(u32, u32)> {
        let nr = self.frames.len() as u64;
        let picks: Vec<u32> = (0..SAMPLE).map(|_| self.rng.below(nr) as u32).collect();
        let clean = |frame: &u32| self.frames[*frame as usize].is_clean();
        oldest_third(self.aged(picks.into_iter().filter(clean)))
    }

    fn sample_dirty(&mut self) -> Vec<(u32, u32)> {
        let nr = self.dirty.len();
        if nr <= SAMPLE {
            return oldest_third(self.aged(self.dirty.iter().copied()));
        }
        let picks: Vec<usize> = (0..SAMPLE).map(|_| self.rng.below(nr as u64) as usize).collect();
        oldest_third(self.aged(picks.into_iter().map(|at| self.dirty[at])))
    }

    fn aged(&self, frames: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
        frames.map(|frame| (frame, self.frames[frame as usize].used)).collect()
    }
}

/// The least recently used third, at least one, the oldest last.
fn oldest_third(mut sample: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    let keep = sample.len().div_ceil(ONE_OF);
    if keep < sample.len() {
        sample.select_nth_unstable_by_key(keep, |&(_, used)| used);
        sample.truncate(keep);
    }
    sample.sort_unstable_by_key(|&(frame, used)| std::cmp::Reverse((used, frame)));
    sample
}

#[cfg(test)]
mod tests;
