//! Eviction from the oldest generation: sort, isolate, scan, evict (spec §5.1–§5.5).
//!
//! Folios are met at the tail of the oldest list. Some are only moved (promoted, protected,
//! ineligible, before patch 9 dirty ones), the others are isolated and processed. Invariants
//! I6–I10, I14–I17, I19.

use alloc::vec::Vec;

use crate::aging::AgingNeed;
use crate::bulk::{AHEAD, Run};
use crate::controller::Question;
use crate::folio::Bit;
use crate::generations::{Evictable, awaits_writeback};
use crate::host::{Demotion, Eviction, Harvest, Host, RmapHarvest};
use crate::lru::Lru;
use crate::process::{Manner, Processed};
use crate::reclaim_control::Control;
use crate::stats::{Counter, by_type, pgscan};
use crate::tiers;
use crate::types::{
    FolioId, Gen, LruType, LruvecId, MAX_NR_ZONES, MIN_LRU_BATCH, MIN_NR_GENS, Tier, Zone,
};

/// Buffers that are lent out and kept for their capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) harvest: Harvest,
    pub(crate) rmap: RmapHarvest,
    pub(crate) evictions: Vec<Eviction>,
    pub(crate) demotions: Vec<Demotion>,
    pub(crate) isolated: Vec<FolioId>,
    pub(crate) skipped: Vec<FolioId>,
    pub(crate) retry: Vec<FolioId>,
}

/// What becomes of a folio met at the tail of the oldest list (spec §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sorted {
    /// Unevictable: off the generations.
    Culled,
    /// Its generation field moved on; to the list it belongs to.
    Promoted(Gen),
    /// Its tier is worth protecting: to the next generation.
    Protected(Tier),
    /// Not in a zone this reclaim can use: to the next generation.
    Ineligible,
    /// Dirty or under writeback (before patch 9): to the next generation, marked for reclaim.
    AwaitsWriteback,
    /// To be isolated.
    Evictable,
}

/// One scan of one type (spec §5.4).
#[derive(Clone, Copy, Debug)]
struct Scan {
    lruvec: LruvecId,
    lru_type: LruType,
    limit: Tier,
    left: u64,
    scanned: u64,
    sorted: u64,
    isolated: u64,
    skipped: u64,
}

/// What one call of evict came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evicted {
    /// Pages to charge to the budget; 0: nothing to be had here.
    pub(crate) scanned: u64,
    /// Folios handled under the lock.
    pub(crate) held: u32,
    /// Folios judged.
    pub(crate) judged: u32,
    /// Folios whose writeback must be waited for before they are processed.
    pub(crate) waiting: Vec<FolioId>,
    /// The caller must wait for writeback (cgroup v1, all dirty).
    pub(crate) throttle: bool,
}

/// What scanning both types gave.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    charged: u64,
    isolated: u64,
    met: u64,
    lru_type: LruType,
}

impl Lru {
    /// Evicts one batch from the oldest generation of one type.
    pub(crate) fn evict(
        &mut self,
        ctl: &mut Control,
        id: LruvecId,
        max_folios: u64,
        manner: Manner,
        swappiness: u8,
        host: &mut impl Host,
    ) -> Evicted {
        let evictable = Evictable::under(swappiness);
        let exact = self.config.patches.p05;
        if exact {
            self.flush_empty_oldest(id, evictable);
        }
        let scan = self.scan_types(ctl, id, max_folios, swappiness);
        let mut charged = scan.charged;
        if exact {
            if scan.charged > 0 {
                self.flush_empty_oldest(id, evictable);
            }
        } else {
            charged += u64::from(self.flush_empty_oldest(id, evictable));
            if self.aging_need(id, evictable) == AgingNeed::Must {
                charged = 0;
            }
        }
        let mut out = Evicted { scanned: charged, held: scan.met as u32, ..Evicted::default() };
        if scan.isolated > 0 {
            self.dispatch(ctl, manner, &scan, &mut out, host);
        }
        out
    }

    /// Processes what was isolated, gives survivors a second chance and puts them back.
    fn dispatch(
        &mut self,
        ctl: &mut Control,
        manner: Manner,
        scan: &Scanned,
        out: &mut Evicted,
        host: &mut impl Host,
    ) {
        let mut list = core::mem::take(&mut self.scratch.isolated);
        let mut retry = core::mem::take(&mut self.scratch.retry);
        out.judged = list.len() as u32;
        let first = self.process(ctl, &mut list, manner, host);
        out.throttle = self.account_batch(ctl, manner.lruvec, scan, &first, host);
        self.finish_pass(ctl, first, out);
        self.return_survivors(&mut list, Some(&mut retry));
        if !retry.is_empty() {
            out.judged += retry.len() as u32;
            let done = self.process(ctl, &mut retry, manner, host);
            self.finish_pass(ctl, done, out);
            self.return_survivors(&mut retry, None);
        }
        list.clear();
        retry.clear();
        self.scratch.isolated = list;
        self.scratch.retry = retry;
    }

