//! The LRU state of one (memcg, node) pair (spec §2.2): generations of the multi-gen LRU, lists of
//! the classic LRU. Both exist in every lruvec; the configuration decides which one is used.

use crate::folio::{Folios, List};
use crate::state::bloom::BloomPair;
use crate::state::controller::Controller;
use crate::types::{
    ANON_AND_FILE, Gen, LruType, MAX_NR_GENS, MAX_NR_ZONES, MemcgId, Nanos, NodeId, Seq, Zone,
};

/// Names a classic list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassicList {
    /// Holds inactive anon pages.
    InactiveAnon,
    /// Holds active anon pages.
    ActiveAnon,
    /// Holds inactive file pages.
    InactiveFile,
    /// Holds active file pages.
    ActiveFile,
}

impl ClassicList {
    /// Lists all four, in shrinking order.
    pub const ALL: [Self; 4] =
        [Self::InactiveAnon, Self::ActiveAnon, Self::InactiveFile, Self::ActiveFile];

    /// Returns the list of a type.
    #[inline]
    pub fn of(lru_type: LruType, active: bool) -> Self {
        Self::ALL[lru_type.index() * 2 + usize::from(active)]
    }

    /// Returns the list as an array index.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the type of the list's folios.
    #[inline]
    pub fn lru_type(self) -> LruType {
        LruType::ALL[self.index() / 2]
    }

    /// Tells whether it is one of the active lists.
    #[inline]
    pub fn is_active(self) -> bool {
        self.index() % 2 == 1
    }
}

/// `[generation][type][zone]`.
pub(crate) type PerSlot<T> = [[[T; MAX_NR_ZONES]; ANON_AND_FILE]; MAX_NR_GENS];

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
    pub(crate) max_seq: Seq,
    pub(crate) min_seq: [Seq; ANON_AND_FILE],
    pub(crate) birth: [Nanos; MAX_NR_GENS],
    /// The window slid over a type while it was not evictable: list and generation of its folios
    /// may be in any order since.
    pub(crate) slid: [bool; ANON_AND_FILE],
    pub(crate) lists: PerSlot<List>,
    pub(crate) pages: PerSlot<i64>,
    pub(crate) controller: Controller,
    pub(crate) walk: WalkState,
}

/// Active and inactive lists of one lruvec (spec §8).
#[derive(Clone, Debug)]
pub(crate) struct ClassicLists {
    pub(crate) lists: [List; 4],
    pub(crate) pages: [[u64; MAX_NR_ZONES]; 4],
    pub(crate) cost: [u64; ANON_AND_FILE],
    pub(crate) nonresident_age: u64,
    /// Activations by refault at the last snapshot.
    pub(crate) refault_snapshot: [u64; ANON_AND_FILE],
    /// Pages taken off the lists and not put back yet.
    pub(crate) isolated: [u64; ANON_AND_FILE],
    /// The group's statistics at their last flush; `None`: they are always exact.
    pub(crate) flushed: Option<Flushed>,
}

/// Holds the statistics of a group that reclaim reads. They are summed up over the processors only
/// now and then: between two flushes the heuristics of the classic LRU see the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flushed {
    pub(crate) sizes: [u64; 4],
    pub(crate) activations: [u64; ANON_AND_FILE],
}

/// Holds the LRU state of one (memcg, node) pair.
#[derive(Clone, Debug)]
pub struct Lruvec {
    pub(crate) memcg: MemcgId,
    pub(crate) node: NodeId,
    pub(crate) mg: Generations,
    pub(crate) classic: ClassicLists,
    pub(crate) unevictable: List,
    pub(crate) nr_unevictable: u64,
    /// Activations by refault, ever, descendants included.
    pub(crate) activations: [u64; ANON_AND_FILE],
    /// Cgroup reclaim found every dirty page congested.
    pub(crate) cgroup_congested: bool,
}

impl Lruvec {
    pub(crate) fn new(folios: &mut Folios, memcg: MemcgId, node: NodeId, now: Nanos) -> Self {
        Self {
            memcg,
            node,
            mg: Generations::new(folios, now),
            classic: ClassicLists::new(folios),
            unevictable: folios.new_list(),
            nr_unevictable: 0,
            activations: [0; ANON_AND_FILE],
            cgroup_congested: false,
        }
    }

    /// Pages of one classic list.
    pub(crate) fn classic_size(&self, list: ClassicList) -> u64 {
        self.classic.pages[list.index()].iter().sum()
    }

    /// Pages of one classic list, as the group's statistics have it.
    pub(crate) fn classic_stat(&self, list: ClassicList) -> u64 {
        self.classic.flushed.map_or_else(|| self.classic_size(list), |f| f.sizes[list.index()])
    }

