//! One scan for an eviction: which type, from the tail of its oldest lists, until a batch is
//! isolated (spec §5.1, §5.2, §5.4).

use crate::batch::control::ScanControl;
use crate::folio::Bit;
use crate::host::{Host, Isolated, ListName, TraceEvent};
use crate::mglru::bulk::AHEAD;
use crate::state::Lru;
use crate::state::controller::Question;
use crate::state::evictable::Evictable;
use crate::stats::{Counter, by_type, pgscan};
use crate::types::{FolioId, LruType, LruvecId, MAX_NR_ZONES, MIN_LRU_BATCH, Tier, Zone};

/// One scan of one type (spec §5.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    pub(crate) lruvec: LruvecId,
    pub(crate) lru_type: LruType,
    pub(crate) limit: Tier,
    pub(crate) left: u64,
    pub(crate) scanned: u64,
    pub(crate) sorted: u64,
    pub(crate) isolated: u64,
    pub(crate) skipped: u64,
}

impl Scan {
    fn event(&self, ctl: &ScanControl, requested: u64) -> Isolated {
        Isolated {
            highest_zone: ctl.reclaim_idx,
            order: ctl.order,
            requested,
            scanned: self.scanned,
            skipped: self.skipped,
            taken: self.isolated,
            list: ListName { lru_type: self.lru_type, active: false },
        }
    }
}

/// Sums up the scan of both types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanned {
    pub(crate) charged: u64,
    pub(crate) isolated: u64,
    pub(crate) met: u64,
    pub(crate) lru_type: LruType,
}

impl Lru {
    /// Chooses a type, scans it, and falls back to the other one as the patches in force say.
    pub(crate) fn scan_types(
        &mut self,
        ctl: &mut ScanControl,
        id: LruvecId,
        max_folios: u64,
        swappiness: u8,
        host: &mut impl Host,
    ) -> Scanned {
        let evictable = Evictable::under(swappiness);
        let (mut lru_type, mut limit) = self.choose_type(ctl, id, swappiness);
        let mut sum = Scanned { charged: 0, isolated: 0, met: 0, lru_type };
        let rounds = if evictable == Evictable::Both { 2 } else { 1 };
        for _ in 0..rounds {
            let scan = self.scan(ctl, id, (lru_type, limit), max_folios, host);
            sum.met += max_folios - scan.left;
            sum.lru_type = lru_type;
            sum.isolated = scan.isolated;
            if !self.config.patches.p05 {
                sum.charged = charged_before_p05(&scan);
                if sum.charged > 0 {
                    break;
                }
                lru_type = lru_type.other();
            } else {
                sum.charged += scan.scanned;
                if scan.isolated > 0 {
                    break;
                }
                if !self.config.patches.p06p || scan.scanned == 0 {
                    lru_type = lru_type.other();
                }
            }
            limit = self.tier_limit(id, lru_type);
        }
        sum
    }

    /// Tells the highest tier that is evicted.
    pub(crate) fn tier_limit(&self, id: LruvecId, lru_type: LruType) -> Tier {
        let controller = &self.lruvecs[id.index()].mg.controller;
        controller.tier_limit(lru_type, self.config.refs_model)
    }

    /// Selects the type that comes first, and which of its tiers are evicted (spec §5.2).
    fn choose_type(&self, ctl: &ScanControl, id: LruvecId, swappiness: u8) -> (LruType, Tier) {
        let mg = &self.lruvecs[id.index()].mg;
        let model = self.config.refs_model;
        let by_controller = || mg.controller.preferred_type(Question { model, swappiness });
        if !self.config.version().type_by_age {
            let lru_type = match Evictable::under(swappiness) {
                Evictable::FileOnly => LruType::File,
                Evictable::AnonOnly => LruType::Anon,
                Evictable::Both => by_controller(),
            };
            return (lru_type, self.tier_limit(id, lru_type));
        }
        let [anon, file] = mg.min_seq;
        let fixed = match swappiness {
            0 => Some(LruType::File),
            _ if anon < file => Some(LruType::Anon),
            1 => Some(LruType::File),
            200.. => Some(LruType::Anon),
            _ if !ctl.gfp.io => Some(LruType::File),
            _ => None,
        };
        match fixed {
            Some(lru_type) => (lru_type, self.tier_limit(id, lru_type)),
            None => {
                let lru_type = by_controller();
                (lru_type, mg.controller.cross_limit(lru_type, swappiness))
            }
        }
    }