    fn finish_pass(&mut self, ctl: &mut Control, done: Processed, out: &mut Evicted) {
        ctl.reclaimed += done.freed;
        out.waiting.extend(done.waiting);
    }

    /// Dirty accounting of a batch (P10, P14; before them, sums for the end of the loop). True
    /// when the reclaimer must wait for writeback itself.
    fn account_batch(
        &mut self,
        ctl: &mut Control,
        id: LruvecId,
        scan: &Scanned,
        done: &Processed,
        host: &mut impl Host,
    ) -> bool {
        let patches = self.config.patches;
        let mut throttle = false;
        if patches.p10 && done.stats.unqueued_dirty == scan.isolated {
            self.wake_flusher(id, host);
            throttle = ctl.is_cgroup() && !self.config.sane_throttling;
        }
        let file = u64::from(scan.lru_type == LruType::File);
        if patches.p14 {
            let mut stats = done.stats;
            stats.taken = scan.isolated;
            stats.file_taken = scan.isolated * file;
            ctl.nr.add(&stats);
        } else if !patches.p10 {
            ctl.nr.unqueued_dirty += done.stats.unqueued_dirty;
            ctl.nr.file_taken += scan.isolated * file;
        }
        throttle
    }

    pub(crate) fn wake_flusher(&mut self, id: LruvecId, host: &mut impl Host) {
        self.count(id, Counter::FlusherWakeups, 1);
        host.wake_flusher(self.place(id).node);
    }

    /// Survivors go back young enough not to be met again at once; clean idle ones that may have
    /// missed their rotation are tried once more.
    pub(crate) fn return_survivors(
        &mut self,
        list: &mut Vec<FolioId>,
        mut retry: Option<&mut Vec<FolioId>>,
    ) {
        for id in list.drain(..) {
            if let Some(retry) = retry.as_deref_mut()
                && self.deserves_retry(id)
            {
                retry.push(id);
                continue;
            }
            self.prepare_survivor(id);
            self.putback(id);
        }
    }

