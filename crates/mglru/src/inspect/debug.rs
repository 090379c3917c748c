//! The debug interface of the generations: age once, evict one generation (the `+` and `-`
//! commands of lru_gen).

use crate::batch::control::ScanControl;
use crate::batch::process::Manner;
use crate::host::Host;
use crate::state::Lru;
use crate::state::aging::{Aging, AgingStep};
use crate::state::evictable::Evictable;
use crate::types::{LruvecId, Reclaimer, Seq};

impl Lru {
    /// Makes a new youngest generation. `swappiness` decides which types are walked and moved,
    /// `force` walks every table. False when somebody else did it meanwhile, and, unless forced,
    /// when there are as many generations as there can be (K612: measured on 6.12.117, ERANGE).
    pub fn debug_age(
        &mut self,
        id: LruvecId,
        swappiness: u8,
        force: bool,
        host: &mut impl Host,
    ) -> bool {
        let evictable = Evictable::under(swappiness);
        let mg = &self.lruvecs[id.index()].mg;
        let full = mg.is_full(mg.longest(evictable, self.config.aging_rule));
        if self.config.version().bounds_commands && !force && full {
            return false;
        }
        let mut aging = self.start_aging(id, evictable, force);
        loop {
            if let Some(aged) = self.step_age(&mut aging, host) {
                return aged;
            }
        }
    }

    /// Begins what [`Self::debug_age`] does, for a host that has other work between two slices.
    pub fn begin_age(&self, id: LruvecId, swappiness: u8, force: bool) -> Aging {
        self.start_aging(id, Evictable::under(swappiness), force)
    }

    /// Runs one slice; once the aging is over, says whether this caller made the new generation.
    pub fn step_age(&mut self, aging: &mut Aging, host: &mut impl Host) -> Option<bool> {
        match self.step_aging(aging, host) {
            AgingStep::Over { aged } => Some(aged),
            AgingStep::Walking { .. } => None,
        }
    }

    /// Evicts generation `seq` and all older ones, `goal` pages at most. Returns the pages
    /// reclaimed; `None` when `seq` is one of the youngest, which cannot be evicted.
    pub fn debug_evict(
        &mut self,
        id: LruvecId,
        seq: Seq,
        swappiness: u8,
        goal: u64,
        host: &mut impl Host,
    ) -> Option<u64> {
        let mg = &self.lruvecs[id.index()].mg;
        if seq.plus(mg.span.kept) > mg.last_seq() {
            return None;
        }
        let memcg = self.place(id).memcg;
        let mut ctl = ScanControl::new(Reclaimer::Direct, Some(memcg), goal);
        ctl.swappiness = Some(swappiness);
        while ctl.reclaimed < goal && self.oldest_seq(id, swappiness) <= seq {
            let batch = self.batch(goal - ctl.reclaimed);
            let manner = Manner { lruvec: id, walking: true, ignore_references: false };
            let out = self.evict(&mut ctl, id, batch, manner, swappiness, host);
            if out.scanned == 0 {
                break;
            }
        }
        Some(ctl.reclaimed)
    }

    /// Returns the oldest generation of the types that `swappiness` allows to evict.
    pub fn oldest_seq(&self, id: LruvecId, swappiness: u8) -> Seq {
        let evictable = Evictable::under(swappiness);
        let mg = &self.lruvecs[id.index()].mg;
        evictable.types().map(|t| mg.first_seq(t)).min().expect("one type is evictable")
    }
}
