//! A reclaim call as a value that is stepped (spec §9): priorities, nodes, memcgs, lruvecs.
//!
//! One step is one bounded unit of work, after which other reclaimers may run: an evict batch, a
//! slice of a page-table walk, 32 pages of a classic list, one memcg passed over. The state is
//! explicit: which priority, which node, which memcg, which loop.

use alloc::vec::Vec;

use crate::host::Host;
use crate::lru::Lru;
use crate::node_visit::NodeVisit;
use crate::process::Manner;
use crate::reclaim_control::{Control, Gfp};
use crate::stats::Counter;
use crate::throttle::Throttle;
use crate::types::{
    DEF_PRIORITY, FolioId, LruvecId, MIN_LRU_BATCH, MemcgId, Nanos, NodeId, Reclaimer,
    SWAP_CLUSTER_MAX, Zone,
};

/// Work done in a step, for the host to put a price on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Whose lock was held.
    pub lruvec: Option<LruvecId>,
    /// Folios handled under it.
    pub held: u32,
    /// Folios judged outside it.
    pub scanned: u32,
}

/// Says how a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    Again(Work),
    /// Wait, then step again.
    Sleep {
        /// For what.
        reason: Throttle,
        /// How long at most.
        at_most: Nanos,
    },
    /// Over.
    Done {
        /// Pages reclaimed.
        reclaimed: u64,
    },
}

/// Says which caller wants how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Once through the priorities.
    Call,
    /// kswapd: until the node is balanced.
    Balance,
    /// `memory.reclaim`: again and again until the request is met.
    Request {
        /// Pages requested.
        pages: u64,
        /// Pages reclaimed by earlier calls.
        done: u64,
        /// Fruitless calls still allowed.
        retries: u32,
    },
}

/// A reclaim call under way.
#[derive(Clone, Debug)]
pub struct Reclaim {
    pub(crate) ctl: Control,
    pub(crate) purpose: Purpose,
    pub(crate) home: NodeId,
    /// Nodes still to visit in this pass; `None`: the pass has not begun.
    pass: Option<u8>,
    pub(crate) visit: Option<NodeVisit>,
    /// Isolated folios whose writeback is waited for.
    pub(crate) waiting: (LruvecId, Vec<FolioId>),
    /// The caller slept for being crowded out by isolated pages once already.
    pub(crate) waited_isolated: bool,
    pub(crate) asleep_on: Option<NodeId>,
    started: bool,
    pub(crate) over: bool,
    /// Reclaimed before this descent (kswapd).
    pub(crate) total: u64,
    /// Reclaimed since the last start from the first priority (kswapd, lumpy era).
    pub(crate) pass_reclaimed: u64,
    /// The last visit is not yet waited for (kswapd, lumpy era).
    pub(crate) may_wait: bool,
}

impl Reclaim {
    fn new(ctl: Control, purpose: Purpose, home: NodeId) -> Self {
        Self {
            ctl,
            purpose,
            home,
            pass: None,
            visit: None,
            waiting: (LruvecId(0), Vec::new()),
            waited_isolated: false,
            asleep_on: None,
            started: false,
            over: false,
            total: 0,
            pass_reclaimed: 0,
            may_wait: false,
        }
    }

    /// A task found too little free memory: 32 pages of zones up to `zone`, home node first.
    pub fn direct(node: NodeId, zone: Zone, order: u8, gfp: Gfp) -> Self {
        let mut ctl = Control::new(Reclaimer::Direct, None, SWAP_CLUSTER_MAX);
        ctl.order = order;
        ctl.reclaim_idx = zone;
        ctl.gfp = gfp;
        Self::new(ctl, Purpose::Call, node)
    }

    /// The same for a block of `2^order` pages; `repeat`: it is tried again until it succeeds or
    /// reclaim makes no progress.
    pub fn block(node: NodeId, zone: Zone, order: u8, repeat: bool) -> Self {
        let mut call = Self::direct(node, zone, order, Gfp::default());
        call.ctl.repeat = repeat;
        call
    }

