//! Keeps the aim and the progress of one reclaim call (the kernel's `scan_control`; spec §9).

use crate::contig::Mode;
use crate::types::{DEF_PRIORITY, MemcgId, Reclaimer, SWAP_CLUSTER_MAX, Zone};

/// Says what the allocating context permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gfp {
    /// Allows reclaim to start I/O.
    pub io: bool,
    /// Allows reclaim to enter the file system.
    pub fs: bool,
}

impl Default for Gfp {
    fn default() -> Self {
        Self { io: true, fs: true }
    }
}

/// Counts what batches found since the node was entered, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Counts file pages that are dirty or under writeback.
    pub dirty: u64,
    /// Counts file pages that are dirty and not under writeback.
    pub unqueued_dirty: u64,
    /// Counts file pages under writeback that reclaim waits for already.
    pub congested: u64,
    /// Counts pages under writeback.
    pub writeback: u64,
    /// Counts pages under writeback that were marked to be reclaimed immediately.
    pub immediate: u64,
    /// Counts isolated pages.
    pub taken: u64,
    /// Counts isolated file pages; before patch 12 also dirty file pages that sorting met.
    pub file_taken: u64,
    /// Writes queued by reclaim.
    pub pageout: u64,
    /// Counts pages kept for a reference, in one batch.
    pub kept_referenced: u64,
    /// Counts pages still mapped after unmapping, in one batch.
    pub unmap_failed: u64,
    /// Counts pages made active, in one batch.
    pub activated: u64,
}

impl BatchStats {
    /// Adds what another batch found.
    pub(crate) fn add(&mut self, other: &Self) {
        self.dirty += other.dirty;
        self.unqueued_dirty += other.unqueued_dirty;
        self.congested += other.congested;
        self.writeback += other.writeback;
        self.immediate += other.immediate;
        self.taken += other.taken;
        self.file_taken += other.file_taken;
        self.pageout += other.pageout;
    }
}

/// Goal, permissions and progress of one reclaim call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanControl {
    pub(crate) who: Reclaimer,
    /// `None`: the machine is short of memory, not a group.
    pub(crate) target: Option<MemcgId>,
    pub(crate) goal: u64,
    pub(crate) order: u8,
    /// The request is repeated until it succeeds or reclaim makes no progress.
    pub(crate) repeat: bool,
    /// How the batch at hand is isolated and judged.
    pub(crate) mode: Mode,
    /// It waits for writeback.
    pub(crate) sync: bool,
    /// Compaction can go to work as things are.
    pub(crate) compaction_ready: bool,
    pub(crate) reclaim_idx: Zone,
    pub(crate) gfp: Gfp,
    pub(crate) may_swap: bool,
    pub(crate) may_unmap: bool,
    pub(crate) may_writepage: bool,
    pub(crate) swappiness: Option<u8>,
    pub(crate) priority: u8,
    pub(crate) scanned: u64,
    pub(crate) reclaimed: u64,
    pub(crate) nr: BatchStats,
    /// Groups below `memory.low` are reclaimed too.
    pub(crate) low_reclaim: bool,
    pub(crate) low_skipped: bool,
    pub(crate) force_deactivate: bool,
    pub(crate) skipped_deactivate: bool,
    pub(crate) full_walk: bool,
    /// Scans and steals show in the counters.
    pub(crate) is_counted: bool,
}

impl ScanControl {
    pub(crate) fn new(who: Reclaimer, target: Option<MemcgId>, pages: u64) -> Self {
        Self {
            who,
            target,
            goal: pages.max(SWAP_CLUSTER_MAX),
            order: 0,
            repeat: false,
            mode: Mode::Single,
            sync: false,
            compaction_ready: false,
            reclaim_idx: Zone(crate::types::MAX_NR_ZONES as u8 - 1),
            gfp: Gfp::default(),
            may_swap: true,
            may_unmap: true,
            may_writepage: true,
            swappiness: None,
            priority: DEF_PRIORITY,
            scanned: 0,
            reclaimed: 0,
            nr: BatchStats::default(),
            low_reclaim: false,
            low_skipped: false,
            force_deactivate: false,
            skipped_deactivate: false,
            full_walk: false,
            is_counted: true,
        }
    }

    /// A target memcg is set (the root included, through `memory.reclaim`).
    pub(crate) fn is_cgroup(&self) -> bool {
        self.target.is_some()
    }

    /// The whole machine is the target.
    pub(crate) fn is_root(&self) -> bool {
        self.target.is_none_or(|memcg| memcg == MemcgId::ROOT)
    }

    pub(crate) fn is_kswapd(&self) -> bool {
        self.who == Reclaimer::Kswapd
    }

    /// The top of the subtree that is walked.
    pub(crate) fn top(&self) -> MemcgId {
        self.target.unwrap_or(MemcgId::ROOT)
    }
}
