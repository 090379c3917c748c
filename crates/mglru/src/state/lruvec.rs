//! The LRU state of one (memcg, node) pair (spec §2.2): generations of the multi-gen LRU, lists of
//! the classic LRU. Both exist in every lruvec; the configuration decides which one is used.

use crate::folio::{Folios, List};
use crate::state::generations::{Generations, Span};
use crate::types::{ANON_AND_FILE, LruType, MAX_NR_ZONES, MemcgId, Nanos, NodeId, Zone};

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

/// Active and inactive lists of one lruvec (spec §8).
#[derive(Clone, Debug)]
pub(crate) struct ClassicLists {
    pub(crate) lists: [List; 4],
    pub(crate) pages: [[u64; MAX_NR_ZONES]; 4],
    pub(crate) cost: [u64; ANON_AND_FILE],
    pub(crate) nonresident_age: u64,
    /// Counts how often reclaim has scanned a type's inactive list from end to end.
    pub(crate) turn: [u64; ANON_AND_FILE],
    /// Counts the pages left to scan until a turn is over.
    pub(crate) turn_left: [u64; ANON_AND_FILE],
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
    pub(crate) fn new(
        folios: &mut Folios,
        (memcg, node): (MemcgId, NodeId),
        span: Span,
        now: Nanos,
    ) -> Self {
        Self {
            memcg,
            node,
            mg: Generations::new(folios, span, now),
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

    /// Pages of a type's inactive list.
    pub(crate) fn inactive(&self, lru_type: LruType) -> u64 {
        self.classic_size(ClassicList::of(lru_type, false))
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

impl ClassicLists {
    fn new(folios: &mut Folios) -> Self {
        Self {
            lists: core::array::from_fn(|_| folios.new_list()),
            pages: [[0; MAX_NR_ZONES]; 4],
            cost: [0; ANON_AND_FILE],
            nonresident_age: 0,
            turn: [0; ANON_AND_FILE],
            turn_left: [0; ANON_AND_FILE],
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
    fn classic_lists_know_their_type() {
        for lru_type in LruType::ALL {
            for active in [false, true] {
                let list = ClassicList::of(lru_type, active);
                assert_eq!((list.lru_type(), list.is_active()), (lru_type, active));
            }
        }
    }
}
