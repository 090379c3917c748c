//! Generations: where a folio enters, how it leaves, and when the oldest one is given up
//! (spec §3.1, §4.6). Invariants I1–I5.

use crate::folio::{Bit, Flags, Folio};
use crate::state::Lru;
use crate::state::generations::{Generations, Span};
use crate::stats::Counter;
use crate::tiers;
use crate::types::{FolioId, Gen, LruType, LruvecId, Seq, Zone};

pub(crate) use crate::mglru::bump::Bump;
use crate::state::evictable::Evictable;

/// Distance from the youngest generation at which a folio enters, 1 for the youngest (K614, K72).
fn entry_distance(span: Span, flags: Flags, lru_type: LruType, tail: bool, prefault: bool) -> u64 {
    let workingset = u64::from(flags.has(Bit::WORKINGSET));
    let distance = if flags.has(Bit::ACTIVE) {
        span.kept - workingset
    } else if tail {
        span.most
    } else if is_held_young(flags, lru_type) {
        span.kept
    } else if prefault {
        span.most - u64::from(flags.has_any([Bit::WORKINGSET, Bit::REFERENCED]))
    } else {
        span.most - workingset
    };
    distance.max(1)
}

/// Fresh anonymous memory, or a folio waiting for its writeback to be reclaimed.
fn is_held_young(flags: Flags, lru_type: LruType) -> bool {
    lru_type == LruType::Anon && !flags.has(Bit::SWAPCACHE) || awaits_writeback(flags)
}

/// Marked for reclaim and still dirty or under writeback.
pub(crate) fn awaits_writeback(flags: Flags) -> bool {
    flags.has(Bit::RECLAIM) && flags.has_any([Bit::DIRTY, Bit::WRITEBACK])
}

impl Generations {
    fn entry_k612(&self, flags: Flags, lru_type: LruType, tail: bool) -> Seq {
        let (min_seq, max_seq) = (self.min_seq[lru_type.index()], self.max_seq[lru_type.index()]);
        if flags.has(Bit::ACTIVE) {
            max_seq
        } else if is_held_young(flags, lru_type) {
            Seq(max_seq.0 + 1 - self.span.kept)
        } else if tail || min_seq.plus(self.span.kept) >= max_seq {
            min_seq
        } else {
            min_seq.plus(1)
        }
    }

    fn entry_k614(&self, flags: Flags, lru_type: LruType, tail: bool, prefault: bool) -> Seq {
        let distance = entry_distance(self.span, flags, lru_type, tail, prefault);
        let seq = (self.max_seq[lru_type.index()].0 + 1).saturating_sub(distance);
        Seq(seq).max(self.min_seq[lru_type.index()])
    }
}

impl Lru {
    /// The generation a folio with these flags would be put into.
    pub(crate) fn entry_seq(
        &self,
        lruvec: LruvecId,
        flags: Flags,
        lru_type: LruType,
        tail: bool,
    ) -> Seq {
        let mg = &self.lruvecs[lruvec.index()].mg;
        if self.config.version().enters_from_oldest {
            mg.entry_k612(flags, lru_type, tail)
        } else {
            mg.entry_k614(flags, lru_type, tail, self.config.patches.prefault)
        }
    }

    /// Puts a folio onto the generation its flags ask for: at the head, or at the tail to be
    /// evicted next.
    pub(crate) fn insert_generation(&mut self, id: FolioId, tail: bool) {
        let mut folio = self.folios[id];
        let seq = self.entry_seq(folio.lruvec, folio.flags, folio.lru_type(), tail);
        let generation = self.lruvecs[folio.lruvec.index()].mg.slot(seq);
        if folio.flags.take(Bit::ACTIVE) && self.config.version().entry_forgets {
            folio.flags.set_refs(0);
            folio.flags.clear(Bit::REFERENCED);
        }
        folio.flags.set(Bit::LRU);
        folio.flags.set_generation(Some(generation));
        self.folios[id].flags = folio.flags;
        self.account(&folio, generation, true);
        self.link(id, &folio, generation, tail);
    }

