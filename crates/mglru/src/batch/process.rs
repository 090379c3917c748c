//! Isolated folios are judged, and evicted by the host (spec §5.6, shared by both LRUs).

use alloc::vec::Vec;

use crate::batch::control::{BatchStats, ScanControl};
use crate::config::Config;
use crate::contig::Mode;
use crate::folio::Bit;
use crate::host::{Demotion, Eviction, Host, Outcome, RmapHarvest, ShrunkInactive};
use crate::judge::{Bench, Facts, References, Verdict, judge};
use crate::shadow::Place;
use crate::state::Lru;
use crate::stats::Counter;
use crate::tiers;
use crate::types::{ANON_AND_FILE, FolioId, LruType, LruvecId};

/// Sums up how a list of isolated folios was processed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processed {
    /// Pages freed.
    pub(crate) freed: u64,
    /// The findings, `taken` not filled in.
    pub(crate) stats: BatchStats,
    /// Folios from the first one on that must be waited for (cgroup v1).
    pub(crate) waiting: Vec<FolioId>,
}

impl Processed {
    /// Tells what came of `scanned` pages of one type.
    pub(crate) fn event(
        &self,
        ctl: &ScanControl,
        Place { memcg, node }: Place,
        scanned: u64,
        lru_type: LruType,
    ) -> ShrunkInactive {
        let stats = &self.stats;
        ShrunkInactive {
            memcg,
            node,
            scanned,
            reclaimed: self.freed,
            dirty: stats.dirty,
            writeback: stats.writeback,
            congested: stats.congested,
            immediate: stats.immediate,
            activated: stats.activated,
            kept_referenced: stats.kept_referenced,
            unmap_failed: stats.unmap_failed,
            priority: ctl.priority,
            lru_type,
        }
    }

    /// Adds what another pass over the same batch came to. Its statistics were taken once.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.freed += other.freed;
        self.waiting.extend(other.waiting);
    }
}

/// How a batch is processed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) lruvec: LruvecId,
    /// The state of a page-table walk is at hand.
    pub(crate) walking: bool,
    pub(crate) ignore_references: bool,
}

impl Lru {
    /// Judges and evicts or demotes the folios of `list`, the first one first; survivors are left
    /// in it.
    pub(crate) fn process(
        &mut self,
        ctl: &mut ScanControl,
        list: &mut Vec<FolioId>,
        manner: Manner,
        host: &mut impl Host,
    ) -> Processed {
        let target = self.demotion_target(manner, host);
        let mut done = self.pass(ctl, list, manner, target.is_some(), host);
        if let Some(to) = target {
            self.demote(ctl, to, list, manner, &mut done, host);
        }
        done
    }

    /// As [`Self::process`]; what can be demoted waits in the scratch space.
    pub(crate) fn pass(
        &mut self,
        ctl: &mut ScanControl,
        list: &mut Vec<FolioId>,
        manner: Manner,
        may_demote: bool,
        host: &mut impl Host,
    ) -> Processed {
        let mut done = Processed::default();
        let mut evictions = core::mem::take(&mut self.scratch.evictions);
        let mut rmap = core::mem::take(&mut self.scratch.rmap);
        let bench = Bench { may_demote, ..self.bench(ctl, manner) };
        host.bring_near(list, &self.folios);
        let active_before = self.counters[Counter::Pgactivate];
        let mut kept = 0;
        for at in 0..list.len() {
            let id = list[at];
            match self.verdict(id, &bench, manner, &mut rmap, host) {
                Verdict::Wait => {
                    done.waiting.extend_from_slice(&list[at..]);
                    break;
                }
                verdict => {
                    ctl.scanned += self.folios[id].pages();
                    self.note_dirty(id, &mut done.stats);
                    if verdict.keeps_for_good() {
                        self.note_kept(ctl);
                    }
                    if !self.dispose(ctl, id, verdict, &mut evictions, &mut done.stats) {
                        list[kept] = id;
                        kept += 1;
                    }
                }
            }
        }
        list.truncate(kept);
        host.evict(&mut self.folios, &mut evictions);
        let mut stolen = [0; ANON_AND_FILE];
        for &eviction in &evictions {
            self.settle(ctl, eviction, list, &mut done, &mut stolen, host);
        }
        done.stats.activated = self.counters[Counter::Pgactivate] - active_before;
        self.drop_swap_copies(list, host);
        self.count_stolen(ctl, manner.lruvec, stolen);
        done.freed = stolen.iter().sum();
        evictions.clear();
        self.scratch.evictions = evictions;
        self.scratch.rmap = rmap;
        done
    }

    fn bench(&self, ctl: &ScanControl, manner: Manner) -> Bench {
        let Config { sane_throttling, releases, .. } = self.config;
        let (mglru, version) = (self.config.is_mglru(), self.config.version());
        let node = self.place(manner.lruvec).node;
        Bench {
            may_unmap: ctl.may_unmap,
            may_enter_fs: ctl.gfp.fs,
            kswapd: ctl.is_kswapd(),
            node_writeback: self.nodes[node.index()].writeback_flag,
            sane: !ctl.sync && (!ctl.is_cgroup() || sane_throttling),
            ignore_references: manner.ignore_references || ctl.mode == Mode::Lumpy,
            two_touch: mglru && !version.one_touch,
            ladder: releases.touch_ladder,
            exec_first_touch: self.config.trusts_programs(),
            racing_promotion: mglru && version.one_touch,
            may_demote: false,
        }
    }

