//! The events that change the state outside of reclaim (spec §3).
//!
//! Every change comes through a method here (or the same as an [`Input`](crate::Input)); reclaim
//! itself is a [`Reclaim`](crate::Reclaim) that is stepped.

pub(crate) mod input;
mod mms;
mod parked;
mod split;
mod workingset;

use crate::config::{Algorithm, Config};
use crate::folio::{Bit, FolioKind};
use crate::host::ListChange;
use crate::shadow::Place;
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::state::node::Wakes;
use crate::stats::Counter;
use crate::tiers;
use crate::types::{FolioId, LruType, MemcgId, Nanos, NodeId, Zone};

/// Names the way in which a new folio comes onto the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Comes by buffered read, readahead outside a fault, or write.
    Plain,
    /// Comes by a page-cache lookup that means to access it: referenced from the start.
    Referenced,
    /// Comes by a page fault, itself or as a companion read with it. `recency`: the mapping has no
    /// SEQ/RAND advice and the file is not NOREUSE.
    Fault {
        /// Accesses through the mapping say something about reuse.
        recency: bool,
    },
}

/// Holds the sizes of one lruvec as vmstat reports them, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Counts the pages of `inactive_anon`.
    pub inactive_anon: u64,
    /// Counts the pages of `active_anon`.
    pub active_anon: u64,
    /// Counts the pages of `inactive_file`.
    pub inactive_file: u64,
    /// Counts the pages of `active_file`.
    pub active_file: u64,
    /// Counts the pages of `unevictable`.
    pub unevictable: u64,
}

impl Lru {
    /// Creates a memcg below `parent`.
    pub fn add_memcg(&mut self, parent: MemcgId, now: Nanos) -> MemcgId {
        let id = self.memcgs.add(parent);
        self.add_lruvecs(id, now);
        id
    }

    /// Removes a group; its folios stay until they are evicted.
    pub fn offline_memcg(&mut self, memcg: MemcgId) {
        self.drain_parked();
        self.memcgs[memcg].online = false;
        self.nodes.iter_mut().for_each(|node| node.memcg_lru.offline(memcg));
    }

    /// Forgets a removed group of which nothing is left: reclaim never visits it again.
    ///
    /// # Panics
    /// If it was not removed, or still has folios: a bug of the host.
    pub fn release_memcg(&mut self, memcg: MemcgId) {
        assert!(!self.memcgs[memcg].online, "{memcg:?}: released while it is online");
        assert!(self.has_no_folios(memcg), "{memcg:?}: released with folios");
        self.memcgs[memcg].released = true;
        self.nodes.iter_mut().for_each(|node| node.memcg_lru.release(memcg));
    }

    pub(crate) fn has_no_folios(&self, memcg: MemcgId) -> bool {
        let nodes = (0..self.config.nr_nodes).map(NodeId);
        nodes.into_iter().all(|node| self.sizes(memcg, node) == Sizes::default())
    }

    /// Records that the group exceeds its soft limit (cgroup v1): root reclaim comes to it early.
    pub fn exceed_soft_limit(&mut self, memcg: MemcgId, node: NodeId) {
        self.nodes[node.index()].memcg_lru.exceed(memcg);
    }

    /// Creates a folio, charged to `memcg`, on no list yet. `owner` is the host's own key.
    pub fn new_folio(
        &mut self,
        kind: FolioKind,
        memcg: MemcgId,
        node: NodeId,
        zone: Zone,
        order: u8,
        owner: [u32; 2],
    ) -> FolioId {
        let lruvec = self.lruvec_id(memcg, node);
        self.folios.alloc(kind, lruvec, zone, order, owner)
    }

    /// Puts a new folio onto the lists (spec §3.2), or into a batch on its way there.
    pub fn add(&mut self, id: FolioId, entry: Entry) {
        match entry {
            Entry::Plain | Entry::Fault { recency: false } => {}
            Entry::Referenced => self.folios[id].flags.set(Bit::REFERENCED),
            Entry::Fault { recency: true } if self.config.is_mglru() => self.mark_faulted(id),
            Entry::Fault { .. } => {}
        }
        if self.config.parks() {
            self.park(id);
        } else {
            self.putback(id);
        }
    }

    /// A fault says "young"; after the prefault patch only a proven folio is placed so.
    fn mark_faulted(&mut self, id: FolioId) {
        let Config { patches, refs_model, .. } = self.config;
        let flags = &mut self.folios[id].flags;
        if !patches.prefault || flags.has(Bit::WORKINGSET) {
            flags.set(Bit::ACTIVE);
        } else if !flags.has(Bit::REFERENCED) {
            tiers::count_access(flags, refs_model);
        }
    }

