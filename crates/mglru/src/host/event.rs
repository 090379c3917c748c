//! Lists the events that reclaim reports while it works, for tracers: at the ends of calls, scans
//! and batches, never for a single folio. The contents are those of the kernel's trace events.

use crate::types::{LruType, MemcgId, NodeId, Seq, Zone};

/// Describes one step that reclaim has just taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A task begins to reclaim, for the machine or for a group.
    CallBegins {
        /// The group that is too large; `None`: the machine is short.
        target: Option<MemcgId>,
        /// A block of `2^order` pages is wanted.
        order: u8,
    },
    /// It has ended.
    CallEnds {
        /// As at its beginning.
        target: Option<MemcgId>,
        /// Pages reclaimed.
        reclaimed: u64,
    },
    /// Reports that a scan took folios off a list.
    Isolated(Isolated),
    /// Reports that what reclaim took from an inactive list, or an oldest generation, was judged
    /// and evicted.
    ShrunkInactive(ShrunkInactive),
    /// Reports that what reclaim took from an active list was judged.
    ShrunkActive(ShrunkActive),
    /// A group has a new youngest generation.
    Aged {
        /// Names the group.
        memcg: MemcgId,
        /// On which node.
        node: NodeId,
        /// The youngest generation.
        max_seq: Seq,
        /// The oldest ones, of anonymous memory and files.
        min_seq: [Seq; 2],
    },
}

/// Names a list of the classic LRU; of the multi-gen LRU the generations that evict are inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListName {
    /// Names the type of the pages on the list.
    pub lru_type: LruType,
    /// Says that the list is not evicted from.
    pub active: bool,
}

/// Counts what a scan met. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// Names the highest zone that helps the caller.
    pub highest_zone: Zone,
    /// Holds the order of the request.
    pub order: u8,
    /// Counts pages asked for.
    pub requested: u64,
    /// Counts pages met.
    pub scanned: u64,
    /// Counts pages passed over: of a higher zone, or not to be isolated.
    pub skipped: u64,
    /// Counts pages taken.
    pub taken: u64,
    /// Names the list.
    pub list: ListName,
}

/// Counts what became of a batch. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrunkInactive {
    /// Names the memcg of the list.
    pub memcg: MemcgId,
    /// Names the node of the list.
    pub node: NodeId,
    /// Counts pages charged for the scan.
    pub scanned: u64,
    /// Counts pages freed or demoted.
    pub reclaimed: u64,
    /// Counts file pages that are dirty or under writeback.
    pub dirty: u64,
    /// Counts pages under writeback that reclaim marks now.
    pub writeback: u64,
    /// Counts pages under writeback that reclaim marked before.
    pub congested: u64,
    /// Counts pages under writeback while kswapd finds too many.
    pub immediate: u64,
    /// Counts pages made active.
    pub activated: u64,
    /// Counts pages kept for a reference.
    pub kept_referenced: u64,
    /// Counts pages still mapped after unmapping.
    pub unmap_failed: u64,
    /// Holds the priority of the call.
    pub priority: u8,
    /// Names the type of the pages.
    pub lru_type: LruType,
}

/// Counts what became of active folios. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrunkActive {
    /// Names the node of the list.
    pub node: NodeId,
    /// Counts pages taken off the list.
    pub taken: u64,
    /// Counts pages put back: programs in use.
    pub kept: u64,
    /// Counts pages put to the inactive list.
    pub deactivated: u64,
    /// Holds the priority of the call.
    pub priority: u8,
    /// Names the type of the pages.
    pub lru_type: LruType,
}
