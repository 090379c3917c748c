//! The visit of one node by a reclaim call: which memcgs it comes to, and what it does there
//! (spec §7.2, §7.4, §7.5, §9.5).
//!
//! Root reclaim under MGLRU takes its memcgs from the memcg LRU; everybody else walks a subtree.

use alloc::vec::Vec;

use crate::batch::control::{BatchStats, ScanControl};
use crate::batch::protection::Protection;
use crate::classic::ClassicStep;
use crate::host::Host;
use crate::mglru::turns::MglruStep;
use crate::reclaim::call::{Purpose, Reclaim, Step, Work};
use crate::reclaim::throttle::Throttle;
use crate::reclaim::visit::{LruvecWork, Member, MemcgSource, NodeVisit};
use crate::state::Lru;
use crate::state::memcg::TreeWalk;
use crate::state::memcg_lru::{BinWalk, Rotation, Segment, bins};
use crate::stats::Counter;
use crate::types::{MemcgId, NodeId};

impl Reclaim {
    /// Opens the visit of a node.
    pub(crate) fn enter_node(&mut self, lru: &mut Lru, node: NodeId, host: &mut impl Host) {
        let ctl = &mut self.ctl;
        ctl.nr = BatchStats::default();
        let mglru = lru.config.is_mglru();
        if mglru && ctl.is_root() {
            if !ctl.may_writepage || !ctl.may_unmap {
                return;
            }
            lru.set_initial_priority(ctl, node, host);
            if ctl.is_kswapd() {
                self.total += core::mem::take(&mut ctl.reclaimed);
            }
        }
        let full = ctl.is_kswapd() || ctl.full_walk || !lru.config.partial_walks;
        let source = if ctl.is_root() && lru.config.uses_memcg_lru() {
            MemcgSource::Bins(lru.nodes[node.index()].memcg_lru.walk(&mut bins(host)))
        } else if full {
            MemcgSource::Tree(TreeWalk::Full { last: None })
        } else {
            MemcgSource::Tree(TreeWalk::Shared { round: None })
        };
        self.visit = Some(NodeVisit {
            node,
            source,
            prepared: (!mglru).then(|| lru.prepare_classic(ctl, node, host)),
            member: None,
            scanned_before: ctl.scanned,
            reclaimed_before: ctl.reclaimed,
        });
    }

    pub(crate) fn step_visit(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        let mut visit = self.visit.take().expect("a visit is open");
        let Some(mut member) = visit.member.take() else {
            if !self.next_member(lru, &mut visit, host) {
                return self.leave_node(lru, &visit, host);
            }
            self.visit = Some(visit);
            return Step::Again(Work::default());
        };
        let (step, over) = self.step_member(lru, visit.node, &mut member, host);
        if !over {
            visit.member = Some(member);
        } else if self.finish_member(lru, &mut visit, &member, host) {
            if let MemcgSource::Bins(walk) = &mut visit.source {
                lru.rotate_left(visit.node, walk, host);
            }
            return self.leave_node(lru, &visit, host);
        }
        self.visit = Some(visit);
        step
    }

    /// Opens the next memcg that may be reclaimed from. False: the walk is over.
    fn next_member(&mut self, lru: &mut Lru, visit: &mut NodeVisit, host: &mut impl Host) -> bool {
        while let Some(memcg) = lru.next_memcg(self.ctl.top(), visit, host) {
            let protection = lru.protection(&self.ctl, memcg, visit.node, host);
            if self.is_passed_over(lru, visit, memcg, &protection) {
                continue;
            }
            if protection.below_low() {
                host.breached_low(memcg);
            }
            let lruvec = lru.lruvec_id(memcg, visit.node);
            lru.drain_batch();
            let ctl = &mut self.ctl;
            let work = match visit.prepared {
                None => LruvecWork::Mglru(lru.start_mglru(ctl, lruvec, protection)),
                Some(prepared) => {
                    LruvecWork::Classic(lru.start_classic(ctl, lruvec, prepared, &protection))
                }
            };
            visit.member = Some(Member { memcg, lruvec, work });
            return true;
        }
        false
    }