    /// Links the folio into the list of a generation.
    pub(crate) fn link_generation(&mut self, id: FolioId, generation: Gen, tail: bool) {
        let folio = self.folios[id];
        self.link(id, &folio, generation, tail);
    }

    #[inline]
    fn link(&mut self, id: FolioId, folio: &Folio, generation: Gen, tail: bool) {
        let mg = &self.lruvecs[folio.lruvec.index()].mg;
        let zone = folio.flags.zone().index();
        let list = mg.lists[generation.index()][folio.lru_type().index()][zone];
        if tail {
            self.folios.push_tail(list, id);
        } else {
            self.folios.push_head(list, id);
        }
    }

    /// Takes a folio off its generation. It stays young when it is put back soon (migration).
    pub(crate) fn remove_generation(&mut self, id: FolioId) {
        let generation = self.take_from_generation(id);
        let folio = &self.folios[id];
        let mg = &self.lruvecs[folio.lruvec.index()].mg;
        if mg.is_active(generation, folio.lru_type()) {
            self.folios[id].flags.set(Bit::ACTIVE);
        }
    }

    /// Takes a folio off its generation; returns which generation it belonged to.
    pub(crate) fn take_from_generation(&mut self, id: FolioId) -> Gen {
        let folio = self.folios[id];
        let generation = folio.flags.generation().expect("on a generation list");
        self.account(&folio, generation, false);
        self.folios.unlink(id);
        let flags = &mut self.folios[id].flags;
        flags.set_generation(None);
        flags.clear(Bit::LRU);
        generation
    }

    /// Counts the folio in or out of a generation.
    #[inline]
    fn account(&mut self, folio: &Folio, generation: Gen, more: bool) {
        let (lru_type, zone) = (folio.lru_type(), folio.flags.zone().index());
        let (t, n) = (lru_type.index(), folio.pages());
        let lruvec = &mut self.lruvecs[folio.lruvec.index()];
        let inactive = n * u64::from(!lruvec.mg.is_active(generation, lru_type));
        let pages = &mut lruvec.mg.pages[generation.index()][t][zone];
        let node = &mut self.nodes[lruvec.node.index()];
        if more {
            *pages += n as i64;
            node.lru_pages[t] += n;
            node.inactive_pages[t] += inactive;
        } else {
            *pages -= n as i64;
            node.lru_pages[t] -= n;
            node.inactive_pages[t] -= inactive;
        }
    }

    /// The folio belongs to another generation from now on; lists are left alone.
    pub(crate) fn recount(&mut self, id: FolioId, to: Gen) {
        let folio = &mut self.folios[id];
        let from = folio.flags.generation().expect("on a generation list");
        folio.flags.set_generation(Some(to));
        let (lruvec, lru_type, zone) = (folio.lruvec, folio.lru_type(), folio.flags.zone());
        let n = folio.pages();
        self.recount_pages(lruvec, lru_type, zone, [from, to], n);
    }

    /// Pages of a type and zone belong to another generation from now on.
    #[inline]
    pub(crate) fn recount_pages(
        &mut self,
        lruvec: LruvecId,
        lru_type: LruType,
        zone: Zone,
        [from, to]: [Gen; 2],
        n: u64,
    ) {
        let (t, zone) = (lru_type.index(), zone.index());
        let lruvec = &mut self.lruvecs[lruvec.index()];
        lruvec.mg.pages[from.index()][t][zone] -= n as i64;
        lruvec.mg.pages[to.index()][t][zone] += n as i64;
        let inactive = &mut self.nodes[lruvec.node.index()].inactive_pages[t];
        *inactive += n * u64::from(!lruvec.mg.is_active(to, lru_type));
        *inactive -= n * u64::from(!lruvec.mg.is_active(from, lru_type));
    }