    fn verdict(
        &mut self,
        id: FolioId,
        bench: &Bench,
        manner: Manner,
        rmap: &mut RmapHarvest,
        host: &mut impl Host,
    ) -> Verdict {
        let mut facts = Facts::of(&self.folios[id]);
        let first = judge(&facts, bench);
        if first != Verdict::Look {
            return first;
        }
        rmap.clear();
        host.harvest_rmap(id, self.window_around(id), &self.folios, rmap);
        rmap.exec &= self.config.mechanisms.exec_protection;
        facts.references = Some(References::from(&*rmap));
        if self.config.is_mglru() {
            self.look_around(manner.lruvec, rmap, manner.walking);
        }
        judge(&facts, bench)
    }

    /// Counts a dirty file folio or one under writeback.
    fn note_dirty(&mut self, id: FolioId, stats: &mut BatchStats) {
        let folio = self.folios[id];
        let (dirty, writeback) = (folio.flags.has(Bit::DIRTY), folio.flags.has(Bit::WRITEBACK));
        let lazily_freed = folio.flags.has(Bit::ANON);
        if folio.lru_type() == LruType::Anon || lazily_freed || !(dirty || writeback) {
            return;
        }
        let n = folio.pages();
        stats.dirty += n;
        if dirty && !writeback {
            stats.unqueued_dirty += n;
        }
        if writeback && folio.flags.has(Bit::RECLAIM) {
            stats.congested += n;
        }
        self.count(folio.lruvec, Counter::DirtyScanned, n);
    }

    /// Acts on a verdict. True when the folio is on its way out.
    fn dispose(
        &mut self,
        ctl: &ScanControl,
        id: FolioId,
        verdict: Verdict,
        evictions: &mut Vec<Eviction>,
        stats: &mut BatchStats,
    ) -> bool {
        let n = self.folios[id].pages();
        let flags = &mut self.folios[id].flags;
        match verdict {
            Verdict::Keep | Verdict::Look | Verdict::Wait => {}
            Verdict::KeepReferenced => {
                flags.set(Bit::REFERENCED);
                stats.kept_referenced += n;
            }
            Verdict::Activate => self.set_active(id),
            Verdict::ActivateReferenced => {
                flags.set(Bit::REFERENCED);
                self.set_active(id);
            }
            Verdict::ActivateClimbed => {
                tiers::climb(flags);
                self.set_active(id);
            }
            Verdict::ActivateWorkingset => {
                flags.set_refs(0);
                flags.clear(Bit::REFERENCED);
                flags.set(Bit::WORKINGSET);
                self.set_active(id);
            }
            Verdict::Immediate => {
                stats.immediate += n;
                self.put_off(id);
            }
            Verdict::MarkWriteback => {
                flags.set(Bit::RECLAIM);
                stats.writeback += n;
                self.put_off(id);
            }
            Verdict::Demote => {
                self.scratch.demotions.push(Demotion { folio: id, moved: None });
                return true;
            }
            Verdict::Evict { clean_only } => {
                if !self.config.is_mglru() {
                    // Tested and cleared at once: a folio that stays after all has to earn it
                    // again.
                    flags.clear(Bit::REFERENCED);
                }
                return self.send(ctl, id, clean_only, evictions);
            }
        }
        false
    }

    /// A folio that proved its use keeps its swap slot only while swap is not getting full.
    fn drop_swap_copies(&mut self, survivors: &[FolioId], host: &mut impl Host) {
        for &id in survivors {
            let flags = self.folios[id].flags;
            if flags.has(Bit::SWAPCACHE) && flags.has_any([Bit::ACTIVE, Bit::MLOCKED]) {
                host.drop_swap_copy(&mut self.folios, id);
            }
        }
    }

    /// Puts the folio on the list of evictions, unless it may not even get a swap slot.
    fn send(
        &mut self,
        ctl: &ScanControl,
        id: FolioId,
        clean_only: bool,
        evictions: &mut Vec<Eviction>,
    ) -> bool {
        let folio = self.folios[id];
        let anon = folio.lru_type() == LruType::Anon;
        if anon && !folio.flags.has(Bit::SWAPCACHE) && !ctl.gfp.io {
            return false;
        }
        let may_write = if anon {
            !clean_only && ctl.may_writepage && ctl.gfp.io
        } else {
            self.may_write_file(ctl, id, clean_only)
        };
        evictions.push(Eviction { folio: id, may_write, outcome: Outcome::Pending });
        true
    }

    /// Up to 6.18 kswapd writes a dirty file folio it met before, on a node full of such. A
    /// caller that wants a whole block writes what is dirty in it.
    fn may_write_file(&self, ctl: &ScanControl, id: FolioId, clean_only: bool) -> bool {
        if ctl.mode != Mode::Single && self.config.contig.takes_blocks() {
            return !clean_only && ctl.may_writepage && ctl.gfp.fs;
        }
        let folio = &self.folios[id];
        let node = self.place(folio.lruvec).node;
        self.config.node_dirty_flag
            && ctl.is_kswapd()
            && ctl.may_writepage
            && folio.flags.has(Bit::RECLAIM)
            && self.nodes[node.index()].dirty_flag
    }

    /// It cannot go before it is written: out of the way until then, where that is the rule.
    pub(super) fn put_off(&mut self, id: FolioId) {
        if !self.config.contig.meets_again() {
            self.set_active(id);
        }
    }

    /// "Place young" when it is put back.
    pub(super) fn set_active(&mut self, id: FolioId) {
        let folio = &mut self.folios[id];
        if folio.flags.has(Bit::MLOCKED) {
            return;
        }
        folio.flags.set(Bit::ACTIVE);
        let (lruvec, n) = (folio.lruvec, folio.pages());
        self.count(lruvec, Counter::Pgactivate, n);
    }
}
