//! Aging: when a new generation is wanted, and the pass that makes it (spec §4.1, §4.2).
//!
//! The pass is explicit state, stepped a slice at a time, so that other reclaimers run while one
//! walks page tables. A reclaimer that finds no address space left to walk gets nothing for it.

use crate::config::AgingRule;
use crate::host::{Host, TraceEvent, Va};
use crate::mglru::generations::Bump;
use crate::mglru::mm_list::NextMm;
use crate::state::Lru;
use crate::state::aging::{Aging, AgingStep, Walk};
use crate::state::controller::Question;
use crate::state::evictable::Evictable;
use crate::state::generations::Generations;
use crate::state::lruvec::Lruvec;
use crate::types::{LruType, LruvecId, Seq};

/// Entries of page tables that are walked at the cost of scanning one mapped page: 4 to 24 ns
/// against some 480 (counted on 6.12). A type's own clock may cost reclaim as much again, no more,
/// however hot its pages are.
const ENTRIES_PER_SCAN: u64 = 32;

/// Does this lruvec need a new generation before it can be evicted from?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgingNeed {
    /// Finds enough generations.
    No,
    /// Finds that eviction is possible, but the window is getting short.
    Should,
    /// Finds only the generations left that are kept: eviction is impossible.
    Must,
}

impl Generations {
    /// K612: one generation more than is kept is enough unless they are badly spread.
    fn is_badly_spread(&self, evictable: Evictable) -> bool {
        let size =
            |seq: Seq| evictable.types().map(|t| self.size_of(self.slot(seq), t)).sum::<u64>();
        let total: u64 = evictable.types().map(|t| self.size(t)).sum();
        let youngest = self.now(evictable);
        let (young, old) = (size(youngest), size(Seq(youngest.0 - self.span.kept)));
        young * self.span.kept > total || old * (self.span.kept + 2) < total
    }

    /// With one clock: the type that has most generations tells.
    fn need(&self, evictable: Evictable, rule: AgingRule) -> AgingNeed {
        let longest = self.longest(evictable, rule);
        let spare = self.nr_gens(longest).saturating_sub(self.span.kept);
        match spare {
            0 => AgingNeed::Must,
            // An aging would only push the oldest into the next.
            1 if self.is_full(longest) => AgingNeed::No,
            1 if rule == AgingRule::K614 || self.is_badly_spread(evictable) => AgingNeed::Should,
            _ => AgingNeed::No,
        }
    }

    /// With a clock for each type: which is to be aged, and how much that is needed. It must be
    /// when nothing can be evicted. Before that the type that goes first should be when it runs
    /// short, if its last aging led to something, and once enough was scanned to pay for the walk:
    /// a few pages that are always in use would be aged for each batch.
    fn need_of_each(&self, question: Question) -> (AgingNeed, Evictable) {
        let evictable = Evictable::under(question.swappiness);
        let spare = |t: LruType| self.nr_gens(t).saturating_sub(self.span.kept);
        let first = match evictable {
            Evictable::FileOnly => LruType::File,
            Evictable::AnonOnly => LruType::Anon,
            Evictable::Both => self.controller.preferred_type(question),
        };
        let there = |&t: &LruType| evictable.includes(t) && self.size(t) > 0;
        let mut types = [first, first.other()].into_iter().filter(there).peekable();
        let Some(&next) = types.peek() else { return (AgingNeed::No, evictable) };
        if types.all(|t| spare(t) == 0) {
            return (AgingNeed::Must, evictable);
        }
        let (is_short, t) = (spare(next) <= 1 && !self.is_full(next), next.index());
        let pays = self.scanned_since[t] * ENTRIES_PER_SCAN >= self.size(next);
        if is_short && pays && self.freed_since[t] > 0 {
            return (AgingNeed::Should, Evictable::only(next));
        }
        (AgingNeed::No, evictable)
    }
}

impl Lru {
    /// Is aging wanted, all priorities aside?
    pub(crate) fn aging_need(&self, id: LruvecId, swappiness: u8) -> AgingNeed {
        let mg = &self.lruvecs[id.index()].mg;
        if mg.span.one_clock {
            mg.need(Evictable::under(swappiness), self.config.aging_rule)
        } else {
            mg.need_of_each(self.question(swappiness)).0
        }
    }