    /// Page tables say the folio was used (spec §3.4). Only its generation field moves; eviction
    /// moves it to the right list when it meets it. True when it was promoted.
    pub(crate) fn promote(&mut self, id: FolioId) -> bool {
        let folio = self.folios[id];
        let to = self.lruvecs[folio.lruvec.index()].mg.youngest(folio.lru_type());
        let flags = &mut self.folios[id].flags;
        match (self.config.version().one_touch, folio.flags.generation()) {
            (true, None) => flags.set(Bit::REFERENCED),
            (true, Some(_)) => tiers::forget_accesses(flags, self.config.refs_model),
            (false, generation) => {
                let proven = folio.flags.has_any([Bit::REFERENCED, Bit::WORKINGSET]);
                let program = self.config.trusts_programs()
                    && folio.flags.has(Bit::EXEC)
                    && folio.lru_type() == LruType::File;
                if !proven && program && generation.is_some() {
                    flags.set(Bit::WORKINGSET);
                    flags.set_refs(0);
                } else if generation.is_none() && proven || !tiers::second_touch(flags) {
                    return false;
                }
            }
        }
        let Some(from) = folio.flags.generation() else { return false };
        if from != to {
            self.recount(id, to);
            self.age_promoted(&folio);
            self.count(folio.lruvec, Counter::Promoted, folio.pages());
        }
        from != to
    }

    /// Ages the pages that are away: a folio that becomes young takes room from them, as an
    /// eviction does.
    pub(crate) fn age_promoted(&mut self, folio: &Folio) {
        if self.config.is_mglru() && self.config.refaults_by_distance() {
            self.age_nonresident(folio.lruvec, folio.pages());
        }
    }

    /// Counts a folio as protected in its tier.
    pub(crate) fn count_protected(&mut self, id: FolioId, tier: usize, lru_type: LruType) {
        let folio = self.folios[id];
        let controller = &mut self.lruvecs[folio.lruvec.index()].mg.controller;
        controller.protected[lru_type.index()][tier] += folio.pages();
    }

    /// Gives up oldest generations that are empty (spec §4.6). True if any type advanced.
    pub(crate) fn flush_empty_oldest(&mut self, id: LruvecId, evictable: Evictable) -> bool {
        let mg = &self.lruvecs[id.index()].mg;
        let old = mg.min_seq;
        let mut candidate = old;
        for lru_type in evictable.types() {
            let seq = &mut candidate[lru_type.index()];
            while seq.plus(mg.span.kept) <= mg.max_seq[lru_type.index()]
                && mg.is_empty(&self.folios, *seq, lru_type)
            {
                *seq = seq.plus(1);
            }
        }
        self.couple(id, old, &mut candidate, evictable);
        for lru_type in LruType::ALL {
            let t = lru_type.index();
            if candidate[t] != old[t] {
                let mg = &mut self.lruvecs[id.index()].mg;
                mg.controller.carry_over(lru_type);
                mg.min_seq[t] = candidate[t];
            }
        }
        candidate != old
    }

    /// The two types may not run apart.
    fn couple(&self, id: LruvecId, old: [Seq; 2], candidate: &mut [Seq; 2], evictable: Evictable) {
        let [anon, file] = LruType::ALL.map(LruType::index);
        if !self.config.mechanisms.one_clock {
            return;
        }
        if self.config.version().anon_leads {
            if evictable == Evictable::Both {
                candidate[anon] = candidate[anon].min(candidate[file]);
                candidate[file] = candidate[anon].max(old[file]);
            }
            return;
        }
        if self.config.releases.couple_both && evictable != Evictable::Both {
            return;
        }
        let mg = &self.lruvecs[id.index()].mg;
        let second = Seq(mg.max_seq[anon].0 - mg.span.kept);
        for (lead, lag) in [(anon, file), (file, anon)] {
            if candidate[lead] > second && candidate[lag] < second {
                candidate[lead] = second.max(old[lead]);
            }
        }
    }
}
