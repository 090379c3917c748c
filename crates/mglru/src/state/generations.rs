//! The generations of one lruvec: their window, their sizes and the clock that opens them.
//!
//! A generation lies in the slot `seq mod n` where `n` is the most that a type may have. Linux has
//! four, of which the two youngest cannot be evicted; the numbers are a mechanism here.

use alloc::vec;
use alloc::vec::Vec;

use crate::config::{AgingRule, Config};
use crate::folio::{Folios, List};
use crate::state::bloom::BloomPair;
use crate::state::controller::Controller;
use crate::state::evictable::Evictable;
use crate::types::{ANON_AND_FILE, Gen, LruType, MAX_NR_ZONES, Nanos, Seq};

/// `[type][zone]` of one generation.
pub(crate) type PerType<T> = [[T; MAX_NR_ZONES]; ANON_AND_FILE];

/// Says how many generations there are, and whether the types share their clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The most that a type has.
    pub(crate) most: u64,
    /// Those that cannot be evicted: half of the most.
    pub(crate) kept: u64,
    /// One clock opens the generations of both types.
    pub(crate) one_clock: bool,
}

/// Page-table walks of one lruvec (spec §2.2 "mm-walk state", §4.2).
#[derive(Clone, Debug)]
pub(crate) struct WalkState {
    /// The last generation a complete walk was made for.
    pub(crate) seq: Seq,
    /// Next position in the memcg's mm list; `None`: no iteration is under way.
    pub(crate) cursor: Option<usize>,
    /// Mms at this position and beyond are new since the last iteration.
    pub(crate) tail: usize,
    /// Tables worth a visit, for this generation and the next.
    pub(crate) filters: BloomPair,
}

/// Generations of one lruvec.
#[derive(Clone, Debug)]
pub(crate) struct Generations {
    pub(crate) span: Span,
    /// The youngest of each type: the same while the types share a clock.
    pub(crate) max_seq: [Seq; ANON_AND_FILE],
    pub(crate) min_seq: [Seq; ANON_AND_FILE],
    /// Tells, by slot, when a generation of each type began, ns.
    pub(crate) birth: Vec<[Nanos; ANON_AND_FILE]>,
    /// The window slid over a type while it was not evictable: list and generation of its folios
    /// may be in any order since.
    pub(crate) slid: [bool; ANON_AND_FILE],
    /// Holds, by slot, the lists of a generation.
    pub(crate) lists: Vec<PerType<List>>,
    /// Counts, by slot, the pages of a generation.
    pub(crate) pages: Vec<PerType<i64>>,
    pub(crate) controller: Controller,
    /// By clock; the first serves both types while they share it.
    pub(crate) walks: [WalkState; ANON_AND_FILE],
    /// Pages scanned since a type was last aged.
    pub(crate) scanned_since: [u64; ANON_AND_FILE],
    /// Pages of a type evicted since it was last aged.
    pub(crate) freed_since: [u64; ANON_AND_FILE],
}

impl Span {
    /// Reads the span that a configuration asks for.
    pub(crate) fn of(config: &Config) -> Self {
        let most = u64::from(config.generations);
        Self { most, kept: most / 2, one_clock: config.mechanisms.one_clock }
    }

    /// Names the slot of a generation.
    #[inline]
    pub(crate) fn slot(self, seq: Seq) -> Gen {
        // Four are what kernels have: no division there.
        Gen(if self.most == 4 { seq.0 & 3 } else { seq.0 % self.most } as u8)
    }
}

impl WalkState {
    fn new(seq: Seq) -> Self {
        Self { seq, cursor: None, tail: 0, filters: BloomPair::default() }
    }
}

impl Generations {
    /// Opens, at the birth of an lruvec, two generations more than are kept.
    pub(crate) fn new(folios: &mut Folios, span: Span, now: Nanos) -> Self {
        let most = span.most as usize;
        let youngest = Seq((span.kept + 2).min(span.most) - 1);
        let mut list = || core::array::from_fn(|_| core::array::from_fn(|_| folios.new_list()));
        Self {
            span,
            max_seq: [youngest; ANON_AND_FILE],
            min_seq: [Seq(0); ANON_AND_FILE],
            birth: vec![[now; ANON_AND_FILE]; most],
            slid: [false; ANON_AND_FILE],
            lists: (0..most).map(|_| list()).collect(),
            pages: vec![[[0; MAX_NR_ZONES]; ANON_AND_FILE]; most],
            controller: Controller::default(),
            walks: [(); ANON_AND_FILE].map(|()| WalkState::new(Seq(youngest.0 - 1))),
            scanned_since: [0; ANON_AND_FILE],
            freed_since: [0; ANON_AND_FILE],
        }
    }

    /// Names the slot of a generation.
    #[inline]
    pub(crate) fn slot(&self, seq: Seq) -> Gen {
        self.span.slot(seq)
    }

    /// Number of generations of a type.
    #[inline]
    pub(crate) fn nr_gens(&self, lru_type: LruType) -> u64 {
        let t = lru_type.index();
        self.max_seq[t].0 - self.min_seq[t].0 + 1
    }

    /// Has the type as many generations as it may have?
    #[inline]
    pub(crate) fn is_full(&self, lru_type: LruType) -> bool {
        self.nr_gens(lru_type) == self.span.most
    }

    /// Oldest generation of a type.
    #[inline]
    pub(crate) fn oldest(&self, lru_type: LruType) -> Gen {
        self.slot(self.min_seq[lru_type.index()])
    }