    /// Scans the oldest generation of one type; what was isolated is in the scratch list.
    fn scan(
        &mut self,
        ctl: &mut ScanControl,
        id: LruvecId,
        (lru_type, limit): (LruType, Tier),
        max_folios: u64,
        host: &mut impl Host,
    ) -> Scan {
        let mut scan = Scan {
            lruvec: id,
            lru_type,
            limit,
            left: max_folios,
            scanned: 0,
            sorted: 0,
            isolated: 0,
            skipped: 0,
        };
        let mg = &self.lruvecs[id.index()].mg;
        if mg.nr_gens(lru_type) == mg.span.kept {
            return scan;
        }
        for zone in zones_from(ctl.reclaim_idx) {
            self.scan_zone(ctl, &mut scan, zone);
            if scan.left == 0 || scan.isolated >= MIN_LRU_BATCH {
                break;
            }
        }
        self.count_scan(ctl, &scan);
        let since = &mut self.lruvecs[id.index()].mg.scanned_since;
        since.iter_mut().for_each(|pages| *pages += scan.scanned);
        host.trace(TraceEvent::Isolated(scan.event(ctl, max_folios)));
        scan
    }

    fn scan_zone(&mut self, ctl: &mut ScanControl, scan: &mut Scan, zone: Zone) {
        let mut run = self.start_run(scan.lruvec, scan.lru_type, zone);
        let mut skipped = core::mem::take(&mut self.scratch.skipped);
        let mut skipped_here = 0;
        while let Some(folio) = self.next_to_meet(&run) {
            if scan.left % AHEAD as u64 == 0 {
                self.folios.bring_near(run.source, folio, AHEAD);
            }
            let n = self.folios[folio].pages();
            scan.scanned += n;
            let sorted = self.sort(ctl, scan, folio, run.from);
            if self.carry_out_sort(ctl, scan, &mut run, folio, sorted) {
                scan.sorted += n;
            } else if self.isolate(ctl, folio) {
                self.scratch.isolated.push(folio);
                scan.isolated += n;
            } else {
                self.folios.unlink(folio);
                skipped.push(folio);
                skipped_here += n;
            }
            scan.left -= 1;
            if scan.left == 0 || scan.isolated.max(skipped_here) >= MIN_LRU_BATCH {
                break;
            }
        }
        for folio in skipped.drain(..) {
            self.folios.push_head(run.source, folio);
        }
        self.settle_run(run);
        scan.skipped += skipped_here;
        self.scratch.skipped = skipped;
    }

    fn count_scan(&mut self, ctl: &ScanControl, scan: &Scan) {
        let by = by_type(scan.lru_type, Counter::PgscanAnon, Counter::PgscanFile);
        self.count(scan.lruvec, pgscan(ctl.who), scan.isolated);
        self.count(scan.lruvec, by, scan.isolated);
        self.count(scan.lruvec, Counter::Pgrefill, scan.sorted);
        self.count(scan.lruvec, Counter::PgscanSkip, scan.skipped);
    }

    /// Takes a folio off its list to be processed. False: it may not be.
    fn isolate(&mut self, ctl: &ScanControl, id: FolioId) -> bool {
        if self.is_swap_constrained(ctl, id) {
            return false;
        }
        let patches = self.config.patches;
        let flags = &mut self.folios[id].flags;
        if !flags.has(Bit::REFERENCED) {
            flags.set_refs(0);
        }
        if !patches.p09 {
            flags.clear(Bit::RECLAIM);
        }
        if self.config.version().isolation_forgets {
            flags.clear(Bit::REFERENCED);
        }
        self.take_from_generation(id);
        true
    }

    /// Without permission for I/O, a dirty folio or one without a swap slot cannot be evicted
    /// (before patch 8).
    fn is_swap_constrained(&self, ctl: &ScanControl, id: FolioId) -> bool {
        let folio = &self.folios[id];
        let flags = folio.flags;
        if self.config.patches.p08 || ctl.gfp.io {
            return false;
        }
        let file = folio.lru_type() == LruType::File;
        let dirty = flags.has(Bit::DIRTY) && !(self.config.version().isolates_dirty_files && file);
        dirty || flags.has(Bit::ANON) && !flags.has(Bit::SWAPCACHE)
    }
}

/// Before patch 5 a scan that only sorted counts for nothing, unless it used up its cap.
fn charged_before_p05(scan: &Scan) -> u64 {
    if scan.isolated > 0 || scan.left == 0 { scan.scanned } else { 0 }
}

/// The zones in scanning order: the highest eligible one, those below, then the higher ones.
fn zones_from(reclaim_idx: Zone) -> impl Iterator<Item = Zone> {
    (0..=reclaim_idx.0).rev().chain(reclaim_idx.0 + 1..MAX_NR_ZONES as u8).map(Zone)
}
