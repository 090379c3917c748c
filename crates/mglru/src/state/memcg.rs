//! The tree of memory cgroups as reclaim sees it: order of visits, shared iterators, and the
//! address spaces of each group (spec §2.3, §7.5).

use alloc::vec;
use alloc::vec::Vec;

use crate::stats::Counters;
use crate::types::{MemcgId, MmId, NodeId};

/// Where shared walks of a subtree stand, per node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SharedPosition {
    at: Option<MemcgId>,
    /// Full rounds made; a walk ends when its round does.
    round: u64,
}

/// A memory cgroup.
#[derive(Clone, Debug)]
pub(crate) struct Memcg {
    parent: Option<MemcgId>,
    first_child: Option<MemcgId>,
    last_child: Option<MemcgId>,
    next_sibling: Option<MemcgId>,
    pub(crate) online: bool,
    /// Offline and nothing is left of it.
    pub(crate) released: bool,
    /// Address spaces, in the order they came.
    pub(crate) mms: Vec<MmId>,
    pub(crate) counters: Counters,
    pub(crate) file_dirty: u64,
    pub(crate) writeback: u64,
    /// Effective `memory.min` and `memory.low` as they were last computed.
    pub(crate) effective: (u64, u64),
    /// Swap pages were left when reclaim last asked.
    pub(crate) has_swap: bool,
    shared: Vec<SharedPosition>,
}

impl Memcg {
    fn new(parent: Option<MemcgId>, nr_nodes: usize) -> Self {
        Self {
            parent,
            first_child: None,
            last_child: None,
            next_sibling: None,
            online: true,
            released: false,
            mms: Vec::new(),
            counters: Counters::default(),
            file_dirty: 0,
            writeback: 0,
            effective: (0, 0),
            has_swap: false,
            shared: vec![SharedPosition::default(); nr_nodes],
        }
    }
}

/// The tree. Ids are never reused.
#[derive(Clone, Debug)]
pub(crate) struct MemcgTree {
    memcgs: Vec<Memcg>,
    nr_nodes: usize,
}

impl core::ops::Index<MemcgId> for MemcgTree {
    type Output = Memcg;
    fn index(&self, id: MemcgId) -> &Memcg {
        &self.memcgs[id.index()]
    }
}

impl core::ops::IndexMut<MemcgId> for MemcgTree {
    fn index_mut(&mut self, id: MemcgId) -> &mut Memcg {
        &mut self.memcgs[id.index()]
    }
}

/// A walk over the memcgs of a subtree, in pre-order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeWalk {
    /// Visits every memcg once, whatever other reclaimers do.
    Full {
        /// Last one visited.
        last: Option<MemcgId>,
    },
    /// Continues where the last shared walk stopped; ends when the shared round ends.
    Shared {
        /// The round this walk belongs to.
        round: Option<u64>,
    },
}

impl MemcgTree {
    pub(crate) fn new(nr_nodes: usize) -> Self {
        Self { memcgs: vec![Memcg::new(None, nr_nodes)], nr_nodes }
    }

    pub(crate) fn add(&mut self, parent: MemcgId) -> MemcgId {
        let id = MemcgId(self.memcgs.len() as u32);
        self.memcgs.push(Memcg::new(Some(parent), self.nr_nodes));
        match self[parent].last_child.replace(id) {
            Some(sibling) => self[sibling].next_sibling = Some(id),
            None => self[parent].first_child = Some(id),
        }
        id
    }

