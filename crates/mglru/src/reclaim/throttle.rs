//! When a reclaimer must wait, for what, and for how long (spec §9.4).

use crate::batch::control::ScanControl;
use crate::config::Config;
use crate::state::Lru;
use crate::stats::Counter;
use crate::types::{FolioId, Nanos, NodeId};

/// Names the event that a reclaimer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Throttle {
    /// Waits for writeback to make progress.
    Writeback,
    /// Waits for isolated pages to return.
    Isolated,
    /// Waits for another reclaimer to make progress.
    Noprogress,
    /// Waits for congested dirty pages to be written.
    Congested,
    /// Waits for this folio to be written (cgroup v1).
    Folio(FolioId),
}

const SECOND: Nanos = 1_000_000_000;

impl Lru {
    /// Must the caller wait, and for how long at most? `None`: it goes on at once.
    pub(crate) fn throttle(&mut self, node: NodeId, reason: Throttle) -> Option<Nanos> {
        if self.is_throttle_skipped(node, reason) {
            return None;
        }
        let (counter, at_most) = match reason {
            Throttle::Writeback => {
                self.nodes[node.index()].throttle_writeback();
                (Counter::ThrottleWriteback, SECOND / 10)
            }
            Throttle::Isolated => (Counter::ThrottleIsolated, SECOND / 50),
            Throttle::Noprogress => (Counter::ThrottleNoprogress, self.config.tick_ns),
            Throttle::Congested => (Counter::ThrottleCongested, self.config.tick_ns),
            Throttle::Folio(_) => return Some(Nanos::MAX),
        };
        self.counters[counter] += 1;
        Some(at_most)
    }

    /// A hopeless or mostly clean node does not stall anybody for congestion or lack of progress.
    fn is_throttle_skipped(&self, node: NodeId, reason: Throttle) -> bool {
        let Config { throttle_skips_clean_node, .. } = self.config;
        if !matches!(reason, Throttle::Noprogress | Throttle::Congested) {
            return false;
        }
        let node = &self.nodes[node.index()];
        let pending = node.dirty + node.writeback;
        let reclaimable: u64 = node.lru_pages.iter().sum();
        node.is_hopeless() || throttle_skips_clean_node && 2 * pending <= reclaimable
    }

    /// Judges the batches of a node visit (spec §9.5): sets flags for others, and returns the event
    /// that this caller must wait for itself.
    pub(crate) fn judge_node(&mut self, ctl: &ScanControl, node: NodeId) -> Option<Throttle> {
        let nr = ctl.nr;
        let sane_cgroup = ctl.is_cgroup() && self.config.sane_throttling;
        let target = self.lruvec_id(ctl.top(), node);
        let all_congested = nr.dirty != 0 && nr.dirty == nr.congested;
        if ctl.is_kswapd() {
            let state = &mut self.nodes[node.index()];
            state.writeback_flag |= nr.writeback != 0 && nr.writeback == nr.taken;
            state.dirty_flag |= self.config.node_dirty_flag && nr.unqueued_dirty == nr.file_taken;
            state.congested |= all_congested;
            return (nr.immediate != 0).then_some(Throttle::Writeback);
        }
        self.lruvecs[target.index()].cgroup_congested |= sane_cgroup && all_congested;
        let congested = ctl.is_cgroup() && self.lruvecs[target.index()].cgroup_congested
            || self.nodes[node.index()].congested;
        congested.then_some(Throttle::Congested)
    }

    /// Lets tasks go on that wait for progress, or says that this caller made none (global direct
    /// reclaim at the last priority but one).
    pub(crate) fn judge_progress(
        &mut self,
        ctl: &ScanControl,
        node: NodeId,
        scanned: u64,
        reclaimed: u64,
    ) -> Option<Throttle> {
        if reclaimed > scanned >> 3 {
            self.nodes[node.index()].wakes.noprogress = true;
            return None;
        }
        let stuck = ctl.priority == 1 && ctl.reclaimed == 0;
        (stuck && !ctl.is_kswapd() && !ctl.is_cgroup()).then_some(Throttle::Noprogress)
    }
}
