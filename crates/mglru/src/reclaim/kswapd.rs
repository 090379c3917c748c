//! kswapd: reclaims a node until a zone is above its high watermark (spec §9.3, §4.7).

use crate::batch::control::ScanControl;
use crate::batch::views;
use crate::contig::Contig;
use crate::host::{Host, OrderView};
use crate::reclaim::call::{Reclaim, Step, Work};
use crate::reclaim::throttle::Throttle;
use crate::state::Lru;
use crate::state::evictable::Evictable;
use crate::stats::Counter;
use crate::types::{DEF_PRIORITY, MemcgId, NodeId, SWAP_CLUSTER_MAX};

impl Reclaim {
    /// One turn of kswapd's loop: enough, given up, or another visit at this priority.
    pub(crate) fn next_balance(&mut self, lru: &mut Lru, host: &mut impl Host) -> Step {
        let node = self.home;
        let contig = lru.config.contig;
        self.settle_for_pages(contig);
        let zones = views(node, self.ctl.order, host);
        if contig.is_balanced(self.ctl.order, &zones) {
            lru.can_sleep(node);
            self.over = true;
        } else if let Some(step) = self.wait_for_writers(lru, &zones) {
            return step;
        } else if self.ctl.priority > 0 {
            self.start_balance(lru, &zones, host);
        } else if contig.is_lumpy_era() && self.ctl.order > 0 {
            // A whole descent found next to nothing: single pages will have to do.
            self.ctl.order = 0;
            self.ctl.priority = DEF_PRIORITY;
        } else {
            if self.total + self.ctl.reclaimed == 0 {
                lru.nodes[node.index()].kswapd_failures += 1;
            }
            self.over = true;
        }
        Step::Again(Work::default())
    }

    /// The gap for compaction is enough (6.12): it makes the block.
    fn settle_for_pages(&mut self, contig: Contig) {
        let reclaimed = self.total + self.ctl.reclaimed;
        if contig == Contig::K612 && reclaimed >= crate::contig::compact_gap(self.ctl.order) {
            self.ctl.order = 0;
        }
    }

    /// In the lumpy era kswapd that has trouble waits for writers between visits, unless memory is
    /// so short that it must not.
    fn wait_for_writers(&mut self, lru: &mut Lru, zones: &[OrderView]) -> Option<Step> {
        let waits = core::mem::take(&mut self.may_wait)
            && self.ctl.scanned > 0
            && self.ctl.priority < DEF_PRIORITY - 2;
        if !waits {
            return None;
        }
        if zones.iter().any(|zone| zone.managed > 0 && !zone.above_min) {
            lru.counters[Counter::KswapdSkipCongestionWait] += 1;
            return None;
        }
        self.sleep(lru, self.home, Throttle::Writeback)
    }

    fn start_balance(&mut self, lru: &mut Lru, zones: &[OrderView], host: &mut impl Host) {
        let eligible = zones.iter().filter(|z| z.managed > 0);
        self.ctl.goal = eligible.map(|z| z.high.max(SWAP_CLUSTER_MAX)).sum();
        if lru.config.is_mglru() {
            lru.age_node(&self.ctl, self.home, host);
        } else {
            lru.age_active_anon(&self.ctl, self.home, host);
        }
        self.total += core::mem::take(&mut self.ctl.reclaimed);
        self.ctl.scanned = 0;
        self.enter_node(lru, self.home, host);
        if self.visit.is_none() {
            self.over = true;
        }
    }

    /// A visit is over: pressure rises when it fell short of its goal. In the lumpy era it rises
    /// until 32 pages were reclaimed, and starts over then.
    pub(crate) fn left_balance(&mut self, lru: &Lru, scanned_before: u64) {
        let scanned = self.ctl.scanned - scanned_before.min(self.ctl.scanned);
        if lru.config.contig.is_lumpy_era() {
            self.may_wait = true;
            self.pass_reclaimed += self.ctl.reclaimed;
            let over = self.pass_reclaimed >= SWAP_CLUSTER_MAX;
            self.pass_reclaimed *= u64::from(!over);
            self.ctl.priority = if over { DEF_PRIORITY } else { self.ctl.priority - 1 };
        } else if scanned < self.ctl.goal || self.ctl.reclaimed == 0 {
            self.ctl.priority = self.ctl.priority.min(DEF_PRIORITY) - 1;
        }
    }
}

impl Lru {
    /// The node is balanced: nobody needs to slow down on its account.
    fn can_sleep(&mut self, node: NodeId) {
        let node = &mut self.nodes[node.index()];
        node.writeback_flag = false;
        node.dirty_flag = false;
        node.congested = false;
    }

    /// Does what kswapd does before it reclaims from a node. `min_ttl`: when the oldest generation
    /// of every lruvec is younger than it, the working set does not fit, and thrashing is worse
    /// than an out-of-memory kill. One group that could be reclaimed from spares all
    /// (spec §K71.11).
    fn age_node(&mut self, ctl: &ScanControl, node: NodeId, host: &mut impl Host) {
        if self.config.releases.stale_protection {
            self.refresh_protection(ctl, host);
        }
        if self.config.min_ttl_ms == 0 {
            return;
        }
        let born_before = host.now().saturating_sub(self.config.min_ttl_ms * 1_000_000);
        let any = self.memcgs.ids().any(|m| self.is_old_enough(ctl, (m, node), born_before, host));
        self.nodes[node.index()].wakes.out_of_memory |= !any;
    }

    /// Could this group be reclaimed from, of the types that its swappiness leaves?
    fn is_old_enough(
        &mut self,
        ctl: &ScanControl,
        (memcg, node): (MemcgId, NodeId),
        born_before: u64,
        host: &mut impl Host,
    ) -> bool {
        let protection = self.protection(ctl, memcg, node, host);
        let evictable = Evictable::under(protection.swappiness);
        let id = self.lruvec_id(memcg, node);
        let size = self.evictable_size(id, evictable);
        let online = self.memcgs[memcg].online;
        let sizable = if online { size >> ctl.priority != 0 } else { size != 0 };
        let mg = &self.lruvecs[id.index()].mg;
        let is_old = mg.oldest_birth(evictable, self.config.aging_rule) <= born_before;
        !protection.below_min() && sizable && is_old
    }
}