    fn deserves_retry(&self, id: FolioId) -> bool {
        let folio = &self.folios[id];
        let flags = folio.flags;
        let busy = flags.has_any([Bit::DIRTY, Bit::WRITEBACK])
            || flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED])
            || folio.is_mapped();
        let k612 = self.config.is_k612() && flags.has_any([Bit::REFERENCED, Bit::LOCKED]);
        !flags.has(Bit::ACTIVE) && !busy && !k612
    }

    fn prepare_survivor(&mut self, id: FolioId) {
        let folio = self.folios[id];
        if folio.flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED]) {
            return;
        }
        let k612 = self.config.is_k612();
        if k612 && awaits_writeback(folio.flags) {
            if folio.flags.has(Bit::WORKINGSET) {
                self.folios[id].flags.set(Bit::REFERENCED);
            }
            return;
        }
        let lru_type = folio.lru_type();
        let min_seq = self.lruvecs[folio.lruvec.index()].mg.min_seq[lru_type.index()];
        if k612 || self.entry_seq(folio.lruvec, folio.flags, lru_type, false) == min_seq {
            let flags = &mut self.folios[id].flags;
            tiers::forget_accesses(flags, self.config.refs_model);
            flags.set(Bit::ACTIVE);
        }
    }

    /// Chooses a type, scans it, and falls back to the other one as the patches in force say.
    fn scan_types(
        &mut self,
        ctl: &mut Control,
        id: LruvecId,
        max_folios: u64,
        swappiness: u8,
    ) -> Scanned {
        let evictable = Evictable::under(swappiness);
        let (mut lru_type, mut limit) = self.choose_type(ctl, id, swappiness);
        let mut sum = Scanned { charged: 0, isolated: 0, met: 0, lru_type };
        let rounds = if evictable == Evictable::Both { 2 } else { 1 };
        for _ in 0..rounds {
            let scan = self.scan(ctl, id, lru_type, limit, max_folios);
            sum.met += scan.scanned;
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

    fn tier_limit(&self, id: LruvecId, lru_type: LruType) -> Tier {
        let controller = &self.lruvecs[id.index()].mg.controller;
        controller.tier_limit(lru_type, self.config.refs_model)
    }

    /// Which type first, and which of its tiers are evicted (spec §5.2).
    fn choose_type(&self, ctl: &Control, id: LruvecId, swappiness: u8) -> (LruType, Tier) {
        let mg = &self.lruvecs[id.index()].mg;
        let model = self.config.refs_model;
        let by_controller = || mg.controller.preferred_type(Question { model, swappiness });
        if !self.config.is_k612() {
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
        ctl: &mut Control,
        id: LruvecId,
        lru_type: LruType,
        limit: Tier,
        max_folios: u64,
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
        if self.lruvecs[id.index()].mg.nr_gens(lru_type) == MIN_NR_GENS {
            return scan;
        }
        for zone in zones_from(ctl.reclaim_idx) {
            self.scan_zone(ctl, &mut scan, zone);
            if scan.left == 0 || scan.isolated >= MIN_LRU_BATCH {
                break;
            }
        }
        self.count_scan(ctl, &scan);
        scan
    }

    fn scan_zone(&mut self, ctl: &mut Control, scan: &mut Scan, zone: Zone) {
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

    fn count_scan(&mut self, ctl: &Control, scan: &Scan) {
        let by = by_type(scan.lru_type, Counter::PgscanAnon, Counter::PgscanFile);
        self.count(scan.lruvec, pgscan(ctl.who), scan.isolated);
        self.count(scan.lruvec, by, scan.isolated);
        self.count(scan.lruvec, Counter::Pgrefill, scan.sorted);
        self.count(scan.lruvec, Counter::PgscanSkip, scan.skipped);
    }

    /// Decides what to do with a folio at the tail of the oldest list.
    fn sort(&self, ctl: &Control, scan: &Scan, id: FolioId, oldest: Gen) -> Sorted {
        let folio = &self.folios[id];
        let flags = folio.flags;
        let model = self.config.refs_model;
        if flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED]) && !self.config.stable_612 {
            return Sorted::Culled;
        }
        let generation = flags.generation().expect("on a generation list");
        if generation != oldest {
            return Sorted::Promoted(generation);
        }
        let tier = tiers::tier(flags, model);
        if tier > scan.limit || tiers::is_saturated(flags, model) {
            return Sorted::Protected(tier);
        }
        if flags.zone() > ctl.reclaim_idx {
            return Sorted::Ineligible;
        }
        let dirty_file = scan.lru_type == LruType::File && flags.has(Bit::DIRTY);
        let locked = self.config.is_k612() && flags.has(Bit::LOCKED);
        if !self.config.patches.p09 && (flags.has(Bit::WRITEBACK) || dirty_file || locked) {
            return Sorted::AwaitsWriteback;
        }
        Sorted::Evictable
    }

    /// Moves a sorted folio. False: it is to be isolated.
    fn carry_out_sort(
        &mut self,
        ctl: &mut Control,
        scan: &Scan,
        run: &mut Run,
        id: FolioId,
        sorted: Sorted,
    ) -> bool {
        let k612 = self.config.is_k612();
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
                if k612 || !saturated {
                    self.count_protected(id, tier.index(), scan.lru_type);
                    let n = self.folios[id].pages();
                    self.count(scan.lruvec, Counter::Protected, n);
                }
                self.pass_on(run, id, k612);
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
    fn divert(&mut self, ctl: &mut Control, scan: &Scan, run: &mut Run, id: FolioId) {
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

    /// Takes a folio off its list to be processed. False: it may not be.
    fn isolate(&mut self, ctl: &Control, id: FolioId) -> bool {
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
        if self.config.is_k612() {
            flags.clear(Bit::REFERENCED);
        }
        self.take_from_generation(id);
        true
    }

    /// Without permission for I/O, a dirty folio or one without a swap slot cannot be evicted
    /// (before patch 8).
    fn is_swap_constrained(&self, ctl: &Control, id: FolioId) -> bool {
        let folio = &self.folios[id];
        let flags = folio.flags;
        if self.config.patches.p08 || ctl.gfp.io {
            return false;
        }
        let file = folio.lru_type() == LruType::File;
        let dirty = flags.has(Bit::DIRTY) && !(self.config.stable_612 && file);
        dirty || flags.has(Bit::ANON) && !flags.has(Bit::SWAPCACHE)
    }

    /// Pages of the evictable types in all live generations.
    pub(crate) fn evictable_size(&self, id: LruvecId, evictable: Evictable) -> u64 {
        let mg = &self.lruvecs[id.index()].mg;
        let slots = |t: LruType| {
            let live = mg.min_seq[t.index()].0..=mg.max_seq.0;
            live.map(move |seq| mg.size_of(crate::types::Seq(seq).generation(), t)).sum::<u64>()
        };
        LruType::ALL.into_iter().filter(|&t| evictable.includes(t)).map(slots).sum()
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
