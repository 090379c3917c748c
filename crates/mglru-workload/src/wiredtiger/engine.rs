//! Holds the state that all tasks of the engine share, and prices its use in operations.

use crate::op::Op;
use crate::pages::PAGE_BYTES;
use crate::rng::Rng;

use super::extents::Extents;
use super::index_cache::{IndexCache, leaf_extent};
use super::journal::Journal;
use super::layout;
use super::leaf_cache::{Evictor, LeafCache, Writing};
use super::params::WiredTigerParams;
use super::{BLOCK_PAGES, INDEX_FRAME_PAGES};

/// Longest journal entry of an update, in bytes.
pub(super) const MAX_JOURNAL_ENTRY: u32 = 300;
const BLOCK_BYTES: u32 = BLOCK_PAGES * PAGE_BYTES as u32;
/// Lane of the random numbers that choose eviction candidates.
const EVICTION_LANE: u64 = 1 << 33;

type Queue = Vec<Op>;

/// Caches, table, journal and counts.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) leaves: LeafCache,
    pub(super) extents: Extents,
    pub(super) journal: Journal,
    index: IndexCache,
    counts: Counts,
    /// Pages of the table file as loaded.
    loaded: u32,
    since_checkpoint: u64,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    started: u64,
    updates: u64,
    misses: u64,
    index_reads: u64,
    blocks_written: u64,
    checkpoint_blocks: u64,
    client_evictions: u64,
    checkpoints: u64,
}

impl Engine {
    pub(super) fn new(params: &WiredTigerParams, seed: u64) -> Self {
        let extents = Extents::new(params.blocks());
        Self {
            leaves: LeafCache::new(params, Rng::new(seed, EVICTION_LANE)),
            index: IndexCache::new(params.index_leaves(), params.index_frames()),
            journal: Journal::new(params.journal_segment_bytes),
            counts: Counts::default(),
            loaded: extents.end(),
            extents,
            since_checkpoint: 0,
        }
    }

    /// Operations begun so far.
    pub(super) fn started(&self) -> u64 {
        self.counts.started
    }

    pub(super) fn begin_operation(&mut self, params: &WiredTigerParams) {
        self.counts.started += 1;
        self.since_checkpoint = (self.since_checkpoint + 1).min(params.checkpoint_every);
    }

    /// Whether it is time for a checkpoint; the count begins anew if so.
    pub(super) fn take_checkpoint_turn(&mut self, params: &WiredTigerParams) -> bool {
        let due = self.since_checkpoint >= params.checkpoint_every;
        if due {
            self.since_checkpoint = 0;
        }
        due
    }

    /// Looks a record up in the index: reads the leaf unless it is cached.
    pub(super) fn look_up(&mut self, record: u64, queue: &mut Queue) {
        let found = self.index.look_up(record);
        let page = found.frame * INDEX_FRAME_PAGES;
        let region = layout::INDEX;
        if found.was_cached {
            // The block's header, then the page of the key.
            let key = 1 + (record % u64::from(INDEX_FRAME_PAGES - 1)) as u32;
            let touch = |page| Op::Touch { region, page, write: false };
            queue.extend([touch(page), touch(page + key)]);
            return;
        }
        self.counts.index_reads += 1;
        let (start, pages) = leaf_extent(found.leaf);
        let (off, len) = (start * PAGE_BYTES, pages * PAGE_BYTES as u32);
        queue.push(Op::Read { file: layout::INDEX_FILE, off, len });
        let fill = |page| Op::Touch { region, page, write: true };
        queue.extend((page..page + pages).map(fill));
    }

    /// Uses all of a block, which is read unless it is cached; its frame. There must be room.
    pub(super) fn fetch(&mut self, block: u32, queue: &mut Queue) -> u32 {
        if let Some(frame) = self.leaves.use_block(block) {
            touch_block(frame, false, queue);
            return frame;
        }
        self.counts.misses += 1;
        let off = u64::from(self.extents.start(block)) * PAGE_BYTES;
        queue.push(Op::Read { file: layout::TABLE_FILE, off, len: BLOCK_BYTES });
        let frame = self.leaves.insert(block);
        touch_block(frame, true, queue);
        frame
    }

    /// Changes page `page` of the block in `frame` and notes it in the journal.
    pub(super) fn update(&mut self, frame: u32, page: u32, entry: u32, queue: &mut Queue) {
        self.counts.updates += 1;
        self.leaves.set_dirty(frame);
        let page = frame * BLOCK_PAGES + page;
        queue.push(Op::Touch { region: layout::LEAVES, page, write: true });
        let at = self.journal.append(entry);
        let file = layout::journal_file(at.segment);
        queue.push(Op::Write { file, off: at.offset, len: at.len });
    }

