//! The loop around evict for one lruvec: before the 2026 series (spec §5.7) and after it (§10.2),
//! with every step between them. Invariants I9–I14.

mod after;
mod before;

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::batch::process::Manner;
use crate::batch::protection::Protection;
use crate::host::Host;
use crate::state::Lru;
use crate::state::aging::{Aging, AgingStep};
use crate::state::evictable::Evictable;
use crate::types::{
    FolioId, LruvecId, MAX_LRU_BATCH, MAX_NR_ZONES, MIN_LRU_BATCH, NodeId, Reclaimer, Zone,
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
    /// Walks a slice of an aging walk.
    Aging {
        /// Folios promoted.
        held: u32,
    },
    /// Reports an evicted batch.
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
    /// Ends the work on the lruvec.
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
        Evictable::under(self.swappiness())
    }

    fn swappiness(&self) -> u8 {
        self.protection.swappiness
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
        ctl: &mut ScanControl,
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
        ctl: &mut ScanControl,
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
                work.aging = Some(self.start_needed(work.lruvec, work.swappiness()));
                MglruStep::Aging { held: 0 }
            }
            Turn::Evict(max_folios) => self.evict_turn(ctl, work, max_folios, host),
        }
    }

    /// An aging attempt is over. Before patch 7 that was the end of the loop: a pass that another
    /// walker makes counts for nothing.
    fn ends_after_aging(&self, work: &mut MglruLoop, aged: bool) -> bool {
        work.rotate |= aged;
        work.aged = true;
        !(self.config.patches.p04 && self.config.patches.p07)
    }

    /// Folios of one batch at most. 6.12 scans up to the cap, 7.0 no more than it wants; patch 3
    /// only moves the code (I26).
    pub(crate) fn batch(&self, want: u64) -> u64 {
        match (self.config.patches.p06, self.config.version().scans_to_cap) {
            (true, _) => want.min(MIN_LRU_BATCH),
            (false, true) => MAX_LRU_BATCH,
            (false, false) => want.min(MAX_LRU_BATCH),
        }
    }

    fn evict_turn(
        &mut self,
        ctl: &mut ScanControl,
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
    pub(crate) fn is_enough(&self, ctl: &ScanControl, id: LruvecId, host: &mut impl Host) -> bool {
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
        ctl: &ScanControl,
        work: &mut MglruLoop,
        host: &mut impl Host,
    ) -> MglruStep {
        work.ended = true;
        let all_dirty = ctl.nr.unqueued_dirty > 0 && ctl.nr.unqueued_dirty == ctl.nr.file_taken;
        let wakes = self.config.version().wakes_flusher_at_end;
        if !self.config.patches.p10 && all_dirty && wakes {
            self.wake_flusher(work.lruvec, host);
        }
        MglruStep::Over
    }
}