    /// Is the memcg protected from this reclaim?
    fn is_passed_over(
        &mut self,
        lru: &Lru,
        visit: &mut NodeVisit,
        memcg: MemcgId,
        protection: &Protection,
    ) -> bool {
        let MemcgSource::Bins(walk) = &mut visit.source else {
            let spared = protection.below_low() && !self.ctl.low_reclaim;
            self.ctl.low_skipped |= spared && !protection.below_min();
            return protection.below_min() || spared;
        };
        let met_before = lru.nodes[visit.node.index()].memcg_lru.segment(memcg) == Segment::Tail;
        let rotation = if protection.below_min() {
            Rotation::Young
        } else if protection.below_low() && !met_before {
            Rotation::Tail
        } else {
            return false;
        };
        walk.rotation = Some((memcg, rotation));
        true
    }

    /// Takes one step of the loop over one lruvec; says whether it was the last.
    fn step_member(
        &mut self,
        lru: &mut Lru,
        node: NodeId,
        member: &mut Member,
        host: &mut impl Host,
    ) -> (Step, bool) {
        let (held, judged, waiting, throttle) = match &mut member.work {
            LruvecWork::Mglru(work) => match lru.step_mglru(&mut self.ctl, work, host) {
                MglruStep::Over => return (Step::Again(Work::default()), true),
                MglruStep::Aging { held } => (held, 0, Vec::new(), None),
                MglruStep::Evicted { held, judged, waiting, throttle } => {
                    (held, judged, waiting, throttle.then_some(Throttle::Writeback))
                }
            },
            LruvecWork::Classic(work) => match lru.step_classic(&mut self.ctl, work, host) {
                ClassicStep::Over => return (Step::Again(Work::default()), true),
                ClassicStep::TooManyIsolated => return (self.crowded_out(lru, node), false),
                ClassicStep::Shrunk { held, judged, waiting, throttle } => {
                    (held, judged, waiting, throttle.then_some(Throttle::Writeback))
                }
            },
        };
        if !waiting.is_empty() {
            lru.hold_isolated(member.lruvec, &waiting);
            self.waiting = (member.lruvec, waiting);
        }
        if let Some(step) = throttle.and_then(|reason| self.sleep(lru, node, reason)) {
            return (step, false);
        }
        let work = Work { lruvec: Some(member.lruvec), held, scanned: judged };
        (Step::Again(work), false)
    }

    /// Too many pages are isolated: wait once, then pass the list over.
    fn crowded_out(&mut self, lru: &mut Lru, node: NodeId) -> Step {
        if core::mem::replace(&mut self.waited_isolated, true) {
            return Step::Again(Work::default());
        }
        self.sleep(lru, node, Throttle::Isolated).unwrap_or(Step::Again(Work::default()))
    }

    pub(crate) fn sleep(&mut self, lru: &mut Lru, node: NodeId, reason: Throttle) -> Option<Step> {
        let at_most = lru.throttle(node, reason)?;
        self.throttled_on = node;
        self.asleep_on = (reason == Throttle::Writeback).then_some(node);
        Some(Step::Sleep { reason, at_most })
    }

    /// A memcg is done: its slab caches too. True when the visit may end here.
    fn finish_member(
        &mut self,
        lru: &mut Lru,
        visit: &mut NodeVisit,
        member: &Member,
        host: &mut impl Host,
    ) -> bool {
        let slab = host.shrink_slab(member.memcg, visit.node, self.ctl.priority);
        lru.count(member.lruvec, Counter::SlabsScanned, slab.scanned);
        if self.ctl.is_root() {
            self.ctl.reclaimed += slab.freed;
        }
        match &mut visit.source {
            MemcgSource::Bins(walk) => {
                let rotation = lru.rotation_after(&self.ctl, member);
                walk.rotation = rotation.map(|rotation| (member.memcg, rotation));
                lru.is_enough(&self.ctl, member.lruvec, host)
            }
            MemcgSource::Tree(walk) => {
                if member.was_aged() && lru.config.uses_memcg_lru() {
                    let memcg_lru = &mut lru.nodes[visit.node.index()].memcg_lru;
                    memcg_lru.rotate(member.memcg, Rotation::Young, &mut bins(host));
                }
                matches!(walk, TreeWalk::Shared { .. }) && self.ctl.reclaimed >= self.ctl.goal
            }
        }
    }

