//! A new youngest generation is made; the oldest one makes room for it (spec §4.5).

use crate::mglru::bulk::{AHEAD, Run};
use crate::state::Lru;
use crate::state::evictable::Evictable;
use crate::stats::Counter;
use crate::tiers;
use crate::types::{FolioId, LruType, LruvecId, MAX_LRU_BATCH, MAX_NR_ZONES, Nanos, Seq, Zone};

/// Says how one lock hold of making a new generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bump {
    /// Says that another caller made the generation.
    Lost,
    /// Says that the oldest generation is not empty yet.
    More {
        /// Folios moved.
        held: u32,
    },
    /// Says that this caller made the generation.
    Won,
}

impl Lru {
    /// One lock hold of making a new youngest generation, unless somebody has since `seq` was seen
    /// (spec §4.5). Others may reclaim between two of them, and find that the walk for this
    /// generation was made but the generation is not there.
    pub(crate) fn bump(
        &mut self,
        id: LruvecId,
        seq: Seq,
        evictable: Evictable,
        now: Nanos,
    ) -> Bump {
        if self.lruvecs[id.index()].mg.now(evictable) != seq {
            return Bump::Lost;
        }
        let mut left = MAX_LRU_BATCH;
        for lru_type in LruType::ALL {
            let mg = &self.lruvecs[id.index()].mg;
            let is_full = mg.moves(evictable, lru_type) && mg.is_full(lru_type);
            if is_full && !self.force_out_oldest(id, lru_type, evictable, &mut left) {
                return Bump::More { held: MAX_LRU_BATCH as u32 };
            }
        }
        self.open_generation(id, evictable, now);
        Bump::Won
    }

    fn open_generation(&mut self, id: LruvecId, evictable: Evictable, now: Nanos) {
        let lruvec = &mut self.lruvecs[id.index()];
        let mg = &mut lruvec.mg;
        for lru_type in LruType::ALL {
            if !mg.moves(evictable, lru_type) {
                continue;
            }
            let t = lru_type.index();
            let next = mg.max_seq[t].plus(1);
            let last_active = mg.slot(Seq(next.0 - mg.span.kept));
            let inactive = &mut self.nodes[lruvec.node.index()].inactive_pages[t];
            *inactive += mg.size_of(last_active, lru_type);
            let slot = mg.slot(next);
            *inactive -= mg.size_of(slot, lru_type);
            mg.birth[slot.index()][t] = now;
            (mg.max_seq[t], mg.scanned_since[t], mg.freed_since[t]) = (next, 0, 0);
        }
        self.count(id, Counter::AgingPasses, 1);
    }

    /// Empties the oldest generation into the next one; false when the lock must be given up first.
    /// For a type that is not evictable the window just slides: its coldest folios are then found
    /// in the slot of the youngest generation.
    fn force_out_oldest(
        &mut self,
        id: LruvecId,
        lru_type: LruType,
        evictable: Evictable,
        left: &mut u64,
    ) -> bool {
        if evictable.includes(lru_type) {
            for zone in 0..MAX_NR_ZONES {
                if !self.push_out_zone(id, lru_type, Zone(zone as u8), left) {
                    return false;
                }
            }
        }
        let mg = &mut self.lruvecs[id.index()].mg;
        mg.slid[lru_type.index()] |= !evictable.includes(lru_type);
        mg.controller.carry_over(lru_type);
        mg.min_seq[lru_type.index()].0 += 1;
        true
    }

    /// Moves a zone's list of the oldest generation to the tail of the next, from the tail on;
    /// false when `left` folios were too few.
    fn push_out_zone(
        &mut self,
        id: LruvecId,
        lru_type: LruType,
        zone: Zone,
        left: &mut u64,
    ) -> bool {
        let mut run = self.start_run(id, lru_type, zone);
        let mut next = self.next_to_meet(&run);
        while let Some(folio) = next.filter(|_| *left > 0) {
            if self.config.bulk.prefetch && *left % AHEAD as u64 == 0 {
                self.folios.bring_near(run.source, folio, AHEAD);
            }
            self.push_out(&mut run, folio);
            *left -= 1;
            next = self.next_to_meet(&run);
        }
        self.settle_run(run);
        next.is_none()
    }

    fn push_out(&mut self, run: &mut Run, id: FolioId) {
        let flags = self.folios[id].flags;
        let model = self.config.refs_model;
        match flags.generation() {
            Some(generation) if generation != run.from => {
                self.end_run(run);
                self.folios.unlink(id);
                self.link_generation(id, generation, false);
            }
            _ => {
                if self.config.version().counts_pushed && !tiers::is_saturated(flags, model) {
                    self.count_protected(id, self.tier(flags).index(), run.lru_type);
                }
                self.pass_on(run, id, true);
            }
        }
    }
}
