//! What reclaim tells of itself while it works, for who traces it: at the ends of calls, scans and
//! batches, never for a single folio. The contents are those of the kernel's trace events.

use crate::types::{LruType, MemcgId, NodeId, Seq, Zone};

/// Something that reclaim has just done.
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
    /// A scan took folios off a list.
    Isolated(Isolated),
    /// What it took from an inactive list, or an oldest generation, was judged and evicted.
    ShrunkInactive(ShrunkInactive),
    /// What it took from an active list was judged.
    ShrunkActive(ShrunkActive),
    /// A group has a new youngest generation.
    Aged {
        /// Which group.
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
    /// What is on it.
    pub lru_type: LruType,
    /// Not evicted from.
    pub active: bool,
}

/// Counts what a scan met. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// The highest zone that helps the caller.
    pub highest_zone: Zone,
    /// The order of the request.
    pub order: u8,
    /// Asked for.
    pub requested: u64,
    /// Met.
    pub scanned: u64,
    /// Passed over: of a higher zone, or not to be isolated.
    pub skipped: u64,
    /// Taken.
    pub taken: u64,
    /// Where.
    pub list: ListName,
}

/// Counts what became of a batch. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrunkInactive {
    /// Whose.
    pub memcg: MemcgId,
    /// On which node.
    pub node: NodeId,
    /// Charged for the scan.
    pub scanned: u64,
    /// Freed or demoted.
    pub reclaimed: u64,
    /// Dirty ones and ones under writeback, of files.
    pub dirty: u64,
    /// Under writeback, marked now.
    pub writeback: u64,
    /// Under writeback and marked before.
    pub congested: u64,
    /// Under writeback, where kswapd finds too many.
    pub immediate: u64,
    /// Made active.
    pub activated: u64,
    /// Kept for a reference.
    pub kept_referenced: u64,
    /// Still mapped after unmapping.
    pub unmap_failed: u64,
    /// The priority of the call.
    pub priority: u8,
    /// What they are.
    pub lru_type: LruType,
}

/// Counts what became of active folios. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrunkActive {
    /// On which node.
    pub node: NodeId,
    /// Taken off the list.
    pub taken: u64,
    /// Put back to it: programs in use.
    pub kept: u64,
    /// Put to the inactive list.
    pub deactivated: u64,
    /// The priority of the call.
    pub priority: u8,
    /// What they are.
    pub lru_type: LruType,
}
