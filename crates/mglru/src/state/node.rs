//! Holds what reclaim keeps per NUMA node: dirty and writeback counts, kswapd's failures, throttled
//! tasks (spec §2.3, §9.4).

use crate::state::memcg_lru::MemcgLru;
use crate::types::ANON_AND_FILE;

/// Lists the kinds of throttled tasks that may go on now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Wakes tasks that wait for writeback.
    pub writeback: bool,
    /// Wakes tasks that wait for isolated pages to return.
    pub isolated: bool,
    /// Asks to kill a process: the working set does not fit (`min_ttl`).
    pub out_of_memory: bool,
    /// Wakes tasks that wait for another reclaimer to make progress.
    pub noprogress: bool,
}

/// One node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Pages on evictable lists, per type.
    pub(crate) lru_pages: [u64; ANON_AND_FILE],
    /// Those of them in generations that report as inactive (MGLRU), per type.
    pub(crate) inactive_pages: [u64; ANON_AND_FILE],
    /// Holds the memcg that root reclaim comes to next.
    pub(crate) memcg_lru: MemcgLru,
    /// Dirty file pages.
    pub(crate) dirty: u64,
    /// Pages under writeback.
    pub(crate) writeback: u64,
    /// kswapd met only pages under writeback.
    pub(crate) writeback_flag: bool,
    /// kswapd met only unqueued dirty file pages (rules up to 6.18).
    pub(crate) dirty_flag: bool,
    /// kswapd found every dirty page congested.
    pub(crate) congested: bool,
    /// Fruitless descents of kswapd.
    pub(crate) kswapd_failures: u32,
    /// Tasks throttled for writeback.
    pub(crate) throttled: u32,
    /// Pages written since the first of them was throttled.
    pub(crate) written_since: u64,
    pub(crate) wakes: Wakes,
}

impl Node {
    /// kswapd has given up until somebody reclaims.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.kswapd_failures >= crate::types::MAX_RECLAIM_RETRIES
    }

    /// Writeback of `n` pages ended: enough for the throttled?
    pub(crate) fn account_written(&mut self, n: u64) {
        if self.throttled == 0 {
            return;
        }
        self.written_since += n;
        if self.written_since > crate::types::SWAP_CLUSTER_MAX * u64::from(self.throttled) {
            self.wakes.writeback = true;
        }
    }

    /// A task starts to wait for writeback.
    pub(crate) fn throttle_writeback(&mut self) {
        if self.throttled == 0 {
            self.written_since = 0;
        }
        self.throttled += 1;
    }
}
