//! The page cache of one file: which page is in which folio, and what was remembered of pages
//! that were evicted (spec §6).
//!
//! Slots past the highest one ever used do not exist. Shadows are kept until the slot is reused or
//! truncated, or until the node is shrunk that holds nothing else.

use std::ops::Range;

use mglru::types::FolioId;

use crate::cache_slot::Slot;
use crate::shadows::Kept;

/// Counts the slots of one node of the tree that real page caches are.
pub const NODE_SLOTS: usize = 64;

/// Returns the node that holds page `index`.
pub fn node_of(index: u64) -> u32 {
    (index / NODE_SLOTS as u64) as u32
}

/// Slots in use of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    pages: u8,
    shadows: u8,
}

impl Used {
    fn is_empty(self) -> bool {
        self.pages == 0 && self.shadows == 0
    }
}

/// Holds the page cache of one file.
#[derive(Clone, Debug, Default)]
pub struct PageCache {
    /// As [`Slot`] packs them.
    slots: Vec<u32>,
    cached: u64,
    /// Counts the content of each node of 64 slots.
    used: Vec<Used>,
    nodes: u64,
}

impl PageCache {
    /// Returns the content of the slot of page `index`.
    #[inline]
    pub fn get(&self, index: u64) -> Slot {
        Slot::unpack(self.slots.get(index as usize).copied().unwrap_or(0))
    }

    /// Returns the folio of page `index`, if cached.
    #[inline]
    pub fn folio(&self, index: u64) -> Option<FolioId> {
        match self.get(index) {
            Slot::Folio(folio) => Some(folio),
            _ => None,
        }
    }

    /// Tells whether page `index` is cached.
    #[inline]
    pub fn has(&self, index: u64) -> bool {
        self.folio(index).is_some()
    }

    /// Returns the raw word of a slot, to bring its cache line near before a batch of accesses.
    #[inline]
    pub fn peek(&self, index: u64) -> u64 {
        u64::from(self.slots.get(index as usize).copied().unwrap_or(0))
    }

    /// Caches a page and returns the shadow that stood in its place.
    pub fn insert(&mut self, index: u64, folio: FolioId) -> Option<Kept> {
        let old = self.get(index);
        debug_assert!(!matches!(old, Slot::Folio(_)), "page {index} is cached already");
        self.grow(index);
        self.slots[index as usize] = Slot::Folio(folio).pack();
        self.cached += 1;
        let shadow = match old {
            Slot::Shadow(shadow) => Some(shadow),
            _ => None,
        };
        self.change_node(index, |used| {
            used.pages += 1;
            used.shadows -= u8::from(shadow.is_some());
        });
        shadow
    }

    /// Takes a page out; an evicted one leaves its shadow.
    pub fn remove(&mut self, index: u64, shadow: Option<Kept>) {
        debug_assert!(self.has(index), "page {index} is not cached");
        self.slots[index as usize] = shadow.map_or(Slot::Hole, Slot::Shadow).pack();
        self.cached -= 1;
        self.change_node(index, |used| {
            used.pages -= 1;
            used.shadows += u8::from(shadow.is_some());
        });
    }

