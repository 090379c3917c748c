//! The folio slab and its lists (spec §2.1).
//!
//! A folio is 32 bytes, found by index; lists are circular and linked by index, with a sentinel
//! slot of the same slab as head. Links lie apart from the rest: a walk along a list stays within
//! eight bytes a folio, and what it will look at next can be loaded ahead of it. A sentinel lets a
//! folio leave its list without naming it, which matters because a promoted folio stays on its old
//! list while its generation field has moved on. `next` of the sentinel is the head (far from
//! eviction), `prev` the tail.

mod flags;

use alloc::vec::Vec;

pub use flags::{Bit, Flags, MAPCOUNT_MAX, REFS_MAX, REFS_WIDTH};

use crate::types::{FolioId, LruType, LruvecId, Zone, order_pages};

/// Names no folio: an unlinked end.
pub const NONE: FolioId = FolioId(u32::MAX);

/// Names the kind of a new folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FolioKind {
    /// Holds page cache of a real file.
    File,
    /// Holds private anonymous memory.
    Anon,
    /// Holds shared memory: swap-backed, not anonymous.
    Shmem,
}

/// Describes a folio: `2^order` contiguous pages.
#[derive(Clone, Copy, Debug)]
pub struct Folio {
    /// Holds flags and small fields.
    pub flags: Flags,
    /// Names the folio's lruvec: its memcg and node.
    pub lruvec: LruvecId,
    /// Holds the host's key of the folio's content, opaque to the policy.
    pub owner: [u32; 2],
    /// Holds a word of the host, opaque to the policy.
    pub host: u32,
}

impl Folio {
    /// Counts the base pages.
    #[inline]
    pub fn pages(&self) -> u64 {
        order_pages(self.flags.order())
    }

    /// Returns the type, anon or file, as reclaim sorts folios.
    #[inline]
    pub fn lru_type(&self) -> LruType {
        if self.flags.has(Bit::SWAPBACKED) { LruType::Anon } else { LruType::File }
    }

    /// Tells whether any page table maps the folio.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.mapcount() != 0
    }

    /// Counts the page-table entries that map the folio.
    #[inline]
    pub fn mapcount(&self) -> u32 {
        self.flags.mapcount()
    }

    /// Sets the number of page-table entries that map the folio, [`MAPCOUNT_MAX`] at most.
    #[inline]
    pub fn set_mapcount(&mut self, n: u32) {
        self.flags.set_mapcount(n);
    }
}

/// A folio's neighbours on its list.
#[derive(Clone, Copy, Debug)]
struct Links {
    prev: FolioId,
    next: FolioId,
}

const UNLINKED: Links = Links { prev: NONE, next: NONE };

/// Holds all folios. Free slots are chained through `next`.
#[derive(Clone, Debug)]
pub struct Folios {
    slots: Vec<Folio>,
    links: Vec<Links>,
    free: FolioId,
    live: usize,
    /// The accessed bits of a folio on no generation list are left to its holder (K614).
    pub(crate) spares_unlisted: bool,
}

impl Default for Folios {
    fn default() -> Self {
        Self { slots: Vec::new(), links: Vec::new(), free: NONE, live: 0, spares_unlisted: false }
    }
}

impl core::ops::Index<FolioId> for Folios {
    type Output = Folio;
    #[inline]
    fn index(&self, id: FolioId) -> &Folio {
        &self.slots[id.index()]
    }
}

impl core::ops::IndexMut<FolioId> for Folios {
    #[inline]
    fn index_mut(&mut self, id: FolioId) -> &mut Folio {
        &mut self.slots[id.index()]
    }
}

impl Folios {
    /// Allocates a folio on no list.
    pub fn alloc(
        &mut self,
        kind: FolioKind,
        lruvec: LruvecId,
        zone: Zone,
        order: u8,
        owner: [u32; 2],
    ) -> FolioId {
        let mut flags = Flags::new(zone, order);
        flags.put(Bit::SWAPBACKED, kind != FolioKind::File);
        flags.put(Bit::ANON, kind == FolioKind::Anon);
        self.live += 1;
        self.take_slot(Folio { flags, lruvec, owner, host: 0 })
    }

    /// A new folio like `folio`, held by `owner`: linked beside `id`, on the side away from
    /// eviction, if that is on a list.
    pub(crate) fn insert_beside(&mut self, id: FolioId, folio: Folio, owner: [u32; 2]) -> FolioId {
        self.live += 1;
        let new = self.take_slot(Folio { owner, ..folio });
        if self.is_listed(id) {
            let prev = self.links[id.index()].prev;
            self.link(new, prev, id);
        }
        new
    }

    /// Gives a folio back. It must be on no list.
    pub fn free(&mut self, id: FolioId) {
        debug_assert!(!self.is_listed(id), "{id:?} freed while listed");
        debug_assert!(self[id].lruvec != LruvecId(u32::MAX), "{id:?} freed twice");
        self.links[id.index()].next = self.free;
        let slot = &mut self[id];
        slot.lruvec = LruvecId(u32::MAX);
        slot.flags = Flags::default();
        self.free = id;
        self.live -= 1;
    }

    /// Tells whether a page-table walk or a look-around on behalf of `lruvec` may clear accessed
    /// bits of this folio (spec §4.3): not of another lruvec's, and under K614 not of one on no
    /// generation list, as its isolator asks for them itself.
    #[inline]
    pub fn is_harvested(&self, id: FolioId, lruvec: LruvecId) -> bool {
        let folio = &self[id];
        folio.lruvec == lruvec && !(self.spares_unlisted && folio.flags.generation().is_none())
    }

