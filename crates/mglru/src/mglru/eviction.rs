//! Eviction of one batch from the oldest generation: what a scan isolated is processed, survivors
//! go back (spec §5.5). Invariants I6–I10, I14–I17.

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::batch::process::{Manner, Processed};
use crate::folio::Bit;
use crate::host::{Host, TraceEvent};
use crate::mglru::aging::AgingNeed;
use crate::mglru::generations::awaits_writeback;
use crate::mglru::scan::Scanned;
use crate::state::Lru;
use crate::state::evictable::Evictable;
use crate::stats::Counter;
use crate::tiers;
use crate::types::{FolioId, LruType, LruvecId};

/// Sums up one call of evict.
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

impl Lru {
    /// Evicts one batch from the oldest generation of one type.
    pub(crate) fn evict(
        &mut self,
        ctl: &mut ScanControl,
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
        let scan = self.scan_types(ctl, id, max_folios, swappiness, host);
        let mut charged = scan.charged;
        if exact {
            if scan.charged > 0 {
                self.flush_empty_oldest(id, evictable);
            }
        } else {
            charged += u64::from(self.flush_empty_oldest(id, evictable));
            if self.aging_need(id, swappiness) == AgingNeed::Must {
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
        ctl: &mut ScanControl,
        manner: Manner,
        scan: &Scanned,
        out: &mut Evicted,
        host: &mut impl Host,
    ) {
        let mut list = core::mem::take(&mut self.scratch.isolated);
        let mut retry = core::mem::take(&mut self.scratch.retry);
        out.judged = list.len() as u32;
        let first = self.process(ctl, &mut list, manner, host);
        self.trace_batch(ctl, manner, scan, &first, host);
        out.throttle = self.account_batch(ctl, manner.lruvec, scan, &first, host);
        self.count_freed(manner.lruvec, scan.lru_type, first.freed);
        finish_pass(ctl, first, out);
        self.return_survivors(&mut list, Some(&mut retry));
        if !retry.is_empty() {
            out.judged += retry.len() as u32;
            let done = self.process(ctl, &mut retry, manner, host);
            self.trace_batch(ctl, manner, scan, &done, host);
            self.count_freed(manner.lruvec, scan.lru_type, done.freed);
            finish_pass(ctl, done, out);
            self.return_survivors(&mut retry, None);
        }
        list.clear();
        retry.clear();
        self.scratch.isolated = list;
        self.scratch.retry = retry;
    }

    fn trace_batch(
        &self,
        ctl: &ScanControl,
        manner: Manner,
        scan: &Scanned,
        done: &Processed,
        host: &mut impl Host,
    ) {
        let place = self.place(manner.lruvec);
        let event = done.event(ctl, place, scan.charged, scan.lru_type);
        host.trace(TraceEvent::ShrunkInactive(event));
    }

    /// A type's own clock goes by what its last aging led to.
    fn count_freed(&mut self, id: LruvecId, lru_type: LruType, freed: u64) {
        self.lruvecs[id.index()].mg.freed_since[lru_type.index()] += freed;
    }

    /// Dirty accounting of a batch (P10, P14; before them, sums for the end of the loop). True
    /// when the reclaimer must wait for writeback itself.
    fn account_batch(
        &mut self,
        ctl: &mut ScanControl,
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
        let used = self.config.version().retry_refuses_used
            && flags.has_any([Bit::REFERENCED, Bit::LOCKED]);
        !flags.has(Bit::ACTIVE) && !busy && !used
    }

    fn prepare_survivor(&mut self, id: FolioId) {
        let folio = self.folios[id];
        if folio.flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED]) {
            return;
        }
        let all = self.config.version().activates_survivors;
        if all && awaits_writeback(folio.flags) {
            if folio.flags.has(Bit::WORKINGSET) {
                self.folios[id].flags.set(Bit::REFERENCED);
            }
            return;
        }
        let lru_type = folio.lru_type();
        let min_seq = self.lruvecs[folio.lruvec.index()].mg.min_seq[lru_type.index()];
        if all || self.entry_seq(folio.lruvec, folio.flags, lru_type, false) == min_seq {
            let flags = &mut self.folios[id].flags;
            tiers::forget_accesses(flags, self.config.refs_model);
            flags.set(Bit::ACTIVE);
        }
    }

    /// Pages of the evictable types in all live generations.
    pub(crate) fn evictable_size(&self, id: LruvecId, evictable: Evictable) -> u64 {
        let mg = &self.lruvecs[id.index()].mg;
        evictable.types().map(|t| mg.size(t)).sum()
    }
}

fn finish_pass(ctl: &mut ScanControl, done: Processed, out: &mut Evicted) {
    ctl.reclaimed += done.freed;
    out.waiting.extend(done.waiting);
}
