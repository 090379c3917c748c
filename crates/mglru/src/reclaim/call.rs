//! A reclaim call as data: what is wanted, how far it has come, what a step answers (spec §9).

use alloc::vec::Vec;

use crate::batch::control::{Gfp, ScanControl};
use crate::reclaim::throttle::Throttle;
use crate::reclaim::visit::NodeVisit;
use crate::types::{FolioId, LruvecId, MemcgId, Nanos, NodeId, Reclaimer, SWAP_CLUSTER_MAX, Zone};

/// Counts the work done in a step, for the host to put a price on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Names the lruvec whose lock was held.
    pub lruvec: Option<LruvecId>,
    /// Counts folios handled under the lock.
    pub held: u32,
    /// Counts folios judged outside the lock.
    pub scanned: u32,
}

/// Says how a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Says that more is to do.
    Again(Work),
    /// Asks the caller to wait, then to step again.
    Sleep {
        /// For what.
        reason: Throttle,
        /// How long at most.
        at_most: Nanos,
    },
    /// Says that the call is over.
    Done {
        /// Pages reclaimed.
        reclaimed: u64,
    },
}

/// Says which caller wants how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Goes once through the priorities.
    Call,
    /// Runs as kswapd until the node is balanced.
    Balance,
    /// Runs as `memory.reclaim`: again and again until the request is met.
    Request {
        /// Pages requested.
        pages: u64,
        /// Pages reclaimed by earlier calls.
        done: u64,
        /// Fruitless calls still allowed.
        retries: u32,
    },
}

/// Holds the state of a reclaim call under way.
#[derive(Clone, Debug)]
pub struct Reclaim {
    pub(crate) ctl: ScanControl,
    pub(crate) purpose: Purpose,
    pub(crate) home: NodeId,
    /// Nodes still to visit in this pass; `None`: the pass has not begun.
    pub(crate) pass: Option<u8>,
    pub(crate) visit: Option<NodeVisit>,
    /// Isolated folios whose writeback is waited for.
    pub(crate) waiting: (LruvecId, Vec<FolioId>),
    /// The caller slept for being crowded out by isolated pages once already.
    pub(crate) waited_isolated: bool,
    pub(crate) asleep_on: Option<NodeId>,
    /// Names the node of its last sleep.
    pub(crate) throttled_on: NodeId,
    pub(crate) started: bool,
    pub(crate) over: bool,
    /// Reclaimed before this descent (kswapd).
    pub(crate) total: u64,
    /// Reclaimed since the last start from the first priority (kswapd, lumpy era).
    pub(crate) pass_reclaimed: u64,
    /// The last visit is not yet waited for (kswapd, lumpy era).
    pub(crate) may_wait: bool,
}

impl Reclaim {
    fn new(ctl: ScanControl, purpose: Purpose, home: NodeId) -> Self {
        Self {
            ctl,
            purpose,
            home,
            pass: None,
            visit: None,
            waiting: (LruvecId(0), Vec::new()),
            waited_isolated: false,
            asleep_on: None,
            throttled_on: home,
            started: false,
            over: false,
            total: 0,
            pass_reclaimed: 0,
            may_wait: false,
        }
    }

    /// Creates the call of a task that found too little free memory: 32 pages of zones up to
    /// `zone`, home node first.
    pub fn direct(node: NodeId, zone: Zone, order: u8, gfp: Gfp) -> Self {
        let mut ctl = ScanControl::new(Reclaimer::Direct, None, SWAP_CLUSTER_MAX);
        ctl.order = order;
        ctl.reclaim_idx = zone;
        ctl.gfp = gfp;
        Self::new(ctl, Purpose::Call, node)
    }

    /// Creates the same call for a block of `2^order` pages; `repeat`: it is tried again until it
    /// succeeds or reclaim makes no progress.
    pub fn block(node: NodeId, zone: Zone, order: u8, repeat: bool) -> Self {
        let mut call = Self::direct(node, zone, order, Gfp::default());
        call.ctl.repeat = repeat;
        call
    }

    /// Creates the call for a charge of `pages` that went over the limit of `memcg`.
    pub fn memcg(memcg: MemcgId, pages: u64, gfp: Gfp) -> Self {
        let mut ctl = ScanControl::new(Reclaimer::Direct, Some(memcg), pages);
        ctl.gfp = gfp;
        Self::new(ctl, Purpose::Call, NodeId(0))
    }

    /// Starts kswapd's call: the node is below its low watermark.
    pub fn kswapd(node: NodeId, order: u8) -> Self {
        let mut ctl = ScanControl::new(Reclaimer::Kswapd, None, SWAP_CLUSTER_MAX);
        ctl.order = order;
        Self::new(ctl, Purpose::Balance, node)
    }

    /// Creates the call for `memory.reclaim` of `memcg`: `pages`, with an optional own swappiness.
    pub fn proactive(memcg: MemcgId, pages: u64, swappiness: Option<u8>) -> Self {
        let mut ctl = ScanControl::new(Reclaimer::Proactive, Some(memcg), pages);
        ctl.swappiness = swappiness;
        let retries = crate::types::MAX_RECLAIM_RETRIES;
        Self::new(ctl, Purpose::Request { pages, done: 0, retries }, NodeId(0))
    }

    /// Returns the node on whose account the last step asked the caller to sleep.
    pub fn throttled_on(&self) -> NodeId {
        self.throttled_on
    }

    /// Tells which kind of caller reclaims.
    pub fn reclaimer(&self) -> Reclaimer {
        self.ctl.who
    }

    /// Tells whose limit is enforced; `None`: the machine is short of memory.
    pub fn target(&self) -> Option<MemcgId> {
        self.ctl.target
    }

    /// Returns the priority that the call has come down to.
    pub fn priority(&self) -> u8 {
        self.ctl.priority
    }
}