    fn question(&self, swappiness: u8) -> Question {
        Question { model: self.config.refs_model, swappiness }
    }

    /// Starts the aging pass that a loop found wanting.
    pub(crate) fn start_needed(&self, id: LruvecId, swappiness: u8) -> Aging {
        let mg = &self.lruvecs[id.index()].mg;
        let types = if mg.span.one_clock {
            Evictable::under(swappiness)
        } else {
            mg.need_of_each(self.question(swappiness)).1
        };
        self.start_aging(id, types, false)
    }

    /// Starts an aging pass for the youngest generation as it is now. Where each type has a clock,
    /// files are aged first, then anonymous memory.
    pub(crate) fn start_aging(&self, id: LruvecId, evictable: Evictable, force: bool) -> Aging {
        let mg = &self.lruvecs[id.index()].mg;
        let (evictable, next) = match evictable {
            Evictable::Both if !mg.span.one_clock => {
                (Evictable::FileOnly, Some(Evictable::AnonOnly))
            }
            one => (one, None),
        };
        let seq = mg.now(evictable);
        Aging { lruvec: id, seq, evictable, force, walk: None, next, won: false }
    }

    /// Takes an aging pass one slice further.
    pub(crate) fn step_aging(&mut self, aging: &mut Aging, host: &mut impl Host) -> AgingStep {
        if aging.won {
            return self.finish_aging(aging, host);
        }
        if !self.config.walks_tables() {
            aging.won = self.skip_walk(self.clock(aging), aging.seq);
            return self.finish_aging(aging, host);
        }
        let Some(walk) = &mut aging.walk else { return self.next_walk(aging, host) };
        let slice = self.walk_slice(walk, host);
        if slice.over {
            aging.walk = None;
        }
        AgingStep::Walking { held: slice.promoted }
    }

    fn next_walk(&mut self, aging: &mut Aging, host: &mut impl Host) -> AgingStep {
        match self.next_mm(self.clock(aging), aging.seq, aging.force) {
            NextMm::Over { won } => {
                aging.won = won;
                self.finish_aging(aging, host)
            }
            NextMm::Walk { mm, force } => {
                aging.walk = Some(Walk {
                    lruvec: aging.lruvec,
                    seq: aging.seq,
                    evictable: aging.evictable,
                    mm,
                    force,
                    at: Va(0),
                });
                AgingStep::Walking { held: 0 }
            }
        }
    }

    fn clock(&self, aging: &Aging) -> (LruvecId, usize) {
        (aging.lruvec, self.lruvecs[aging.lruvec.index()].mg.clock(aging.evictable))
    }

    fn aged_event(&self, aging: &Aging) -> TraceEvent {
        let Lruvec { memcg, node, ref mg, .. } = self.lruvecs[aging.lruvec.index()];
        let max_seq = mg.now(aging.evictable);
        TraceEvent::Aged { memcg, node, max_seq, min_seq: mg.min_seq }
    }

    fn finish_aging(&mut self, aging: &mut Aging, host: &mut impl Host) -> AgingStep {
        let step = self.finish_clock(aging, host);
        match (step, aging.next.take()) {
            (AgingStep::Over { .. }, Some(next)) => {
                *aging = self.start_aging(aging.lruvec, next, aging.force);
                AgingStep::Walking { held: 0 }
            }
            (step, next) => {
                aging.next = next;
                step
            }
        }
    }

    fn finish_clock(&mut self, aging: &Aging, host: &mut impl Host) -> AgingStep {
        if !aging.won {
            return AgingStep::Over { aged: false };
        }
        match self.bump(aging.lruvec, aging.seq, aging.evictable, host.now()) {
            Bump::Lost => AgingStep::Over { aged: false },
            Bump::More { held } => AgingStep::Walking { held },
            Bump::Won => {
                host.trace(self.aged_event(aging));
                AgingStep::Over { aged: true }
            }
        }
    }
}
