//! The visit of one node as data: how its groups are found, and the loop over one of them.

use crate::classic::{ClassicLoop, ClassicPrepared};
use crate::mglru::turns::MglruLoop;
use crate::state::memcg::TreeWalk;
use crate::state::memcg_lru::BinWalk;
use crate::types::{LruvecId, MemcgId, NodeId};

/// How the memcgs of a visit are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemcgSource {
    /// Visits groups in the order of the hierarchy.
    Tree(TreeWalk),
    /// Visits groups in the bins of the memcg LRU.
    Bins(BinWalk),
}

/// The visit of one node.
#[derive(Clone, Debug)]
pub(crate) struct NodeVisit {
    pub(crate) node: NodeId,
    pub(crate) source: MemcgSource,
    pub(crate) prepared: Option<ClassicPrepared>,
    pub(crate) member: Option<Member>,
    pub(crate) scanned_before: u64,
    pub(crate) reclaimed_before: u64,
}

/// The memcg being shrunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) memcg: MemcgId,
    pub(crate) lruvec: LruvecId,
    pub(crate) work: LruvecWork,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LruvecWork {
    Mglru(MglruLoop),
    Classic(ClassicLoop),
}

impl Member {
    /// Its loop asks for the memcg to be rotated.
    pub(crate) fn was_aged(&self) -> bool {
        matches!(self.work, LruvecWork::Mglru(work) if work.rotate)
    }
}
