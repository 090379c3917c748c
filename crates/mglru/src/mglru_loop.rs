//! The loop around evict for one lruvec: before the 2026 series (spec §5.7) and after it (§10.2),
//! with every step between them. Invariants I9–I14.

use alloc::vec::Vec;

use crate::aging::{Aging, AgingNeed, AgingStep};
use crate::config::Floor;
use crate::generations::Evictable;
use crate::host::Host;
use crate::lru::Lru;
use crate::process::Manner;
use crate::protection::Protection;
use crate::reclaim_control::Control;
use crate::stats::Counter;
use crate::types::{
    DEF_PRIORITY, FolioId, LruvecId, MAX_NR_ZONES, MIN_LRU_BATCH, NodeId, Reclaimer,
    SWAP_CLUSTER_MAX, Zone,
};

/// The loop over one lruvec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MglruLoop {
    lruvec: LruvecId,
    protection: Protection,
    /// Pages left of the budget (after).
    left: i64,
    /// Pages wanted: the budget as computed once (after), or this turn's (before).
    want: u64,
    /// Pages met so far.
    scanned: u64,
    /// Nothing is left to be had, or the goal is met.
    ended: bool,
    /// The memcg should be rotated: it was aged, or cannot be reclaimed from.
    pub(crate) rotate: bool,
    aged: bool,
    aging: Option<Aging>,
    walking: bool,
    /// The question whether to age was answered in this turn.
    asked: bool,
}

/// Says how one step of the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MglruStep {
    /// A slice of an aging walk.
    Aging {
        /// Folios promoted.
        held: u32,
    },
    /// A batch was evicted.
    Evicted {
        /// Folios handled under the lock.
        held: u32,
        /// Folios judged.
        judged: u32,
        /// Folios that must be waited for.
        waiting: Vec<FolioId>,
        /// The reclaimer must wait for writeback itself.
        throttle: bool,
    },
    /// The lruvec is done.
    Over,
}

/// The next step.
enum Turn {
    Over,
    Age,
    Evict(u64),
}

impl MglruLoop {
    pub(crate) fn evictable(&self) -> Evictable {
        Evictable::under(self.protection.swappiness)
    }

    fn over(&mut self, rotate: bool) -> Turn {
        self.rotate |= rotate;
        Turn::Over
    }
}

impl Lru {
    /// Starts the loop over one lruvec.
    pub(crate) fn start_mglru(
        &self,
        ctl: &mut Control,
        id: LruvecId,
        protection: Protection,
    ) -> MglruLoop {
        let mut work = MglruLoop {
            lruvec: id,
            protection,
            left: 0,
            want: 0,
            scanned: 0,
            ended: false,
            rotate: false,
            aged: false,
            aging: None,
            walking: ctl.is_kswapd() || ctl.who == Reclaimer::Proactive,
            asked: false,
        };
        if self.config.patches.p04 {
            work.want = self.budget(ctl, &mut work);
            work.left = work.want as i64;
        }
        work
    }

    /// Takes the loop one bounded step further.
    pub(crate) fn step_mglru(
        &mut self,
        ctl: &mut Control,
        work: &mut MglruLoop,
        host: &mut impl Host,
    ) -> MglruStep {
        if let Some(aging) = &mut work.aging {
            match self.step_aging(aging, host) {
                AgingStep::Walking { held } => return MglruStep::Aging { held },
                AgingStep::Over { aged } => {
                    work.aging = None;
                    if self.ends_after_aging(work, aged) {
                        return self.finish_mglru(ctl, work, host);
                    }
                }
            }
        }
        let turn = if work.ended {
            Turn::Over
        } else if self.config.patches.p04 {
            self.turn_after(ctl, work)
        } else {
            self.turn_before(ctl, work)
        };
        self.count_breaches(ctl, work, &turn);
        match turn {
            Turn::Over => self.finish_mglru(ctl, work, host),
            Turn::Age => {
                work.walking = true;
                work.aging = Some(self.start_aging(work.lruvec, work.evictable(), false));
                MglruStep::Aging { held: 0 }
            }
            Turn::Evict(max_folios) => self.evict_turn(ctl, work, max_folios, host),
        }
    }

    /// Counts an act that the loop since patch 4 never does, and a faulty port may (spec §10.4).
    fn count_breaches(&mut self, ctl: &Control, work: &MglruLoop, turn: &Turn) {
        if !self.config.patches.p04 {
            return;
        }
        let breach = match turn {
            Turn::Evict(_) if work.scanned >= work.want => Counter::BudgetOverruns,
            Turn::Age if ctl.priority == DEF_PRIORITY && self.is_spread(work) => {
                Counter::EarlyAgings
            }
            _ => return,
        };
        self.count(work.lruvec, breach, 1);
    }

    /// Three generations: aging may wait.
    fn is_spread(&self, work: &MglruLoop) -> bool {
        self.aging_need(work.lruvec, work.evictable()) == AgingNeed::Should
    }

    /// An aging attempt is over. Before patch 7 that was the end of the loop: a pass that another
    /// walker makes counts for nothing.
    fn ends_after_aging(&self, work: &mut MglruLoop, aged: bool) -> bool {
        work.rotate |= aged;
        work.aged = true;
        !(self.config.patches.p04 && self.config.patches.p07)
    }

