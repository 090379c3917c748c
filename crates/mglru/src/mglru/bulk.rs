//! Folios that move on from the oldest generation to the next, and how they are moved: one by one,
//! or as runs (the batching series of 2023, spec §11). Invariant I28.
//!
//! A run is a piece of the oldest list that starts at its tail: folios met one after the other that
//! all go to the same end of the next generation. With `bulk_moves` they stay linked as they are
//! and are spliced there at once, so that the folio nearest to eviction stays nearest; appending
//! them one by one to a tail turns their order around. Whatever else is met ends the run: a folio
//! that was promoted has a list of its own to go to and must never be spliced along. With
//! `bulk_counters` the sizes of generations are written once for all that a lock hold moved.

use crate::folio::List;
use crate::state::Lru;
use crate::stats::Counter;
use crate::tiers;
use crate::types::{FolioId, Gen, LruType, LruvecId, Zone};

/// Folios looked at ahead of a scan, and of those that are moved (`bulk_prefetch`).
pub(crate) const AHEAD: usize = 16;

/// Folios of one type and zone on their way to the next generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    lruvec: LruvecId,
    pub(crate) lru_type: LruType,
    zone: Zone,
    /// Its generations, and the lists of both.
    pub(crate) from: Gen,
    to: Gen,
    pub(crate) source: List,
    target: List,
    /// Its folios nearest to eviction and farthest from it; both are on the source list still.
    ends: Option<[FolioId; 2]>,
    /// It goes to the target's tail.
    to_tail: bool,
    /// Pages moved and not yet counted.
    pages: u64,
    folios: u64,
    splices: u64,
}

impl Lru {
    /// A run over the oldest generation's list of a type and zone.
    pub(crate) fn start_run(&self, lruvec: LruvecId, lru_type: LruType, zone: Zone) -> Run {
        let mg = &self.lruvecs[lruvec.index()].mg;
        let from = mg.oldest(lru_type);
        let to = mg.slot(mg.min_seq[lru_type.index()].plus(1));
        let list = |at: Gen| mg.lists[at.index()][lru_type.index()][zone.index()];
        Run {
            lruvec,
            lru_type,
            zone,
            from,
            to,
            source: list(from),
            target: list(to),
            ends: None,
            to_tail: false,
            pages: 0,
            folios: 0,
            splices: 0,
        }
    }

    /// The folio to be met next: the tail of the list behind the run.
    #[inline]
    pub(crate) fn next_to_meet(&self, run: &Run) -> Option<FolioId> {
        match run.ends {
            None => self.folios.tail(run.source),
            Some([_, far]) => self.folios.before(run.source, far),
        }
    }

    /// Moves the folio met last on to the next generation; its accesses are forgotten.
    #[inline]
    pub(crate) fn pass_on(&mut self, run: &mut Run, id: FolioId, to_tail: bool) {
        if run.to_tail != to_tail {
            self.end_run(run);
        }
        let folio = &mut self.folios[id];
        folio.flags.set_generation(Some(run.to));
        tiers::forget_accesses(&mut folio.flags, self.config.refs_model);
        run.pages += folio.pages();
        run.folios += 1;
        run.to_tail = to_tail;
        run.ends = Some([run.ends.map_or(id, |ends| ends[0]), id]);
        if !self.config.bulk.moves {
            self.end_run(run);
        }
        if !self.config.bulk.counters {
            self.count_run(run);
        }
    }

    /// Puts what is in the run where it belongs.
    #[inline]
    pub(crate) fn end_run(&mut self, run: &mut Run) {
        if let Some([near, far]) = run.ends.take() {
            self.folios.splice(near, far, run.target, run.to_tail);
            run.splices += 1;
        }
    }

    /// The lock is given up: nothing may stay behind.
    pub(crate) fn settle_run(&mut self, mut run: Run) {
        self.end_run(&mut run);
        self.count_run(&mut run);
        self.count(run.lruvec, Counter::PassedOn, run.folios);
        self.count(run.lruvec, Counter::PassedOnSplices, run.splices);
    }

    #[inline]
    fn count_run(&mut self, run: &mut Run) {
        let n = core::mem::take(&mut run.pages);
        self.recount_pages(run.lruvec, run.lru_type, run.zone, [run.from, run.to], n);
    }
}