    /// Takes the shadows out from page `from` on; cached pages there must have been removed.
    pub fn truncate(&mut self, from: u64, forget: impl FnMut(Kept)) {
        debug_assert!((from..self.end()).all(|i| !self.has(i)), "cached pages past {from}");
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.slots.len());
        self.drop_shadows(from..self.slots.len(), forget);
        self.slots.truncate(from);
    }

    /// Takes every shadow out.
    pub fn drop_all_shadows(&mut self, forget: impl FnMut(Kept)) {
        self.drop_shadows(0..self.slots.len(), forget);
    }

    /// Takes the shadows of some pages out.
    pub fn drop_shadows_in(&mut self, pages: Range<u64>, forget: impl FnMut(Kept)) {
        let end = pages.end.min(self.end());
        self.drop_shadows(pages.start.min(end) as usize..end as usize, forget);
    }

    /// Takes the shadows of one node out, if it holds nothing else.
    pub fn shrink_node(&mut self, node: u32, forget: impl FnMut(Kept)) {
        if self.is_shadows_only(node) {
            let first = node as usize * NODE_SLOTS;
            self.drop_shadows(first..self.slots.len().min(first + NODE_SLOTS), forget);
        }
    }

    /// Does a node hold shadows and no page?
    #[inline]
    pub fn is_shadows_only(&self, node: u32) -> bool {
        self.used.get(node as usize).is_some_and(|used| used.pages == 0 && used.shadows > 0)
    }

    fn drop_shadows(&mut self, range: Range<usize>, mut forget: impl FnMut(Kept)) {
        for index in range {
            if let Slot::Shadow(kept) = Slot::unpack(self.slots[index]) {
                self.slots[index] = Slot::Hole.pack();
                self.change_node(index as u64, |used| used.shadows -= 1);
                forget(kept);
            }
        }
    }

    /// Changes what the node of page `index` holds, and with it how many nodes there are.
    fn change_node(&mut self, index: u64, change: impl FnOnce(&mut Used)) {
        let node = node_of(index) as usize;
        if node >= self.used.len() {
            self.used.resize(node + 1, Used::default());
        }
        let used = &mut self.used[node];
        let was_empty = used.is_empty();
        change(used);
        self.nodes = self.nodes + u64::from(was_empty) - u64::from(used.is_empty());
    }

    /// Lists the cached folios, in order, each with its first page from `from` on and before `to`.
    pub fn folios(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, FolioId)> + '_ {
        let mut last = None;
        let pages = (from..to.min(self.end())).filter_map(|i| self.folio(i).map(|f| (i, f)));
        pages.filter(move |&(_, folio)| last.replace(folio) != Some(folio))
    }

    /// Puts another folio in place of a cached one that was split.
    pub fn replace(&mut self, index: u64, folio: FolioId) {
        debug_assert!(self.has(index), "page {index} is not cached");
        self.slots[index as usize] = Slot::Folio(folio).pack();
    }

    /// Counts the cached pages directly before `index`, up to `most`.
    pub fn cached_before(&self, index: u64, most: u64) -> u64 {
        let least = index.saturating_sub(most);
        (least..index).rev().take_while(|&i| self.has(i)).count() as u64
    }

    /// Returns the first page at or after `from` that is not cached. It steps over whole nodes that
    /// are full, as windows of 4 MiB look far.
    pub fn next_hole(&self, from: u64) -> u64 {
        let slots = NODE_SLOTS as u64;
        let full = |node: &Used| usize::from(node.pages) == NODE_SLOTS;
        let mut index = from;
        while self.has(index) {
            let is_full = self.used.get(node_of(index) as usize).is_some_and(full);
            index = if is_full { (index / slots + 1) * slots } else { index + 1 };
        }
        index
    }

    /// Counts the cached pages.
    pub fn cached(&self) -> u64 {
        self.cached
    }

    /// Counts the nodes of the tree: those of 64 slots that hold a page or a shadow, and the nodes
    /// above them, as many as a file used without gaps has.
    pub fn nodes(&self) -> u64 {
        let slots = NODE_SLOTS as u64;
        let above = |&n: &u64| (n > 1).then(|| n.div_ceil(slots));
        std::iter::successors(Some(self.nodes), above).sum()
    }

    /// Returns one past the last slot in use.
    pub fn end(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Makes room up to a page that is expected to be used, so that the array is not copied.
    pub fn reserve(&mut self, pages: u64) {
        if self.slots.is_empty() {
            self.slots = vec![0; pages as usize];
        }
    }

    fn grow(&mut self, index: u64) {
        if index >= self.end() {
            self.slots.resize(index as usize + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_leaves_a_shadow_and_refault_finds_it() {
        let mut cache = PageCache::default();
        assert_eq!(cache.insert(5, FolioId(0)), None);
        assert_eq!((cache.get(5), cache.get(4)), (Slot::Folio(FolioId(0)), Slot::Hole));
        cache.remove(5, Some(Kept(0)));
        assert_eq!((cache.get(5), cache.cached()), (Slot::Shadow(Kept(0)), 0));
        assert_eq!(cache.insert(5, FolioId(9)), Some(Kept(0)));
        cache.remove(5, None);
        assert_eq!(cache.get(5), Slot::Hole);
    }

    #[test]
    fn truncation_forgets_shadows() {
        let mut cache = PageCache::default();
        cache.insert(1, FolioId(1));
        cache.insert(8, FolioId(8));
        cache.remove(8, Some(Kept(77)));
        assert_eq!(cache.nodes(), 1);
        cache.insert(200, FolioId(2));
        cache.remove(200, Some(Kept(1)));
        assert_eq!(cache.nodes(), 3, "two and the one above them");
        let mut forgotten = Vec::new();
        cache.truncate(2, |kept| forgotten.push(kept.0));
        assert_eq!(forgotten, [77, 1]);
        assert_eq!(cache.nodes(), 1);
        assert_eq!((cache.get(8), cache.end()), (Slot::Hole, 2));
        assert!(cache.has(1));
    }

    #[test]
    fn a_folio_of_many_pages_is_met_once() {
        let mut cache = PageCache::default();
        (4..8).for_each(|page| _ = cache.insert(page, FolioId(3)));
        cache.insert(8, FolioId(5));
        let met = |cache: &PageCache, from| cache.folios(from, u64::MAX).collect::<Vec<_>>();
        assert_eq!(met(&cache, 0), [(4, FolioId(3)), (8, FolioId(5))]);
        assert_eq!(met(&cache, 6), [(6, FolioId(3)), (8, FolioId(5))], "from inside of it on");
        (6..8).for_each(|page| cache.replace(page, FolioId(9)));
        assert_eq!(met(&cache, 5), [(5, FolioId(3)), (6, FolioId(9)), (8, FolioId(5))]);
        assert_eq!(cache.cached(), 5);
    }

    #[test]
    fn full_nodes_are_stepped_over_to_the_first_hole() {
        let mut cache = PageCache::default();
        (0..200).for_each(|page| _ = cache.insert(page, FolioId(page as u32)));
        assert_eq!(
            [0, 63, 64, 190, 200, 999].map(|from| cache.next_hole(from)),
            [200, 200, 200, 200, 200, 999]
        );
        cache.remove(128, Some(Kept(1)));
        assert_eq!([0, 127, 128, 129].map(|from| cache.next_hole(from)), [128, 128, 128, 200]);
    }

    #[test]
    fn history_before_a_miss_is_counted_up_to_a_limit() {
        let mut cache = PageCache::default();
        for i in [0, 1, 2, 4, 5] {
            cache.insert(i, FolioId(i as u32));
        }
        assert_eq!(cache.cached_before(6, 32), 2);
        assert_eq!(cache.cached_before(3, 32), 3);
        assert_eq!(cache.cached_before(3, 2), 2);
        assert_eq!(cache.cached_before(0, 32), 0);
        assert_eq!((cache.next_hole(0), cache.next_hole(4), cache.next_hole(9)), (3, 6, 9));
        assert_eq!(cache.folios(1, 5).map(|(i, _)| i).collect::<Vec<_>>(), [1, 2, 4]);
    }
}
