//! Evictions are settled: what the host made of each is noted, what is free is counted (spec §5.6).

use alloc::vec::Vec;

use crate::batch::control::{BatchStats, ScanControl};
use crate::batch::process::Processed;
use crate::folio::Bit;
use crate::host::{Eviction, Host, Outcome};
use crate::state::Lru;
use crate::stats::{Counter, by_type, pgsteal};
use crate::types::{ANON_AND_FILE, FolioId, LruType, LruvecId};

impl Lru {
    /// Takes note of what the host made of an eviction.
    pub(super) fn settle(
        &mut self,
        ctl: &mut ScanControl,
        eviction: Eviction,
        survivors: &mut Vec<FolioId>,
        done: &mut Processed,
        stolen: &mut [u64; ANON_AND_FILE],
        host: &mut impl Host,
    ) {
        let id = eviction.folio;
        match eviction.outcome {
            Outcome::Ready { wrote } => {
                let (lru_type, n) = self.retire(ctl, id, wrote, host);
                stolen[lru_type.index()] += n;
                return;
            }
            Outcome::StillMapped => {
                done.stats.unmap_failed += self.folios[id].pages();
                self.set_active(id);
            }
            Outcome::NoSwapSlot | Outcome::Pinned => self.set_active(id),
            Outcome::Dirty => self.settle_dirty(id),
            Outcome::WriteQueued => self.settle_queued(id, &mut done.stats),
            Outcome::Busy | Outcome::Pending => {}
        }
        if eviction.outcome != Outcome::WriteQueued {
            self.note_kept(ctl);
        }
        survivors.push(id);
    }

    fn settle_dirty(&mut self, id: FolioId) {
        let folio = &mut self.folios[id];
        let (lruvec, n) = (folio.lruvec, folio.pages());
        if folio.flags.has(Bit::ANON) {
            // Lazily freed, then written to: it is ordinary anonymous memory again.
            folio.flags.set(Bit::SWAPBACKED);
        } else {
            folio.flags.set(Bit::RECLAIM);
            self.count(lruvec, Counter::NrVmscanImmediateReclaim, n);
        }
        self.put_off(id);
    }

    fn settle_queued(&mut self, id: FolioId, stats: &mut BatchStats) {
        let (lruvec, n) = (self.folios[id].lruvec, self.folios[id].pages());
        self.clean(id);
        self.folios[id].flags.set(Bit::RECLAIM);
        self.start_writeback(id);
        stats.pageout += n;
        self.count(lruvec, Counter::NrVmscanWrite, n);
    }

    /// Counts what one batch freed.
    pub(crate) fn count_stolen(
        &mut self,
        ctl: &ScanControl,
        lruvec: LruvecId,
        stolen: [u64; ANON_AND_FILE],
    ) {
        for lru_type in LruType::ALL.into_iter().filter(|_| ctl.is_counted) {
            let n = stolen[lru_type.index()];
            self.count(lruvec, by_type(lru_type, Counter::PgstealAnon, Counter::PgstealFile), n);
            self.count(lruvec, pgsteal(ctl.who), n);
        }
    }

    /// Frees a folio that is ready for it, leaving its shadow. Its type and pages.
    fn retire(
        &mut self,
        ctl: &ScanControl,
        id: FolioId,
        wrote: bool,
        host: &mut impl Host,
    ) -> (LruType, u64) {
        let (lruvec, n) = (self.folios[id].lruvec, self.folios[id].pages());
        if wrote {
            self.clean(id);
            self.count(lruvec, Counter::NrVmscanWrite, n);
        }
        debug_assert!(!self.folios[id].flags.has_any([Bit::DIRTY, Bit::WRITEBACK]));
        debug_assert!(!self.folios[id].is_mapped());
        let lazily_freed =
            self.folios[id].flags.has(Bit::ANON) && !self.folios[id].flags.has(Bit::SWAPBACKED);
        if lazily_freed {
            self.count(lruvec, Counter::Pglazyfreed, n);
        }
        let shadow = self.shadow_of(id, ctl.top());
        host.free(&mut self.folios, id, shadow);
        let lru_type = self.folios[id].lru_type();
        self.folios.free(id);
        (lru_type, n)
    }
}