    /// Activations by refault, as the group's statistics have them.
    pub(crate) fn activation_stat(&self) -> [u64; ANON_AND_FILE] {
        self.classic.flushed.map_or(self.activations, |flushed| flushed.activations)
    }

    /// Brings the group's statistics up to date.
    pub(crate) fn flush_stats(&mut self) {
        let sizes = ClassicList::ALL.map(|list| self.classic_size(list));
        self.classic.flushed = Some(Flushed { sizes, activations: self.activations });
    }

    /// Pages of one classic list in zones up to `zone`.
    pub(crate) fn classic_size_upto(&self, list: ClassicList, zone: Zone) -> u64 {
        self.classic.pages[list.index()][..=zone.index()].iter().sum()
    }
}

impl Generations {
    /// Four generations at birth.
    fn new(folios: &mut Folios, now: Nanos) -> Self {
        let lists = core::array::from_fn(|_| {
            core::array::from_fn(|_| core::array::from_fn(|_| folios.new_list()))
        });
        Self {
            max_seq: Seq(MAX_NR_GENS as u64 - 1),
            min_seq: [Seq(0); ANON_AND_FILE],
            birth: [now; MAX_NR_GENS],
            slid: [false; ANON_AND_FILE],
            lists,
            pages: [[[0; MAX_NR_ZONES]; ANON_AND_FILE]; MAX_NR_GENS],
            controller: Controller::default(),
            walk: WalkState {
                seq: Seq(MAX_NR_GENS as u64 - 2),
                cursor: None,
                tail: 0,
                filters: BloomPair::default(),
            },
        }
    }

    /// Number of generations of a type.
    #[inline]
    pub(crate) fn nr_gens(&self, lru_type: LruType) -> u64 {
        self.max_seq.0 - self.min_seq[lru_type.index()].0 + 1
    }

    /// Oldest generation of a type.
    #[inline]
    pub(crate) fn oldest(&self, lru_type: LruType) -> Gen {
        self.min_seq[lru_type.index()].generation()
    }

    /// Is the slot one of the two youngest, which report as active?
    #[inline]
    pub(crate) fn is_active(&self, generation: Gen) -> bool {
        let youngest = self.max_seq;
        generation == youngest.generation() || generation == Seq(youngest.0 - 1).generation()
    }

    /// Pages of a type in one generation; transient negatives count as none.
    pub(crate) fn size_of(&self, generation: Gen, lru_type: LruType) -> u64 {
        let zones = self.pages[generation.index()][lru_type.index()].iter();
        zones.map(|&n| n.max(0) as u64).sum()
    }

    /// Pages of a type that report as active (the two youngest generations) or not.
    pub(crate) fn reported(&self, lru_type: LruType, active: bool) -> u64 {
        let slots = (0..MAX_NR_GENS as u8).map(Gen);
        slots.filter(|&g| self.is_active(g) == active).map(|g| self.size_of(g, lru_type)).sum()
    }

    /// Are all lists of the type's oldest generation empty?
    pub(crate) fn oldest_is_empty(&self, folios: &Folios, seq: Seq, lru_type: LruType) -> bool {
        let lists = &self.lists[seq.generation().index()][lru_type.index()];
        lists.iter().all(|&list| folios.is_empty(list))
    }
}

impl ClassicLists {
    fn new(folios: &mut Folios) -> Self {
        Self {
            lists: core::array::from_fn(|_| folios.new_list()),
            pages: [[0; MAX_NR_ZONES]; 4],
            cost: [0; ANON_AND_FILE],
            nonresident_age: 0,
            refault_snapshot: [0; ANON_AND_FILE],
            flushed: None,
            isolated: [0; ANON_AND_FILE],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_lruvec_is_born_with_four_generations() {
        let mut folios = Folios::default();
        let lruvec = Lruvec::new(&mut folios, MemcgId(0), NodeId(0), 7);
        assert_eq!(lruvec.mg.max_seq, Seq(3));
        assert_eq!(LruType::ALL.map(|t| lruvec.mg.nr_gens(t)), [4, 4]);
        assert_eq!((lruvec.mg.walk.seq, lruvec.mg.birth), (Seq(2), [7; 4]));
        let active = (0..4).map(Gen).filter(|&g| lruvec.mg.is_active(g));
        assert_eq!(active.collect::<alloc::vec::Vec<_>>(), [Gen(2), Gen(3)]);
    }

    #[test]
    fn classic_lists_know_their_type() {
        for lru_type in LruType::ALL {
            for active in [false, true] {
                let list = ClassicList::of(lru_type, active);
                assert_eq!((list.lru_type(), list.is_active()), (lru_type, active));
            }
        }
    }
}