    /// Puts a folio that is on no list where its flags say.
    pub(crate) fn putback(&mut self, id: FolioId) {
        let flags = self.folios[id].flags;
        if flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED]) {
            self.insert_unevictable(id);
        } else if self.config.is_mglru() {
            self.insert_generation(id, false);
        } else {
            self.insert_classic(id, false);
        }
    }

    /// Puts back a folio that was moved to another page, where a new look at it puts it.
    pub fn put_back_moved(&mut self, id: FolioId) {
        self.unlist(id);
        self.putback(id);
    }

    fn insert_unevictable(&mut self, id: FolioId) {
        let folio = &mut self.folios[id];
        folio.flags.clear(Bit::ACTIVE);
        folio.flags.set(Bit::UNEVICTABLE);
        folio.flags.set(Bit::LRU);
        let (lruvec, n) = (folio.lruvec.index(), folio.pages());
        self.lruvecs[lruvec].nr_unevictable += n;
        self.folios.push_head(self.lruvecs[lruvec].unevictable, id);
        self.note_change(id, ListChange::Removed);
    }

    /// Takes a folio off its list, for good (truncation, exit) or to be put back elsewhere.
    /// Nothing happens to a folio that is on no list.
    pub fn remove(&mut self, id: FolioId) {
        if self.folios[id].flags.has(Bit::LRU) {
            self.note_change(id, ListChange::Removed);
        }
        self.unlist(id);
    }

    /// Takes a folio off its list for a moment: another place of the list is next.
    fn unlist(&mut self, id: FolioId) {
        let folio = self.folios[id];
        if !folio.flags.has(Bit::LRU) {
            self.unpark(id);
            return;
        }
        if folio.flags.has(Bit::UNEVICTABLE) {
            self.lruvecs[folio.lruvec.index()].nr_unevictable -= folio.pages();
            self.folios.unlink(id);
            self.folios[id].flags.clear(Bit::LRU);
        } else if self.config.is_mglru() {
            self.remove_generation(id);
        } else {
            self.remove_classic(id);
        }
    }

    /// Gives a folio that is on no list back to the slab, whatever its dirty state.
    pub fn free_folio(&mut self, id: FolioId) {
        if self.folios[id].flags.has(Bit::ISOLATED) {
            self.note_change(id, ListChange::Removed);
            self.release_isolated(id);
        }
        self.clean(id);
        if self.folios[id].flags.has(Bit::WRITEBACK) {
            self.account_writeback(id, false);
        }
        self.folios.free(id);
    }

    /// Records one access through a file descriptor ("mark accessed").
    pub fn accessed(&mut self, id: FolioId) {
        let flags = self.folios[id].flags;
        if flags.has_any([Bit::DROPBEHIND, Bit::UNEVICTABLE]) {
            return;
        }
        if self.config.is_mglru() {
            tiers::count_access(&mut self.folios[id].flags, self.config.refs_model);
        } else if self.config.lru == Algorithm::Custom && flags.has(Bit::LRU) {
            self.note_change(id, ListChange::Accessed);
        } else if !self.config.keeps_one_list() {
            self.classic_accessed(id);
        }
    }

    /// Records that the folio became newer than its backing store.
    pub fn set_dirty(&mut self, id: FolioId) {
        let flags = &mut self.folios[id].flags;
        if !flags.has(Bit::DIRTY) {
            flags.set(Bit::DIRTY);
            self.account_dirty(id, true);
        }
    }

    /// Clears the dirty bit: the folio is clean, or will be when the writeback that starts now
    /// ends.
    pub fn clean(&mut self, id: FolioId) {
        if self.folios[id].flags.take(Bit::DIRTY) {
            self.account_dirty(id, false);
        }
    }

    fn account_dirty(&mut self, id: FolioId, more: bool) {
        let folio = self.folios[id];
        if folio.flags.has_any([Bit::SWAPBACKED, Bit::ANON]) {
            return;
        }
        let Place { memcg, node } = self.place(folio.lruvec);
        adjust(&mut self.memcgs[memcg].file_dirty, folio.pages(), more);
        adjust(&mut self.nodes[node.index()].dirty, folio.pages(), more);
    }

    /// Records that the folio is being written.
    pub fn start_writeback(&mut self, id: FolioId) {
        debug_assert!(!self.folios[id].flags.has(Bit::WRITEBACK));
        self.folios[id].flags.set(Bit::WRITEBACK);
        self.account_writeback(id, true);
    }

    fn account_writeback(&mut self, id: FolioId, more: bool) {
        let folio = self.folios[id];
        let Place { memcg, node } = self.place(folio.lruvec);
        adjust(&mut self.memcgs[memcg].writeback, folio.pages(), more);
        adjust(&mut self.nodes[node.index()].writeback, folio.pages(), more);
    }

    /// Ends a write. A folio that reclaim is waiting for goes to the tail of the oldest list,
    /// unless another holder has it (spec §3.5).
    pub fn end_writeback(&mut self, id: FolioId) {
        let folio = self.folios[id];
        debug_assert!(folio.flags.has(Bit::WRITEBACK));
        let rotates = self.folios[id].flags.take(Bit::RECLAIM);
        self.folios[id].flags.clear(Bit::WRITEBACK);
        self.account_writeback(id, false);
        let node = self.place(folio.lruvec).node;
        self.nodes[node.index()].account_written(folio.pages());
        if rotates {
            self.rotate_reclaimable(id);
        }
    }

    fn rotate_reclaimable(&mut self, id: FolioId) {
        let flags = self.folios[id].flags;
        let busy = flags.has_any([Bit::LOCKED, Bit::DIRTY]);
        if busy || flags.has(Bit::UNEVICTABLE) || !flags.has(Bit::LRU) {
            return;
        }
        self.unlist(id);
        self.folios[id].flags.clear(Bit::ACTIVE);
        if self.config.is_mglru() {
            self.insert_generation(id, true);
        } else {
            self.insert_classic(id, true);
        }
        let (lruvec, n) = (self.folios[id].lruvec, self.folios[id].pages());
        self.count(lruvec, Counter::Pgrotated, n);
    }

    /// Locks the folio in memory, or releases it.
    pub fn set_mlocked(&mut self, id: FolioId, locked: bool) {
        let listed = self.folios[id].flags.has(Bit::LRU);
        if listed {
            self.remove(id);
        }
        let flags = &mut self.folios[id].flags;
        flags.put(Bit::MLOCKED, locked);
        flags.put(Bit::UNEVICTABLE, locked);
        if listed {
            self.putback(id);
        }
    }

    /// Forgets the folio's accesses and moves it where cold ones are (`madvise(MADV_COLD)`).
    pub fn deactivate(&mut self, id: FolioId) {
        let flags = self.folios[id].flags;
        if !flags.has(Bit::LRU) || flags.has(Bit::UNEVICTABLE) {
            return;
        }
        let flags = &mut self.folios[id].flags;
        flags.clear(Bit::REFERENCED);
        flags.clear(Bit::WORKINGSET);
        flags.set_refs(0);
        if self.is_cold_already(id) {
            return;
        }
        self.unlist(id);
        self.folios[id].flags.clear(Bit::ACTIVE);
        self.putback(id);
        self.note_change(id, ListChange::Cold);
        let (lruvec, n) = (self.folios[id].lruvec, self.folios[id].pages());
        self.count(lruvec, Counter::Pgdeactivate, n);
    }

    /// Tells whether the folio lies where cold ones go, and stays.
    fn is_cold_already(&self, id: FolioId) -> bool {
        let folio = &self.folios[id];
        let oldest = self.lruvecs[folio.lruvec.index()].mg.oldest(folio.lru_type());
        self.config.version().keeps_cold && folio.flags.generation() == Some(oldest)
    }

    /// Turns the folio into clean memory of the file type (`madvise(MADV_FREE)`).
    pub fn lazyfree(&mut self, id: FolioId) {
        self.remove(id);
        self.clean(id);
        let flags = &mut self.folios[id].flags;
        for bit in [Bit::SWAPBACKED, Bit::ACTIVE, Bit::REFERENCED, Bit::WORKINGSET] {
            flags.clear(bit);
        }
        flags.set_refs(0);
        self.putback(id);
    }

    /// Returns the sizes of one lruvec. Under MGLRU the two youngest generations report as active.
    pub fn sizes(&self, memcg: MemcgId, node: NodeId) -> Sizes {
        let lruvec = &self.lruvecs[self.lruvec_id(memcg, node).index()];
        let size = |lru_type, active| {
            if self.config.is_mglru() {
                lruvec.mg.reported(lru_type, active)
            } else {
                lruvec.classic_size(ClassicList::of(lru_type, active))
            }
        };
        Sizes {
            inactive_anon: size(LruType::Anon, false),
            active_anon: size(LruType::Anon, true),
            inactive_file: size(LruType::File, false),
            active_file: size(LruType::File, true),
            unevictable: lruvec.nr_unevictable,
        }
    }

    /// Counts dirty file pages and pages under writeback of one memcg, descendants not included.
    pub fn memcg_write(&self, memcg: MemcgId) -> (u64, u64) {
        (self.memcgs[memcg].file_dirty, self.memcgs[memcg].writeback)
    }

    /// Counts dirty file pages and pages under writeback of a node.
    pub fn node_write(&self, node: NodeId) -> (u64, u64) {
        (self.nodes[node.index()].dirty, self.nodes[node.index()].writeback)
    }

    /// Returns the throttled tasks of the node that may go on now, and forgets them.
    pub fn take_wakes(&mut self, node: NodeId) -> Wakes {
        core::mem::take(&mut self.nodes[node.index()].wakes)
    }

    /// Records that a task that slept for writeback on this node goes on.
    pub fn throttle_ended(&mut self, node: NodeId) {
        let node = &mut self.nodes[node.index()];
        node.throttled = node.throttled.saturating_sub(1);
    }
}

fn adjust(count: &mut u64, n: u64, more: bool) {
    *count = if more { *count + n } else { *count - n };
}