    pub(crate) fn len(&self) -> usize {
        self.memcgs.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = MemcgId> + use<> {
        (0..self.memcgs.len() as u32).map(MemcgId)
    }

    pub(crate) fn parent(&self, id: MemcgId) -> Option<MemcgId> {
        self[id].parent
    }

    /// The memcg and all its ancestors, root last.
    pub(crate) fn lineage(&self, id: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        core::iter::successors(Some(id), |&id| self.parent(id))
    }

    /// Children of a memcg.
    pub(crate) fn children(&self, id: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        core::iter::successors(self[id].first_child, |&id| self[id].next_sibling)
    }

    /// The memcg and all its descendants, in pre-order.
    pub(crate) fn subtree(&self, top: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        core::iter::successors(Some(top), move |&id| self.after(top, id))
    }

    /// The memcg that follows `id` in the pre-order of `top`'s subtree.
    fn after(&self, top: MemcgId, id: MemcgId) -> Option<MemcgId> {
        if let Some(child) = self[id].first_child {
            return Some(child);
        }
        self.lineage(id).take_while(|&up| up != top).find_map(|up| self[up].next_sibling)
    }

    /// The next memcg of a walk of `top`'s subtree on behalf of `node`; one of which nothing is
    /// left is passed over.
    pub(crate) fn next(
        &mut self,
        top: MemcgId,
        node: NodeId,
        walk: &mut TreeWalk,
    ) -> Option<MemcgId> {
        loop {
            let id = self.step(top, node, walk)?;
            if !self[id].released {
                return Some(id);
            }
        }
    }

    fn step(&mut self, top: MemcgId, node: NodeId, walk: &mut TreeWalk) -> Option<MemcgId> {
        match walk {
            TreeWalk::Full { last } => {
                let next = match *last {
                    None => Some(top),
                    Some(id) => self.after(top, id),
                };
                *last = next.or(*last);
                next
            }
            TreeWalk::Shared { round } => self.next_shared(top, node, round),
        }
    }

    fn next_shared(
        &mut self,
        top: MemcgId,
        node: NodeId,
        round: &mut Option<u64>,
    ) -> Option<MemcgId> {
        let fresh = round.is_none();
        let position = self[top].shared[node.index()];
        if round.is_some_and(|r| r != position.round) {
            return None;
        }
        let next = match position.at {
            None => Some(top),
            Some(id) => self.after(top, id),
        };
        let shared = &mut self[top].shared[node.index()];
        shared.at = next;
        *round = Some(shared.round);
        if next.is_none() {
            shared.round += 1;
            if fresh {
                return self.next_shared(top, node, round_of(round));
            }
        }
        next
    }
}

/// A walk that found the last round just over begins the next one.
fn round_of(round: &mut Option<u64>) -> &mut Option<u64> {
    *round = round.map(|r| r + 1);
    round
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(0);

    fn tree() -> (MemcgTree, [MemcgId; 4]) {
        let mut tree = MemcgTree::new(1);
        let a = tree.add(MemcgId::ROOT);
        let b = tree.add(MemcgId::ROOT);
        let a1 = tree.add(a);
        let a2 = tree.add(a);
        (tree, [a, a1, a2, b])
    }

    fn visits(tree: &mut MemcgTree, top: MemcgId, mut walk: TreeWalk) -> Vec<MemcgId> {
        core::iter::from_fn(|| tree.next(top, NODE, &mut walk)).collect()
    }

    #[test]
    fn a_full_walk_is_pre_order_and_stays_in_the_subtree() {
        let (mut tree, [a, a1, a2, b]) = tree();
        let full = TreeWalk::Full { last: None };
        assert_eq!(visits(&mut tree, MemcgId::ROOT, full), [MemcgId::ROOT, a, a1, a2, b]);
        assert_eq!(visits(&mut tree, a, full), [a, a1, a2]);
        assert_eq!(visits(&mut tree, b, full), [b]);
    }

    #[test]
    fn shared_walks_continue_where_the_last_one_stopped() {
        let (mut tree, [a, a1, a2, _]) = tree();
        let mut first = TreeWalk::Shared { round: None };
        assert_eq!(tree.next(a, NODE, &mut first), Some(a));
        let rest = visits(&mut tree, a, TreeWalk::Shared { round: None });
        assert_eq!(rest, [a1, a2]);
        assert_eq!(tree.next(a, NODE, &mut first), None, "its round is over");
        let again = visits(&mut tree, a, TreeWalk::Shared { round: None });
        assert_eq!(again, [a, a1, a2]);
    }

    #[test]
    fn a_fresh_walk_at_the_end_of_a_round_starts_over() {
        let (mut tree, [a, a1, a2, _]) = tree();
        let mut walk = TreeWalk::Shared { round: None };
        for expected in [a, a1, a2] {
            assert_eq!(tree.next(a, NODE, &mut walk), Some(expected));
        }
        assert_eq!(visits(&mut tree, a, TreeWalk::Shared { round: None }), [a, a1, a2]);
    }

    #[test]
    fn lineage_ends_at_the_root() {
        let (tree, [a, a1, ..]) = tree();
        assert_eq!(tree.lineage(a1).collect::<Vec<_>>(), [a1, a, MemcgId::ROOT]);
        assert_eq!(tree.children(a).count(), 2);
    }
}
