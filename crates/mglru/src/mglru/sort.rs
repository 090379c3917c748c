//! Decides the fate of a folio met at the tail of the oldest list (spec §5.3).

use crate::batch::control::ScanControl;
use crate::folio::Bit;
use crate::mglru::bulk::Run;
use crate::mglru::scan::Scan;
use crate::state::Lru;
use crate::stats::Counter;
use crate::tiers;
use crate::types::{FolioId, Gen, LruType, Tier};

/// Names the fate of a folio met at the tail of the oldest list (spec §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorted {
    /// Takes an unevictable folio off the generations.
    Culled,
    /// Moves the folio to the list of its generation, whose field had moved on.
    Promoted(Gen),
    /// Moves the folio to the next generation: its tier is worth protecting.
    Protected(Tier),
    /// Moves a folio outside the zones that this reclaim can use to the next generation.
    Ineligible,
    /// Moves a folio that is dirty or under writeback to the next generation (before patch 9),
    /// marked for reclaim.
    AwaitsWriteback,
    /// Isolates the folio.
    Evictable,
}

impl Lru {
    /// Decides what to do with a folio at the tail of the oldest list.
    pub(crate) fn sort(&self, ctl: &ScanControl, scan: &Scan, id: FolioId, oldest: Gen) -> Sorted {
        let folio = &self.folios[id];
        let flags = folio.flags;
        let (model, version) = (self.config.refs_model, self.config.version());
        if flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED]) && version.culls_mlocked {
            return Sorted::Culled;
        }
        let generation = flags.generation().expect("on a generation list");
        if generation != oldest {
            return Sorted::Promoted(generation);
        }
        let tier = self.tier(flags);
        if tier > scan.limit || tiers::is_saturated(flags, model) {
            return Sorted::Protected(tier);
        }
        if flags.zone() > ctl.reclaim_idx {
            return Sorted::Ineligible;
        }
        let dirty_file = scan.lru_type == LruType::File && flags.has(Bit::DIRTY);
        let locked = version.locked_waits && flags.has(Bit::LOCKED);
        if !self.config.patches.p09 && (flags.has(Bit::WRITEBACK) || dirty_file || locked) {
            return Sorted::AwaitsWriteback;
        }
        Sorted::Evictable
    }

    /// Moves a sorted folio. False: it is to be isolated.
    pub(crate) fn carry_out_sort(
        &mut self,
        ctl: &mut ScanControl,
        scan: &Scan,
        run: &mut Run,
        id: FolioId,
        sorted: Sorted,
    ) -> bool {
        let to_tail = self.config.version().protected_to_tail;
        if matches!(sorted, Sorted::Evictable | Sorted::Culled | Sorted::Promoted(_)) {
            self.end_run(run);
        }
        match sorted {
            Sorted::Evictable => return false,
            Sorted::Culled => self.cull(id),
            Sorted::Promoted(generation) => {
                self.folios.unlink(id);
                self.link_generation(id, generation, false);
            }
            Sorted::Protected(tier) => {
                let saturated = tiers::is_saturated(self.folios[id].flags, self.config.refs_model);
                if to_tail || !saturated {
                    self.count_protected(id, tier.index(), scan.lru_type);
                    let n = self.folios[id].pages();
                    self.count(scan.lruvec, Counter::Protected, n);
                }
                self.pass_on(run, id, to_tail);
            }
            Sorted::Ineligible => self.pass_on(run, id, true),
            Sorted::AwaitsWriteback => self.divert(ctl, scan, run, id),
        }
        true
    }

    fn cull(&mut self, id: FolioId) {
        let (lruvec, n) = (self.folios[id].lruvec, self.folios[id].pages());
        self.take_from_generation(id);
        self.putback(id);
        self.count(lruvec, Counter::UnevictablePgsCulled, n);
    }

    /// A dirty folio, or one under writeback, is passed on with a mark (before patch 9).
    fn divert(&mut self, ctl: &mut ScanControl, scan: &Scan, run: &mut Run, id: FolioId) {
        self.pass_on(run, id, false);
        self.folios[id].flags.set(Bit::RECLAIM);
        let folio = self.folios[id];
        let n = folio.pages();
        if scan.lru_type == LruType::File && folio.flags.has(Bit::DIRTY) {
            ctl.nr.file_taken += n;
            ctl.nr.unqueued_dirty += n * u64::from(!folio.flags.has(Bit::WRITEBACK));
        }
        self.count(scan.lruvec, Counter::DirtyScanned, n);
    }
}
