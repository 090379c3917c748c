//! Aging: when a new generation is wanted, and the pass that makes it (spec §4.1, §4.2).
//!
//! The pass is explicit state, stepped a slice at a time, so that other reclaimers run while one
//! walks page tables. A reclaimer that finds no address space left to walk gets nothing for it.

use crate::config::{AgingRule, YoungSource};
use crate::host::{Host, TraceEvent, Va};
use crate::mglru::generations::{Bump, Evictable};
use crate::mglru::mm_list::NextMm;
use crate::mglru::walk::Walk;
use crate::state::Lru;
use crate::state::lruvec::{Generations, Lruvec};
use crate::types::{LruType, LruvecId, Seq};

/// Does this lruvec need a new generation before it can be evicted from?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgingNeed {
    /// Finds enough generations.
    No,
    /// Finds that eviction is possible, but the window is getting short.
    Should,
    /// Finds only two generations left: eviction is impossible.
    Must,
}

/// Holds the state of an aging pass of one lruvec on behalf of one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    lruvec: LruvecId,
    seq: Seq,
    evictable: Evictable,
    force: bool,
    walk: Option<Walk>,
    /// All walks were made and this caller makes the generation.
    won: bool,
}

/// Where an aging pass stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgingStep {
    /// Reports a walked slice and the folios handled under the lock.
    Walking {
        /// Folios promoted.
        held: u32,
    },
    /// Ends the aging. `aged`: this caller made the new generation.
    Over {
        /// Whether it did.
        aged: bool,
    },
}

impl Generations {
    /// The oldest generation among the evictable types, as the aging rule sees it.
    pub(crate) fn oldest_evictable(&self, evictable: Evictable, rule: AgingRule) -> Seq {
        let [anon, file] = self.min_seq;
        match (evictable, rule) {
            (Evictable::FileOnly, _) => file,
            (Evictable::AnonOnly, _) | (_, AgingRule::K612) => anon,
            (Evictable::Both, AgingRule::K614) => anon.min(file),
        }
    }

    /// K612: three generations are enough unless they are badly spread.
    fn is_badly_spread(&self, evictable: Evictable) -> bool {
        let types = || LruType::ALL.into_iter().filter(|&t| evictable.includes(t));
        let size = |seq: Seq| types().map(|t| self.size_of(seq.generation(), t)).sum::<u64>();
        let total: u64 = types()
            .map(|t| {
                let live = self.min_seq[t.index()].0..=self.max_seq.0;
                live.map(|seq| self.size_of(Seq(seq).generation(), t)).sum::<u64>()
            })
            .sum();
        let (young, old) = (size(self.max_seq), size(Seq(self.max_seq.0 - 2)));
        young * 2 > total || old * 4 < total
    }
}

impl Lru {
    /// Is aging wanted, all priorities aside?
    pub(crate) fn aging_need(&self, id: LruvecId, evictable: Evictable) -> AgingNeed {
        let mg = &self.lruvecs[id.index()].mg;
        let rule = self.config.aging_rule;
        let oldest = mg.oldest_evictable(evictable, rule);
        if oldest.plus(2) > mg.max_seq {
            AgingNeed::Must
        } else if oldest.plus(2) < mg.max_seq {
            AgingNeed::No
        } else if rule == AgingRule::K614 || mg.is_badly_spread(evictable) {
            AgingNeed::Should
        } else {
            AgingNeed::No
        }
    }

    /// Starts an aging pass for the youngest generation as it is now.
    pub(crate) fn start_aging(&self, id: LruvecId, evictable: Evictable, force: bool) -> Aging {
        let seq = self.lruvecs[id.index()].mg.max_seq;
        Aging { lruvec: id, seq, evictable, force, walk: None, won: false }
    }

    /// Takes an aging pass one slice further.
    pub(crate) fn step_aging(&mut self, aging: &mut Aging, host: &mut impl Host) -> AgingStep {
        if aging.won {
            return self.finish_aging(aging, host);
        }
        if self.config.young_source == YoungSource::Rmap {
            aging.won = self.skip_walk(aging.lruvec, aging.seq);
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
        match self.next_mm(aging.lruvec, aging.seq, aging.force) {
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

    fn aged_event(&self, id: LruvecId) -> TraceEvent {
        let Lruvec { memcg, node, ref mg, .. } = self.lruvecs[id.index()];
        TraceEvent::Aged { memcg, node, max_seq: mg.max_seq, min_seq: mg.min_seq }
    }

    fn finish_aging(&mut self, aging: &Aging, host: &mut impl Host) -> AgingStep {
        if !aging.won {
            return AgingStep::Over { aged: false };
        }
        match self.bump(aging.lruvec, aging.seq, aging.evictable, host.now()) {
            Bump::Lost => AgingStep::Over { aged: false },
            Bump::More { held } => AgingStep::Walking { held },
            Bump::Won => {
                host.trace(self.aged_event(aging.lruvec));
                AgingStep::Over { aged: true }
            }
        }
    }
}