    /// The node is done: judge what was met there (not in MGLRU root reclaim).
    fn leave_node(&mut self, lru: &mut Lru, visit: &NodeVisit, host: &mut impl Host) -> Step {
        let node = visit.node;
        let reclaimed = self.ctl.reclaimed - visit.reclaimed_before.min(self.ctl.reclaimed);
        if reclaimed > 0 {
            lru.nodes[node.index()].kswapd_failures = 0;
        }
        if self.purpose == Purpose::Balance {
            self.left_balance(lru, visit.scanned_before);
        }
        let scanned = self.ctl.scanned - visit.scanned_before.min(self.ctl.scanned);
        let again = self.purpose == Purpose::Call
            && lru.continues(&self.ctl, node, (scanned, reclaimed), host);
        if again {
            self.enter_node(lru, node, host);
            return Step::Again(Work::default());
        }
        let silent = lru.config.is_mglru() && self.ctl.is_root();
        let first = if silent { None } else { lru.judge_node(&self.ctl, node) };
        let reason = first.or_else(|| lru.judge_progress(&self.ctl, node, scanned, reclaimed));
        let step = reason.and_then(|reason| self.sleep(lru, node, reason));
        step.unwrap_or(Step::Again(Work::default()))
    }
}

impl Lru {
    /// The next memcg of a visit; the one just left is put where it belongs.
    fn next_memcg(
        &mut self,
        top: MemcgId,
        visit: &mut NodeVisit,
        host: &mut impl Host,
    ) -> Option<MemcgId> {
        let node = visit.node;
        let walk = match &mut visit.source {
            MemcgSource::Tree(walk) => return self.memcgs.next(top, node, walk),
            MemcgSource::Bins(walk) => walk,
        };
        loop {
            let next = self.nodes[node.index()].memcg_lru.next(walk);
            self.rotate_left(node, walk, host);
            if next.is_some() || !self.nodes[node.index()].memcg_lru.next_bin(walk) {
                return next;
            }
        }
    }

    /// Puts the memcg that a walk of the memcg LRU has just left where it belongs.
    fn rotate_left(&mut self, node: NodeId, walk: &mut BinWalk, host: &mut impl Host) {
        let Some((memcg, rotation)) = walk.rotation.take() else { return };
        if !self.memcgs[memcg].released {
            self.nodes[node.index()].memcg_lru.rotate(memcg, rotation, &mut bins(host));
        }
    }

    /// Where a memcg belongs after root reclaim has shrunk it (spec §7.2); `None`: where it is. One
    /// that is offline or too small for this priority is tried once more in this generation.
    fn rotation_after(&self, ctl: &ScanControl, member: &Member) -> Option<Rotation> {
        let LruvecWork::Mglru(work) = &member.work else { return None };
        let online = self.memcgs[member.memcg].online;
        if work.rotate && online {
            return Some(Rotation::Young);
        }
        let size = self.evictable_size(member.lruvec, work.evictable());
        let is_sizable = if online { size >> ctl.priority != 0 } else { size != 0 };
        if !work.rotate && is_sizable {
            return None;
        }
        let node = self.place(member.lruvec).node;
        match self.nodes[node.index()].memcg_lru.segment(member.memcg) {
            Segment::Tail => Some(Rotation::Young),
            Segment::Default | Segment::Head => Some(Rotation::Tail),
        }
    }
}
