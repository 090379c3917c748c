//! Nodes of page caches that hold nothing but shadows: in order of age, and freed by reclaim from
//! the old end (spec §6).
//!
//! A shadow is of use only as long as the page, had it been kept, would have fitted in
//! memory. So there is no use for more shadows than pages; a node is taken to hold an eighth of
//! its 64 slots at the least, and one node for eight pages is let be. Linux 7.1 and 7.2 do not see
//! the pages of a group under the multi-gen LRU, only its slab: they drop what would be refaults.

use std::collections::BTreeMap;

use mglru::Shadow;
use mglru::host::SlabWork;
use mglru::types::{FolioId, MemcgId, NodeId};
use mglru_workload::FileId;

use super::World;
use super::kernel_memory::NODE_BYTES;
use crate::page_cache::{NODE_SLOTS, node_of};
use crate::spec::PAGE_SIZE;

/// Pages that entitle a group to a node of shadows.
const PAGES_PER_NODE: u64 = 8;
/// Nodes that a page of slab holds.
const PER_SLAB_PAGE: u64 = 7;

/// Nodes that one piece of a blind shrink takes.
const BLIND_BATCH: u64 = 128;

/// A node of a file's page cache.
type Node = (FileId, u32);

/// The nodes of one group that hold only shadows.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowNodes {
    by_age: BTreeMap<u64, Node>,
    since: BTreeMap<Node, u64>,
    next: u64,
    /// All nodes of the group's files, those with pages included.
    all: u64,
    /// Nodes that earlier calls wanted to free and did not.
    debt: u64,
}

impl ShadowNodes {
    /// Computes how many of an excess of nodes one call of 7.1 and 7.2 frees. Half of it is due,
    /// and the debt where little else is left; less than a batch waits, unless it is all.
    fn take_blindly(&mut self, excess: u64, priority: u8) -> u64 {
        let due = (excess / 2 + (self.debt >> priority)).min(2 * excess);
        let mut left = due;
        while left >= BLIND_BATCH || left >= excess {
            left -= left.min(BLIND_BATCH);
        }
        let done = (due - left).min(self.by_age.len() as u64);
        self.debt = (excess / 2 + self.debt - done.min(excess / 2 + self.debt)).min(2 * excess);
        done
    }

    fn enter(&mut self, node: Node) {
        self.leave(node);
        self.by_age.insert(self.next, node);
        self.since.insert(node, self.next);
        self.next += 1;
    }

    fn leave(&mut self, node: Node) {
        if let Some(since) = self.since.remove(&node) {
            self.by_age.remove(&since);
        }
    }

    /// The nodes of a file from `first` on are gone, or hold no shadow any more.
    fn forget(&mut self, file: FileId, first: u32) {
        let gone: Vec<Node> =
            self.since.range((file, first)..=(file, u32::MAX)).map(|(&node, _)| node).collect();
        gone.into_iter().for_each(|node| self.leave(node));
    }

    fn pop_oldest(&mut self) -> Option<Node> {
        let (_, node) = self.by_age.pop_first()?;
        self.since.remove(&node);
        Some(node)
    }
}

impl World {
    /// Caches the pages of a folio; of the shadows that stood in their place the last one, which
    /// stands for all (spec §LF.11).
    pub(crate) fn cache_folio(
        &mut self,
        file: FileId,
        index: u64,
        pages: u64,
        folio: FolioId,
    ) -> Option<Shadow> {
        self.trace_cached(true, file, index, folio, pages);
        if pages == 1 {
            return self.cache_page(file, index, folio);
        }
        let mut last = None;
        for index in index..index + pages {
            last = self.cache_page(file, index, folio).or(last);
        }
        last
    }

    fn cache_page(&mut self, file: FileId, index: u64, folio: FolioId) -> Option<Shadow> {
        let open = &mut self.files[file as usize];
        let node = node_of(index);
        if open.cache.is_shadows_only(node) {
            self.shadow_nodes(file).leave((file, node));
        }
        let kept = self.files[file as usize].cache.insert(index, folio)?;
        Some(self.shadows.take(kept))
    }

    /// Takes an evicted page out and leaves its shadow.
    pub(super) fn uncache_page(&mut self, file: FileId, index: u64, shadow: Shadow) {
        let kept = self.shadows.keep(shadow);
        let cache = &mut self.files[file as usize].cache;
        let node = node_of(index);
        cache.remove(index, Some(kept));
        if cache.is_shadows_only(node) {
            self.shadow_nodes(file).enter((file, node));
        }
    }

    /// Drops a file's shadows from page `from` on.
    pub(crate) fn truncate_cache(&mut self, file: FileId, from: u64) {
        let shadows = &mut self.shadows;
        self.files[file as usize].cache.truncate(from, |kept| _ = shadows.take(kept));
        let first = u32::try_from(from.div_ceil(NODE_SLOTS as u64)).unwrap_or(u32::MAX);
        self.shadow_nodes(file).forget(file, first);
        self.settle_nodes(file);
    }