    /// Youngest generation of a type.
    #[inline]
    pub(crate) fn youngest(&self, lru_type: LruType) -> Gen {
        self.slot(self.max_seq[lru_type.index()])
    }

    /// The youngest generation of all, in the numbers that people read: there a type whose clock
    /// is behind counts on to the other's.
    pub(crate) fn last_seq(&self) -> Seq {
        self.max_seq[0].max(self.max_seq[1])
    }

    /// The oldest generation of a type, in the numbers that people read.
    pub(crate) fn first_seq(&self, lru_type: LruType) -> Seq {
        Seq(self.last_seq().0 + 1 - self.nr_gens(lru_type))
    }

    /// All generations of a type, oldest first.
    pub(crate) fn live(&self, lru_type: LruType) -> impl Iterator<Item = Seq> + use<> {
        let t = lru_type.index();
        (self.min_seq[t].0..=self.max_seq[t].0).map(Seq)
    }

    /// Is the slot one of the youngest, which cannot be evicted and report as active?
    #[inline]
    pub(crate) fn is_active(&self, generation: Gen, lru_type: LruType) -> bool {
        let most = self.span.most as u8;
        let youngest = self.youngest(lru_type).0;
        let behind = if youngest < generation.0 { most } else { 0 } + youngest - generation.0;
        u64::from(behind) < self.span.kept
    }

    /// Pages of a type in one generation; transient negatives count as none.
    pub(crate) fn size_of(&self, generation: Gen, lru_type: LruType) -> u64 {
        let zones = self.pages[generation.index()][lru_type.index()].iter();
        zones.map(|&n| n.max(0) as u64).sum()
    }

    /// Pages of a type in all its generations.
    pub(crate) fn size(&self, lru_type: LruType) -> u64 {
        self.live(lru_type).map(|seq| self.size_of(self.slot(seq), lru_type)).sum()
    }

    /// Pages of a type that report as active (the youngest generations) or not.
    pub(crate) fn reported(&self, lru_type: LruType, active: bool) -> u64 {
        let slots = (0..self.span.most as u8).map(Gen);
        let asked = slots.filter(|&g| self.is_active(g, lru_type) == active);
        asked.map(|g| self.size_of(g, lru_type)).sum()
    }

    /// Are all lists of a generation of the type empty?
    pub(crate) fn is_empty(&self, folios: &Folios, seq: Seq, lru_type: LruType) -> bool {
        let lists = &self.lists[self.slot(seq).index()][lru_type.index()];
        lists.iter().all(|&list| folios.is_empty(list))
    }

    /// Which clock ages these types? Two clocks are asked for one type at a time.
    #[inline]
    pub(crate) fn clock(&self, evictable: Evictable) -> usize {
        usize::from(!self.span.one_clock && evictable == Evictable::FileOnly)
    }

    /// The youngest generation by the clock of these types.
    #[inline]
    pub(crate) fn now(&self, evictable: Evictable) -> Seq {
        self.max_seq[self.clock(evictable)]
    }

    /// Does an aging of these types open a generation of this one?
    #[inline]
    pub(crate) fn moves(&self, evictable: Evictable, lru_type: LruType) -> bool {
        self.span.one_clock || evictable.includes(lru_type)
    }

    /// The type whose oldest generation aging goes by, among the evictable ones.
    pub(crate) fn longest(&self, evictable: Evictable, rule: AgingRule) -> LruType {
        let file = self.nr_gens(LruType::File) > self.nr_gens(LruType::Anon);
        match (evictable, rule) {
            (Evictable::FileOnly, _) => LruType::File,
            (Evictable::Both, AgingRule::K614) if file => LruType::File,
            (Evictable::AnonOnly | Evictable::Both, _) => LruType::Anon,
        }
    }

    /// When the oldest generation of the evictable types was born.
    pub(crate) fn oldest_birth(&self, evictable: Evictable, rule: AgingRule) -> Nanos {
        let lru_type = self.longest(evictable, rule);
        self.birth[self.oldest(lru_type).index()][lru_type.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(most: u8) -> Generations {
        let config = Config { generations: most, ..Config::default() };
        Generations::new(&mut Folios::default(), Span::of(&config), 7)
    }

    #[test]
    fn slots_repeat_after_the_most_there_can_be() {
        for most in [2, 3, 4, 64] {
            let span = generations(most).span;
            let slots = (0..200).map(|seq| u64::from(span.slot(Seq(seq)).0));
            assert!(slots.eq((0..200).map(|seq| seq % u64::from(most))), "{most}");
        }
    }

    #[test]
    fn an_lruvec_is_born_with_two_more_than_are_kept() {
        for (most, born, kept) in [(2, 2, 1), (3, 3, 1), (4, 4, 2), (64, 34, 32)] {
            let mg = generations(most);
            assert_eq!(LruType::ALL.map(|t| mg.nr_gens(t)), [born; 2], "{most}");
            assert_eq!(mg.walks[0].seq, Seq(born - 2));
            let active = (0..most).filter(|&g| mg.is_active(Gen(g), LruType::File));
            assert!(active.eq((born - kept) as u8..born as u8), "{most}");
        }
    }

    #[test]
    fn the_active_ones_are_the_youngest_wherever_their_slots_are() {
        let mut mg = generations(4);
        for seq in 3..20 {
            mg.max_seq = [Seq(seq); 2];
            let active = (0..4).map(Gen).filter(|&g| mg.is_active(g, LruType::Anon));
            let mut expected = [seq - 1, seq].map(|seq| mg.slot(Seq(seq)));
            expected.sort();
            assert!(active.eq(expected), "{seq}");
        }
    }
}