    /// The budget, computed once per loop.
    fn budget(&self, ctl: &mut Control, work: &mut MglruLoop) -> u64 {
        let size = self.evictable_size(work.lruvec, work.evictable());
        if work.evictable() == Evictable::AnonOnly && !work.protection.can_swap {
            return 0;
        }
        let memcg = self.place(work.lruvec).memcg;
        if !self.memcgs[memcg].online {
            return size;
        }
        let budget = work.protection.protect(ctl, size) >> ctl.priority;
        match self.config.floor {
            Floor::None | Floor::V7 => budget,
            Floor::V2 => budget.max(SWAP_CLUSTER_MAX),
            Floor::V4 => {
                work.rotate |= budget == 0;
                budget
            }
            Floor::V5 => {
                let floored = if budget == 0 && ctl.priority < DEF_PRIORITY {
                    size.min(SWAP_CLUSTER_MAX)
                } else {
                    budget
                };
                work.rotate |= floored == 0;
                floored
            }
        }
    }

    fn turn_after(&self, ctl: &Control, work: &mut MglruLoop) -> Turn {
        if work.left <= 0 {
            return Turn::Over;
        }
        if work.protection.below_min() {
            return work.over(true);
        }
        if self.config.misport.whole_budget && !work.asked {
            self.overwrite_budget(work);
        }
        if !work.asked && self.aging_due(ctl, work) {
            work.asked = true;
            return Turn::Age;
        }
        work.asked = false;
        let left = work.left as u64;
        Turn::Evict(left.min(self.batch(left)))
    }

    /// Spec §10.4, defect 6. With two generations left the budget keeps its stale value.
    fn overwrite_budget(&self, work: &mut MglruLoop) {
        if self.aging_need(work.lruvec, work.evictable()) != AgingNeed::Must {
            work.left = self.evictable_size(work.lruvec, work.evictable()) as i64;
        }
    }

    fn aging_due(&self, ctl: &Control, work: &MglruLoop) -> bool {
        match self.aging_need(work.lruvec, work.evictable()) {
            AgingNeed::No => false,
            AgingNeed::Should => ctl.priority != DEF_PRIORITY || self.config.misport.ages_at_first,
            AgingNeed::Must => true,
        }
    }

    fn turn_before(&self, ctl: &mut Control, work: &mut MglruLoop) -> Turn {
        let Some(want) = self.want_before(ctl, work) else { return Turn::Age };
        if want <= 0 {
            return work.over(want < 0);
        }
        work.want = want as u64;
        Turn::Evict(self.batch(work.want))
    }

    /// Pages wanted; -1: give up and rotate; `None`: age first.
    fn want_before(&self, ctl: &mut Control, work: &MglruLoop) -> Option<i64> {
        if work.protection.below_min() {
            return Some(-1);
        }
        let need = self.aging_need(work.lruvec, work.evictable());
        let size = self.evictable_size(work.lruvec, work.evictable());
        let memcg = self.place(work.lruvec).memcg;
        let size = if need == AgingNeed::Must { 0 } else { size };
        if !self.memcgs[memcg].online && size > 0 {
            return Some(size as i64);
        }
        if need == AgingNeed::No || ctl.priority == DEF_PRIORITY {
            let must = need == AgingNeed::Must;
            let size = if must { 0 } else { work.protection.protect(ctl, size) };
            return Some((size >> ctl.priority) as i64);
        }
        None
    }

    fn evict_turn(
        &mut self,
        ctl: &mut Control,
        work: &mut MglruLoop,
        max_folios: u64,
        host: &mut impl Host,
    ) -> MglruStep {
        let manner =
            Manner { lruvec: work.lruvec, walking: work.walking, ignore_references: false };
        let swappiness = work.protection.swappiness;
        let out = self.evict(ctl, work.lruvec, max_folios, manner, swappiness, host);
        let root_is_done = self.config.patches.p04 && ctl.is_root() && work.aged;
        work.scanned += out.scanned;
        if !self.config.misport.endless_budget {
            work.left -= out.scanned as i64;
        }
        let served = !self.config.patches.p04 && work.scanned >= work.want;
        work.ended =
            out.scanned == 0 || root_is_done || served || self.is_enough(ctl, work.lruvec, host);
        MglruStep::Evicted {
            held: out.held,
            judged: out.judged,
            waiting: out.waiting,
            throttle: out.throttle,
        }
    }

    /// Root reclaim, and in 7.2 that of a group too, stops once its goal is met, or for kswapd once
    /// the zones are balanced.
    pub(crate) fn is_enough(&self, ctl: &Control, id: LruvecId, host: &mut impl Host) -> bool {
        if !ctl.is_root() && !self.config.releases.goal_stop {
            return false;
        }
        let gap = 2 << ctl.order;
        if ctl.reclaimed >= ctl.goal.max(gap) {
            return true;
        }
        ctl.is_kswapd() && ctl.order == 0 && self.is_above_high(self.place(id).node, host)
    }

    fn is_above_high(&self, node: NodeId, host: &mut impl Host) -> bool {
        let zones = (0..MAX_NR_ZONES as u8).map(|z| host.zone(node, Zone(z)));
        let balanced = |z: crate::host::ZoneView| z.free > z.high + MIN_LRU_BATCH + z.reserve;
        zones.into_iter().filter(|z| z.managed > 0).all(balanced)
    }

    /// End of the loop. Before patch 10 the flusher is woken here, if all that was met is dirty.
    fn finish_mglru(
        &mut self,
        ctl: &Control,
        work: &mut MglruLoop,
        host: &mut impl Host,
    ) -> MglruStep {
        work.ended = true;
        let all_dirty = ctl.nr.unqueued_dirty > 0 && ctl.nr.unqueued_dirty == ctl.nr.file_taken;
        let wakes = !self.config.is_k612() || self.config.stable_612;
        if !self.config.patches.p10 && all_dirty && wakes {
            self.wake_flusher(work.lruvec, host);
        }
        MglruStep::Over
    }
}
