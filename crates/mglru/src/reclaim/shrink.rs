//! A reclaim call as a value that is stepped (spec §9): priorities, nodes, memcgs, lruvecs.
//!
//! One step is one bounded unit of work, after which other reclaimers may run: an evict batch, a
//! slice of a page-table walk, 32 pages of a classic list, one memcg passed over. The state is
//! explicit: which priority, which node, which memcg, which loop.

use crate::batch::control::ScanControl;
use crate::batch::process::Manner;
use crate::host::{Host, TraceEvent};
use crate::reclaim::call::{Purpose, Reclaim, Step, Work};
use crate::reclaim::throttle::Throttle;
use crate::state::Lru;
use crate::stats::Counter;
use crate::types::{DEF_PRIORITY, MIN_LRU_BATCH, MemcgId, Nanos, NodeId, Reclaimer};

impl Reclaim {
    /// Does the work of one bounded step.
    pub fn step(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        if let Some(node) = self.asleep_on.take() {
            lru.throttle_ended(node);
        }
        if !self.started {
            self.started = true;
            self.begin(lru, host);
        }
        if !self.waiting.1.is_empty() {
            return self.step_waiting(lru, host);
        }
        if self.over {
            return self.end(lru, host);
        }
        if self.visit.is_some() {
            return self.step_visit(lru, host);
        }
        match self.purpose {
            Purpose::Balance => self.next_balance(lru, host),
            _ => self.next_node(lru, host),
        }
    }

    fn begin(&mut self, lru: &mut Lru, host: &mut impl Host) {
        match self.purpose {
            Purpose::Balance => lru.counters[Counter::Pageoutrun] += 1,
            Purpose::Call => {
                lru.counters[Counter::ReclaimCalls] += 1;
                self.trace_begin(host);
                if !self.ctl.is_cgroup() {
                    lru.counters[Counter::Allocstall] += 1;
                }
            }
            Purpose::Request { .. } => self.next_request(lru, None, host),
        }
    }

    fn end(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        let reclaimed = match self.purpose {
            // Compaction can help: that is progress.
            Purpose::Call => self.ctl.reclaimed.max(u64::from(self.ctl.compaction_ready)),
            Purpose::Balance => self.total + self.ctl.reclaimed,
            Purpose::Request { done, .. } => done,
        };
        if self.purpose == Purpose::Call && reclaimed == 0 {
            lru.counters[Counter::ZeroProgressReclaims] += 1;
        }
        if self.purpose == Purpose::Call {
            self.trace_end(host);
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
            self.end_pass(lru, host);
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
    fn end_pass(&mut self, lru: &mut Lru, host: &mut impl Host) {
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
            Purpose::Request { .. } => {
                self.trace_end(host);
                self.next_request(lru, Some(self.ctl.reclaimed), host);
            }
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
    fn next_request(&mut self, lru: &Lru, last: Option<u64>, host: &mut impl Host) {
        let Purpose::Request { pages, done, retries } = &mut self.purpose else { return };
        *done += last.unwrap_or(0);
        *retries -= u32::from(last == Some(0));
        if *done >= *pages || *retries == 0 {
            self.over = true;
            return;
        }
        let left = *pages - *done;
        let batch = if lru.config.reclaim_in_quarters { left / 4 } else { left };
        let fresh = ScanControl::new(Reclaimer::Proactive, self.ctl.target, batch);
        self.ctl = ScanControl { swappiness: self.ctl.swappiness, ..fresh };
        self.trace_begin(host);
    }

    fn trace_begin(&self, host: &mut impl Host) {
        let ScanControl { target, order, .. } = self.ctl;
        host.trace(TraceEvent::CallBegins { target, order });
    }

    fn trace_end(&self, host: &mut impl Host) {
        let ScanControl { target, reclaimed, .. } = self.ctl;
        host.trace(TraceEvent::CallEnds { target, reclaimed });
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
        let lru_type = list.first().map(|&first| lru.folios[first].lru_type());
        let done = lru.process(&mut self.ctl, &mut list, manner, host);
        if let Some(lru_type) = lru_type {
            let event = done.event(&self.ctl, lru.place(lruvec), u64::from(scanned), lru_type);
            host.trace(TraceEvent::ShrunkInactive(event));
        }
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
        ctl: &mut ScanControl,
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