    /// Counts the folios allocated and not freed, sentinels not counted.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Counts the slots of the slab, free and sentinel slots included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Creates an empty list.
    pub fn new_list(&mut self) -> List {
        let sentinel = self.take_slot(Folio {
            flags: Flags::default(),
            lruvec: LruvecId(u32::MAX),
            owner: [0; 2],
            host: 0,
        });
        self.links[sentinel.index()] = Links { prev: sentinel, next: sentinel };
        List(sentinel)
    }

    /// Frees an empty list's sentinel.
    pub fn drop_list(&mut self, list: List) {
        debug_assert!(self.is_empty(list));
        self.links[list.0.index()] = Links { prev: NONE, next: self.free };
        self.free = list.0;
    }

    fn take_slot(&mut self, folio: Folio) -> FolioId {
        if self.free == NONE {
            let id = FolioId(u32::try_from(self.slots.len()).expect("at most 2^32 folios"));
            self.slots.push(folio);
            self.links.push(UNLINKED);
            return id;
        }
        let id = self.free;
        let links = &mut self.links[id.index()];
        self.free = links.next;
        *links = UNLINKED;
        self[id] = folio;
        id
    }

    /// Tells whether the folio is linked into a list.
    #[inline]
    pub fn is_listed(&self, id: FolioId) -> bool {
        self.links[id.index()].prev != NONE
    }

    /// Tells whether the list is empty.
    #[inline]
    pub fn is_empty(&self, list: List) -> bool {
        self.links[list.0.index()].prev == list.0
    }

    /// Returns the folio nearest to eviction.
    #[inline]
    pub fn tail(&self, list: List) -> Option<FolioId> {
        let tail = self.links[list.0.index()].prev;
        (tail != list.0).then_some(tail)
    }

    /// Returns the neighbour of `id` further from eviction.
    #[inline]
    pub fn before(&self, list: List, id: FolioId) -> Option<FolioId> {
        let prev = self.links[id.index()].prev;
        (prev != list.0).then_some(prev)
    }

    /// Loads the flags of `from` and of those that follow it towards the head, `n` in all, for
    /// nothing but to have them near when they are asked for one by one: these loads overlap, those
    /// would not.
    #[inline]
    pub(crate) fn bring_near(&self, list: List, from: FolioId, n: usize) {
        let ahead = core::iter::successors(Some(from), |&id| self.before(list, id));
        core::hint::black_box(ahead.take(n).fold(0, |near, id| near ^ self[id].flags.0));
    }

    /// The same for the links of folios that are about to leave their lists.
    #[inline]
    pub(crate) fn bring_links_near(&self, ids: impl Iterator<Item = FolioId>) {
        core::hint::black_box(ids.fold(0, |near, id| near ^ self.links[id.index()].prev.0));
    }

    /// Links the folio at the head, far from eviction.
    #[inline]
    pub fn push_head(&mut self, list: List, id: FolioId) {
        let next = self.links[list.0.index()].next;
        self.link(id, list.0, next);
    }

    /// Links the folio at the tail, next to be evicted.
    #[inline]
    pub fn push_tail(&mut self, list: List, id: FolioId) {
        let prev = self.links[list.0.index()].prev;
        self.link(id, prev, list.0);
    }

    /// Takes the folio off whatever list it is on.
    #[inline]
    pub fn unlink(&mut self, id: FolioId) {
        let Links { prev, next } = core::mem::replace(&mut self.links[id.index()], UNLINKED);
        debug_assert!(prev != NONE, "{id:?} is on no list");
        self.links[prev.index()].next = next;
        self.links[next.index()].prev = prev;
    }

    /// Moves the piece of a list from `near` (to eviction) to `far` (from it) to an end of another
    /// list; its order stays. The two may be one folio.
    #[inline]
    pub fn splice(&mut self, near: FolioId, far: FolioId, list: List, to_tail: bool) {
        let (before, after) = (self.links[far.index()].prev, self.links[near.index()].next);
        debug_assert!(before != NONE && after != NONE, "{near:?} to {far:?} are on no list");
        self.links[before.index()].next = after;
        self.links[after.index()].prev = before;
        let end = list.0;
        let (prev, next) = match to_tail {
            true => (self.links[end.index()].prev, end),
            false => (end, self.links[end.index()].next),
        };
        self.links[prev.index()].next = far;
        self.links[far.index()].prev = prev;
        self.links[near.index()].next = next;
        self.links[next.index()].prev = near;
    }

    #[inline]
    fn link(&mut self, id: FolioId, prev: FolioId, next: FolioId) {
        debug_assert!(!self.is_listed(id), "{id:?} is on a list already");
        self.links[prev.index()].next = id;
        self.links[next.index()].prev = id;
        self.links[id.index()] = Links { prev, next };
    }

    /// Iterates from the tail (next to be evicted) to the head.
    pub fn iter_from_tail(&self, list: List) -> impl Iterator<Item = FolioId> + '_ {
        core::iter::successors(self.tail(list), move |&id| self.before(list, id))
    }

    /// Every live folio, in slot order, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Folio> + '_ {
        self.slots.iter_mut().filter(|folio| folio.lruvec != LruvecId(u32::MAX))
    }

    /// Iterates over every live folio, in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (FolioId, &Folio)> + '_ {
        (0u32..).map(FolioId).zip(&self.slots).filter(|(_, f)| f.lruvec != LruvecId(u32::MAX))
    }
}

/// Names a list by its sentinel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(FolioId);

#[cfg(test)]
mod tests;
