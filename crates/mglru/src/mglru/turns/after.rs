//! The loop since patch 4 of the 2026 series: one budget, spent batch by batch (spec §10.2).

use super::{MglruLoop, Turn};
use crate::batch::control::ScanControl;
use crate::config::Floor;
use crate::mglru::aging::AgingNeed;
use crate::state::Lru;
use crate::state::evictable::Evictable;
use crate::stats::Counter;
use crate::types::{DEF_PRIORITY, SWAP_CLUSTER_MAX};

impl Lru {
    /// The budget, computed once per loop.
    pub(super) fn budget(&self, ctl: &mut ScanControl, work: &mut MglruLoop) -> u64 {
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

    pub(super) fn turn_after(&self, ctl: &ScanControl, work: &mut MglruLoop) -> Turn {
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
        if self.aging_need(work.lruvec, work.swappiness()) != AgingNeed::Must {
            work.left = self.evictable_size(work.lruvec, work.evictable()) as i64;
        }
    }

    fn aging_due(&self, ctl: &ScanControl, work: &MglruLoop) -> bool {
        match self.aging_need(work.lruvec, work.swappiness()) {
            AgingNeed::No => false,
            AgingNeed::Should => ctl.priority != DEF_PRIORITY || self.config.misport.ages_at_first,
            AgingNeed::Must => true,
        }
    }

    /// Counts an act that the loop since patch 4 never does, and a faulty port may (spec §10.4).
    pub(super) fn count_breaches(&mut self, ctl: &ScanControl, work: &MglruLoop, turn: &Turn) {
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
        self.aging_need(work.lruvec, work.swappiness()) == AgingNeed::Should
    }
}