    /// A charge of `pages` went over the limit of `memcg`.
    pub fn memcg(memcg: MemcgId, pages: u64, gfp: Gfp) -> Self {
        let mut ctl = Control::new(Reclaimer::Direct, Some(memcg), pages);
        ctl.gfp = gfp;
        Self::new(ctl, Purpose::Call, NodeId(0))
    }

    /// The node is below its low watermark.
    pub fn kswapd(node: NodeId, order: u8) -> Self {
        let mut ctl = Control::new(Reclaimer::Kswapd, None, SWAP_CLUSTER_MAX);
        ctl.order = order;
        Self::new(ctl, Purpose::Balance, node)
    }

    /// `memory.reclaim` of `memcg`: `pages`, with an optional swappiness of its own.
    pub fn proactive(memcg: MemcgId, pages: u64, swappiness: Option<u8>) -> Self {
        let mut ctl = Control::new(Reclaimer::Proactive, Some(memcg), pages);
        ctl.swappiness = swappiness;
        let retries = crate::types::MAX_RECLAIM_RETRIES;
        Self::new(ctl, Purpose::Request { pages, done: 0, retries }, NodeId(0))
    }

    /// The priority the call has come down to.
    pub fn priority(&self) -> u8 {
        self.ctl.priority
    }

    /// Does the work of one bounded step.
    pub fn step(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        if let Some(node) = self.asleep_on.take() {
            lru.throttle_ended(node);
        }
        if !self.started {
            self.started = true;
            self.begin(lru);
        }
        if !self.waiting.1.is_empty() {
            return self.step_waiting(lru, host);
        }
        if self.over {
            return self.end(lru);
        }
        if self.visit.is_some() {
            return self.step_visit(lru, host);
        }
        match self.purpose {
            Purpose::Balance => self.next_balance(lru, host),
            _ => self.next_node(lru, host),
        }
    }

    fn begin(&mut self, lru: &mut Lru) {
        match self.purpose {
            Purpose::Balance => lru.counters[Counter::Pageoutrun] += 1,
            Purpose::Call => {
                lru.counters[Counter::ReclaimCalls] += 1;
                if !self.ctl.is_cgroup() {
                    lru.counters[Counter::Allocstall] += 1;
                }
            }
            Purpose::Request { .. } => self.next_request(lru, None),
        }
    }

    fn end(&mut self, lru: &mut Lru) -> Step {
        let reclaimed = match self.purpose {
            // Compaction can help: that is progress.
            Purpose::Call => self.ctl.reclaimed.max(u64::from(self.ctl.compaction_ready)),
            Purpose::Balance => self.total + self.ctl.reclaimed,
            Purpose::Request { done, .. } => done,
        };
        if self.purpose == Purpose::Call && reclaimed == 0 {
            lru.counters[Counter::ZeroProgressReclaims] += 1;
        }
        Step::Done { reclaimed }
    }

    /// The next node of this pass, or the end of the pass.
    fn next_node(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        let nr_nodes = lru.config.nr_nodes;
        let visited = self.pass.unwrap_or(0);
        if self.pass.is_none() {
            self.ctl.scanned = 0;
        }
        if visited == nr_nodes {
            self.pass = None;
            self.end_pass(lru);
            return Step::Again(Work::default());
        }
        self.pass = Some(visited + 1);
        let node = NodeId((self.home.0 + visited) % nr_nodes);
        if lru.is_compaction_ready(&self.ctl, node, host) {
            self.ctl.compaction_ready = true;
        } else {
            self.enter_node(lru, node, host);
        }
        Step::Again(Work::default())
    }

