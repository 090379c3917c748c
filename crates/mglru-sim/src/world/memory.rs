//! Pages and swap slots: taken, charged and given back.

use mglru::Shadow;
use mglru::folio::{Bit, Folio, Folios};
use mglru::types::{FolioId, LruvecId, MemcgId, NodeId, Zone};

use super::World;
use crate::cache_slot::Slot as Cached;
use crate::physical::MigrateType;
use crate::swap::Slot;
use crate::task::FreshPage;
use crate::zones::{Mark, NORMAL};

/// Counts pages that a group holds, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Counts private anonymous memory.
    pub anon: u64,
    /// Counts shared memory.
    pub shmem: u64,
    /// Counts page cache of files.
    pub file: u64,
}

impl World {
    /// Takes free pages near `node`, waking kswapd where memory is low. `None`: free memory is
    /// below the minimum everywhere, and the caller has to reclaim.
    pub(crate) fn alloc_pages(&mut self, node: NodeId, order: u8) -> Option<FreshPage> {
        let take = |world: &mut Self, mark| match order {
            0 => world.take_page_of(node, mark, MigrateType::Movable),
            _ => world.take_pages_of(node, mark, order),
        };
        let low = take(self, Mark::Low);
        let got = low.or_else(|| {
            self.wake_low_nodes();
            take(self, Mark::Min)
        });
        self.events.pgalloc += got.map_or(0, |page| page.pages());
        self.spend(if got.is_some() { self.costs.alloc_ns } else { 0 });
        got
    }

    fn wake_low_nodes(&mut self) {
        for node in 0..self.zones.nodes() as u8 {
            if self.zones.wants_kswapd(NodeId(node), NORMAL) {
                self.wake_kswapd(NodeId(node));
            }
        }
    }

    /// Gives back pages that never held anything.
    pub(crate) fn give_page_back(&mut self, memcg: MemcgId, page: FreshPage) {
        self.memcgs.uncharge(memcg, page.pages());
        self.put_page(page);
        self.events.pgfree += page.pages();
    }

    /// A charged page becomes a folio.
    pub(crate) fn hold(&mut self, folio: &Folio) {
        *self.held_as(folio) += folio.pages();
    }

    /// The folios of a removed group became its parent's, and with them their charge.
    pub(crate) fn move_up(&mut self, memcg: MemcgId) {
        let Some(parent) = self.memcgs.parent(memcg) else { return };
        let Held { anon, shmem, file } = std::mem::take(&mut self.held[memcg.index()]);
        let held = &mut self.held[parent.index()];
        held.anon += anon;
        held.shmem += shmem;
        held.file += file;
        self.memcgs.move_up(memcg, anon + shmem + file);
    }

    fn held_as(&mut self, folio: &Folio) -> &mut u64 {
        let memcg = self.memcg_of(folio.lruvec);
        let held = &mut self.held[memcg.index()];
        match (folio.flags.has(Bit::ANON), folio.flags.has(Bit::SWAPBACKED)) {
            (true, _) => &mut held.anon,
            (false, true) => &mut held.shmem,
            (false, false) => &mut held.file,
        }
    }

    /// Gives a folio's memory back.
    pub(crate) fn uncharge(&mut self, folios: &Folios, id: FolioId) {
        let folio = &folios[id];
        *self.held_as(folio) -= folio.pages();
        let (memcg, node) = (self.memcg_of(folio.lruvec), self.node_of(folio.lruvec));
        self.memcgs.uncharge(memcg, folio.pages());
        self.give_buffers(memcg, id);
        if !self.put_folio(id) {
            self.zones.free(node, folio.flags.zone(), folio.pages());
        }
        self.events.pgfree += folio.pages();
    }

    /// Moves a folio to free memory of another node. Which tasks map it does not matter: entries
    /// name folios. The zone it is in now; `None`: somebody holds it, or nothing is free.
    pub(super) fn move_folio(&mut self, folio: &Folio, to: NodeId) -> Option<Zone> {
        if folio.flags.has(Bit::PINNED) {
            return None;
        }
        let Some(zone) = self.zones.alloc_on(to, NORMAL, folio.pages(), Mark::Low) else {
            self.wake_kswapd(to);
            return None;
        };
        self.zones.free(self.node_of(folio.lruvec), folio.flags.zone(), folio.pages());
        self.spend(self.costs.migrate_ns * folio.pages());
        Some(zone)
    }

    /// Takes a swap slot for a page of this lruvec, if its group may and there is one.
    pub(super) fn take_slot(&mut self, lruvec: LruvecId) -> Option<Slot> {
        let memcg = self.memcg_of(lruvec);
        if self.swap.free_slots() == 0 || !self.memcgs.try_charge_swap(memcg, 1) {
            return None;
        }
        Some(self.swap.alloc_slot(memcg).expect("a slot is free"))
    }

    /// More than half of the swap space, or of what the group may have of it, is in use.
    pub(crate) fn swap_is_crowded(&self, lruvec: LruvecId) -> bool {
        self.swap.used() * 2 > self.swap.total()
            || self.memcgs.swap_is_crowded(self.memcg_of(lruvec))
    }

    /// Frees a swap slot, with what it holds.
    pub(crate) fn free_slot(&mut self, slot: Slot) {
        self.take_swap_shadow(slot);
        let memcg = self.swap.free(slot);
        self.memcgs.uncharge_swap(memcg, 1);
        self.settle_pool();
    }

    /// The folio that holds a slot's page, if it is in memory.
    pub(crate) fn swap_cache(&self, slot: Slot) -> Option<FolioId> {
        match self.swap.cached(slot) {
            Cached::Folio(folio) => Some(folio),
            Cached::Hole | Cached::Shadow(_) => None,
        }
    }

    /// Takes the shadow that stands in a swap slot.
    pub(crate) fn take_swap_shadow(&mut self, slot: Slot) -> Option<Shadow> {
        let Cached::Shadow(kept) = self.swap.cached(slot) else { return None };
        self.swap.set_cached(slot, Cached::Hole);
        Some(self.shadows.take(kept))
    }

    /// Lets the memory of the zram pool follow what is stored in it. A pool that cannot grow now
    /// catches up later: reclaim may use the last page.
    pub(crate) fn settle_pool(&mut self) {
        let wanted = self.swap.pool_pages();
        while self.pool.len() < wanted {
            let page = self.take_page_of(NodeId(0), Mark::None, MigrateType::Unmovable);
            let Some(page) = page else { return };
            self.pool.push(page);
        }
        while self.pool.len() > wanted {
            let page = self.pool.pop().expect("the pool has pages");
            self.put_page(page);
        }
    }

    /// Counts the pages of the zram pool.
    pub fn pool_pages(&self) -> u64 {
        self.pool.len()
    }
}
