//! The `lru_gen` debug commands of an administrator: age a group once, evict a generation.

use mglru::types::{MemcgId, NodeId};

use crate::machine::Machine;
use crate::task::Flow;

/// Swappiness that leaves anonymous memory out.
const FILE_ONLY: u8 = 0;

impl Machine {
    /// Makes a new generation of the group on every node.
    pub(crate) fn age(&mut self, memcg: MemcgId, can_swap: bool, force: bool) -> Flow {
        let swappiness =
            if can_swap { self.world.memcgs.limits(memcg).swappiness.max(1) } else { FILE_ONLY };
        for node in 0..self.world.zones.nodes() as u8 {
            let lruvec = self.lru.lruvec_id(memcg, NodeId(node));
            self.lru.debug_age(lruvec, swappiness, force, &mut self.world);
        }
        Flow::Busy
    }

    /// Evicts the generation `offset` after the oldest, and all before it, on every node.
    pub(crate) fn evict_generation(
        &mut self,
        memcg: MemcgId,
        offset: u32,
        swappiness: u8,
        nr: u64,
    ) -> Flow {
        let mut left = nr;
        for node in 0..self.world.zones.nodes() as u8 {
            let lruvec = self.lru.lruvec_id(memcg, NodeId(node));
            let seq = self.lru.oldest_seq(lruvec, swappiness).plus(u64::from(offset));
            let evicted = self.lru.debug_evict(lruvec, seq, swappiness, left, &mut self.world);
            left -= evicted.unwrap_or(0).min(left);
        }
        self.wake_throttled();
        Flow::Busy
    }
}