    /// All nodes were visited at this priority.
    fn end_pass(&mut self, lru: &mut Lru) {
        lru.counters[Counter::ReclaimPasses] += 1;
        let ctl = &mut self.ctl;
        if ctl.reclaimed < ctl.goal && ctl.priority > 0 && !ctl.compaction_ready {
            ctl.priority -= 1;
            return;
        }
        lru.snapshot_refaults(ctl);
        for node in 0..lru.config.nr_nodes {
            let target = lru.lruvec_id(ctl.top(), NodeId(node));
            lru.lruvecs[target.index()].cgroup_congested = false;
        }
        if ctl.reclaimed == 0 && !ctl.compaction_ready && self.try_harder(lru) {
            return;
        }
        match self.purpose {
            Purpose::Request { .. } => self.next_request(lru, Some(self.ctl.reclaimed)),
            _ => self.over = true,
        }
    }

    /// Nothing was reclaimed: what was held back the first time? One attempt for each.
    fn try_harder(&mut self, lru: &Lru) -> bool {
        let ctl = &mut self.ctl;
        if !ctl.full_walk {
            ctl.full_walk = true;
        } else if ctl.skipped_deactivate && !ctl.force_deactivate && !lru.config.is_mglru() {
            ctl.force_deactivate = true;
            ctl.skipped_deactivate = false;
        } else if ctl.low_skipped && !ctl.low_reclaim {
            ctl.low_reclaim = true;
            ctl.low_skipped = false;
        } else {
            return false;
        }
        ctl.priority = DEF_PRIORITY;
        true
    }

    /// The next call of a `memory.reclaim` request: for a quarter of what is left, or as in 6.1
    /// for all of it (spec §7.6). `last`: what the call before reclaimed; a fruitless one costs a
    /// retry.
    fn next_request(&mut self, lru: &Lru, last: Option<u64>) {
        let Purpose::Request { pages, done, retries } = &mut self.purpose else { return };
        *done += last.unwrap_or(0);
        *retries -= u32::from(last == Some(0));
        if *done >= *pages || *retries == 0 {
            self.over = true;
            return;
        }
        let left = *pages - *done;
        let batch = if lru.config.reclaim_in_quarters { left / 4 } else { left };
        let fresh = Control::new(Reclaimer::Proactive, self.ctl.target, batch);
        self.ctl = Control { swappiness: self.ctl.swappiness, ..fresh };
    }

    /// Processes the folios that were waited for.
    fn step_waiting(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        let (lruvec, folios) = &mut self.waiting;
        if lru.is_under_writeback(folios[0]) {
            let reason = Throttle::Folio(folios[0]);
            return Step::Sleep { reason, at_most: Nanos::MAX };
        }
        let lruvec = *lruvec;
        let mut list = core::mem::take(folios);
        lru.take_isolated_back(&mut list);
        let manner = Manner { lruvec, walking: false, ignore_references: false };
        let scanned = list.len() as u32;
        let done = lru.process(&mut self.ctl, &mut list, manner, host);
        self.ctl.reclaimed += done.freed;
        lru.hold_isolated(lruvec, &done.waiting);
        self.waiting = (lruvec, done.waiting);
        if lru.config.is_mglru() {
            lru.return_survivors(&mut list, None);
        } else {
            lru.return_classic(&mut list);
        }
        Step::Again(Work { lruvec: Some(lruvec), held: scanned, scanned })
    }
}

impl Lru {
    /// Large goals start at a lower priority (spec §9.2).
    pub(crate) fn set_initial_priority(
        &self,
        ctl: &mut Control,
        node: NodeId,
        host: &mut impl Host,
    ) {
        if ctl.priority != DEF_PRIORITY || ctl.goal < MIN_LRU_BATCH {
            return;
        }
        let [anon, file] = self.nodes[node.index()].inactive_pages;
        let can_swap = host.memcg(MemcgId::ROOT).swap_left > 0;
        let reclaimable = file + if can_swap { anon } else { 0 };
        let fls = |x: u64| 64 - i64::from(x.leading_zeros());
        let estimate = fls(reclaimable) - 1 - fls(ctl.goal - 1);
        ctl.priority = estimate.clamp(i64::from(DEF_PRIORITY / 2), i64::from(DEF_PRIORITY)) as u8;
    }
}
