//! Nodes of page caches that hold nothing but shadows: in order of age, and freed by reclaim from
//! the old end (spec §6).
//!
//! A shadow tells something only as long as the page, had it been kept, would have fitted in
//! memory. So there is no use for more shadows than pages; a node is taken to hold an eighth of
//! its 64 slots at the least, and one node for eight pages is let be.

use std::collections::BTreeMap;

use mglru::Shadow;
use mglru::host::SlabWork;
use mglru::types::{FolioId, MemcgId, NodeId};
use mglru_workload::FileId;

use super::World;
use crate::page_cache::{NODE_SLOTS, node_of};

/// Pages that entitle a group to a node of shadows.
const PAGES_PER_NODE: u64 = 8;
/// Nodes that a page of slab holds.
const PER_SLAB_PAGE: u64 = 7;

/// A node of a file's page cache.
type Node = (FileId, u32);

/// The nodes of one group that hold only shadows.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowNodes {
    by_age: BTreeMap<u64, Node>,
    since: BTreeMap<Node, u64>,
    next: u64,
}

impl ShadowNodes {
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
    /// Caches a page; the shadow that stood in its place.
    pub(crate) fn cache_page(
        &mut self,
        file: FileId,
        index: u64,
        folio: FolioId,
    ) -> Option<Shadow> {
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

    fn shadow_nodes(&mut self, file: FileId) -> &mut ShadowNodes {
        let memcg = self.files[file as usize].owner.unwrap_or(MemcgId::ROOT).index();
        if self.shadow_nodes.len() <= memcg {
            self.shadow_nodes.resize_with(memcg + 1, ShadowNodes::default);
        }
        &mut self.shadow_nodes[memcg]
    }

    /// Frees half of the nodes of a group that are more than its pages entitle it to: making one
    /// again takes no disk access. They all lie on the first node of memory.
    pub(super) fn shrink_shadow_nodes(&mut self, memcg: MemcgId, node: NodeId) -> SlabWork {
        let Some(nodes) = self.shadow_nodes.get(memcg.index()).filter(|_| node.0 == 0) else {
            return SlabWork::default();
        };
        let entitled = self.pages_of(memcg) / PAGES_PER_NODE;
        let scanned = (nodes.by_age.len() as u64).saturating_sub(entitled).div_ceil(2);
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
        self.files[file as usize].cache.shrink_node(node, |kept| _ = shadows.take(kept));
        self.settle_nodes(file);
    }
}