    /// A client evicts a clean block, or begins to evict a dirty one.
    pub(super) fn help(&mut self, params: &WiredTigerParams, queue: &mut Queue) -> Option<Writing> {
        if !self.leaves.evict_clean() {
            return self.help_clean_up(params, queue);
        }
        self.counts.client_evictions += 1;
        queue.push(Op::Compute { ns: params.evict_clean_ns });
        None
    }

    /// A client begins to evict a dirty block.
    pub(super) fn help_clean_up(
        &mut self,
        params: &WiredTigerParams,
        queue: &mut Queue,
    ) -> Option<Writing> {
        let writing = self.leaves.begin_eviction()?;
        self.counts.client_evictions += 1;
        self.write_out(writing, params, queue);
        Some(writing)
    }

    /// Evicts up to `most` clean blocks while the cache is too full; how many.
    pub(super) fn evict_clean_blocks(&mut self, most: u64) -> u64 {
        let mut evicted = 0;
        while evicted < most
            && self.leaves.is_too_full(Evictor::Worker)
            && self.leaves.evict_clean()
        {
            evicted += 1;
        }
        evicted
    }

    /// Begins to evict a dirty block if too much is dirty, or if the cache is too full and
    /// `no_clean` block could be found.
    pub(super) fn evict_dirty_block(
        &mut self,
        no_clean: bool,
        params: &WiredTigerParams,
        queue: &mut Queue,
    ) -> Option<Writing> {
        let too_full = no_clean && self.leaves.is_too_full(Evictor::Worker);
        if !too_full && !self.leaves.is_too_dirty(Evictor::Worker) {
            return None;
        }
        let writing = self.leaves.begin_eviction()?;
        self.write_out(writing, params, queue);
        Some(writing)
    }

    /// Begins to write a block for the checkpoint, if it is still dirty.
    pub(super) fn checkpoint_block(
        &mut self,
        block: u32,
        params: &WiredTigerParams,
        queue: &mut Queue,
    ) -> Option<Writing> {
        let writing = self.leaves.begin_write(block)?;
        self.counts.checkpoint_blocks += 1;
        let start = self.extents.relocate(block, true);
        self.copy_block(writing.frame, start, params, queue);
        Some(writing)
    }

    fn write_out(&mut self, writing: Writing, params: &WiredTigerParams, queue: &mut Queue) {
        let start = self.extents.relocate(writing.block, false);
        self.copy_block(writing.frame, start, params, queue);
    }

    /// Writes the block in `frame` to the extent at page `start`.
    fn copy_block(&mut self, frame: u32, start: u32, params: &WiredTigerParams, queue: &mut Queue) {
        self.counts.blocks_written += 1;
        touch_block(frame, false, queue);
        queue.push(Op::Compute { ns: params.write_block_ns });
        let off = u64::from(start) * PAGE_BYTES;
        queue.push(Op::Write { file: layout::TABLE_FILE, off, len: BLOCK_BYTES });
    }

    /// The checkpoint is durable.
    pub(super) fn end_checkpoint(&mut self) {
        self.counts.checkpoints += 1;
        self.extents.end_checkpoint();
    }

    pub(super) fn figures(&self) -> Vec<(String, f64)> {
        let counts = &self.counts;
        let per = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
        let growth = self.extents.end() - self.loaded;
        let figures = [
            ("wt_misses", counts.misses as f64),
            ("wt_misses_per_op", per(counts.misses, counts.started)),
            ("wt_index_reads", counts.index_reads as f64),
            ("wt_index_reads_per_op", per(counts.index_reads, counts.started)),
            ("wt_blocks_written", counts.blocks_written as f64),
            ("wt_blocks_written_per_update", per(counts.blocks_written, counts.updates)),
            ("wt_checkpoint_blocks", counts.checkpoint_blocks as f64),
            ("wt_checkpoints", counts.checkpoints as f64),
            ("wt_client_evictions", counts.client_evictions as f64),
            ("wt_table_growth_pages", f64::from(growth)),
        ];
        figures.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

/// All pages of a frame are read, or written when a block is brought in.
fn touch_block(frame: u32, write: bool, queue: &mut Queue) {
    let first = frame * BLOCK_PAGES;
    let touch = |page| Op::Touch { region: layout::LEAVES, page, write };
    queue.extend((first..first + BLOCK_PAGES).map(touch));
}