    /// Drops all shadows of a file.
    pub(crate) fn drop_shadows(&mut self, file: FileId) {
        let shadows = &mut self.shadows;
        self.files[file as usize].cache.drop_all_shadows(|kept| _ = shadows.take(kept));
        self.shadow_nodes(file).forget(file, 0);
        self.settle_nodes(file);
    }

    /// Drops the shadows of some pages of a file, which are not cached any more.
    pub(crate) fn drop_shadows_in(&mut self, file: FileId, pages: std::ops::Range<u64>) {
        let (first, last) = (node_of(pages.start), node_of(pages.end.saturating_sub(1)));
        let shadows = &mut self.shadows;
        self.files[file as usize].cache.drop_shadows_in(pages, |kept| _ = shadows.take(kept));
        for node in first..=last {
            let only = self.files[file as usize].cache.is_shadows_only(node);
            let known = self.shadow_nodes(file);
            match (only, known.since.contains_key(&(file, node))) {
                (true, false) => known.enter((file, node)),
                (false, true) => known.leave((file, node)),
                _ => {}
            }
        }
        self.settle_nodes(file);
    }

    fn shadow_nodes(&mut self, file: FileId) -> &mut ShadowNodes {
        self.shadow_nodes_of(self.files[file as usize].owner.unwrap_or(MemcgId::ROOT))
    }

    /// A group's files have so many nodes more, or less.
    pub(super) fn count_nodes(&mut self, memcg: MemcgId, had: u64, has: u64) {
        let all = &mut self.shadow_nodes_of(memcg).all;
        *all = *all + has - had;
    }

    fn shadow_nodes_of(&mut self, memcg: MemcgId) -> &mut ShadowNodes {
        let memcg = memcg.index();
        if self.shadow_nodes.len() <= memcg {
            self.shadow_nodes.resize_with(memcg + 1, ShadowNodes::default);
        }
        &mut self.shadow_nodes[memcg]
    }

    /// Frees half of the nodes of a group that are more than its pages entitle it to: making one
    /// again takes no disk access. They all lie on the first node of memory.
    pub(super) fn shrink_shadow_nodes(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        priority: u8,
    ) -> SlabWork {
        let Some(nodes) = self.shadow_nodes.get(memcg.index()).filter(|_| node.0 == 0) else {
            return SlabWork::default();
        };
        let blind = self.blind_shadow_limit && memcg != MemcgId::ROOT;
        let pages = if blind { nodes.all * NODE_BYTES / PAGE_SIZE } else { self.pages_of(memcg) };
        let excess = (nodes.by_age.len() as u64).saturating_sub(pages / PAGES_PER_NODE);
        let scanned = match blind && excess > 0 {
            true => self.shadow_nodes_of(memcg).take_blindly(excess, priority),
            false => excess.div_ceil(2),
        };
        for _ in 0..scanned {
            let oldest = self.shadow_nodes[memcg.index()].pop_oldest();
            self.free_shadow_node(oldest.expect("counted"));
        }
        let freed = if self.kernel.is_charged() { scanned / PER_SLAB_PAGE } else { 0 };
        SlabWork { scanned, freed }
    }

    fn pages_of(&self, memcg: MemcgId) -> u64 {
        match memcg {
            MemcgId::ROOT => self.zones.managed_pages(),
            _ => self.memcgs.usage(memcg).current,
        }
    }

    fn free_shadow_node(&mut self, (file, node): Node) {
        let shadows = &mut self.shadows;
        self.nodes_dropped += 1;
        self.files[file as usize].cache.shrink_node(node, |kept| _ = shadows.take(kept));
        self.settle_nodes(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(len: u64, debt: u64) -> ShadowNodes {
        let mut nodes = ShadowNodes { debt, ..ShadowNodes::default() };
        (0..len).for_each(|node| nodes.enter((0, node as u32)));
        nodes
    }

    #[test]
    fn a_blind_limit_frees_whole_batches_only() {
        let mut nodes = of(300, 0);
        assert_eq!((nodes.take_blindly(255, 12), nodes.debt), (0, 127), "127 wait for a batch");
        assert_eq!((nodes.take_blindly(256, 12), nodes.debt), (128, 127));
        assert_eq!(of(600, 0).take_blindly(600, 12), 256);
    }

    #[test]
    fn the_debt_of_a_blind_limit_comes_in_at_low_priorities() {
        assert_eq!(of(100, 200).take_blindly(100, 12), 0);
        let mut nodes = of(100, 200);
        assert_eq!(nodes.take_blindly(100, 0), 100, "all there is, at most twice the excess");
        assert_eq!(nodes.debt, 150);
    }
}
