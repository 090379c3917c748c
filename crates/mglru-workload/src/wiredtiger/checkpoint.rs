//! The checkpointer: now and then writes every dirty block, makes the table durable, and thereby
//! frees the extents that the checkpoint before needed.

use crate::op::Op;

use super::engine::Engine;
use super::layout;
use super::leaf_cache::Writing;
use super::params::WiredTigerParams;

/// How often the checkpointer looks whether it is time, in nanoseconds.
const POLL_NS: u64 = 5_000_000;

/// How far a checkpoint is.
#[derive(Debug, Default)]
pub(super) enum Checkpoint {
    /// Waits: it is not time yet.
    #[default]
    Waiting,
    /// Writes: these blocks are left to be written, the next one last.
    Writing(Vec<u32>),
    /// Makes the table durable.
    Syncing,
}

impl Checkpoint {
    /// Queues the next piece of work, or a wait; the block being written, if it is that.
    pub(super) fn step(
        &mut self,
        engine: &mut Engine,
        params: &WiredTigerParams,
        queue: &mut Vec<Op>,
    ) -> Option<Writing> {
        if matches!(self, Self::Syncing) {
            engine.end_checkpoint();
            *self = Self::Waiting;
        }
        if matches!(self, Self::Waiting) && engine.take_checkpoint_turn(params) {
            let mut blocks = engine.leaves.dirty_blocks();
            blocks.reverse();
            engine.extents.begin_checkpoint();
            *self = Self::Writing(blocks);
        }
        let Self::Writing(blocks) = self else {
            queue.push(Op::Think { ns: POLL_NS });
            return None;
        };
        // Blocks that were evicted since the checkpoint began are passed over.
        while let Some(block) = blocks.pop() {
            if let Some(writing) = engine.checkpoint_block(block, params, queue) {
                return Some(writing);
            }
        }
        queue.push(Op::Fsync { file: layout::TABLE_FILE });
        *self = Self::Syncing;
        None
    }
}
