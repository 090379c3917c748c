//! The answers to what reclaim asks ([`Host`]).

use mglru::Shadow;
use mglru::folio::Folios;
use mglru::host::{
    Demotion, Eviction, Harvest, Host, ListEvent, ListId, MemcgView, Neighbour, OrderView, PmdView,
    RmapHarvest, SlabWork, TraceEvent, Va, Window, ZoneView,
};
use mglru::types::{FolioId, LruvecId, MemcgId, MmId, Nanos, NodeId, Zone};

use super::World;
use crate::dirty::Reason;
use crate::memcg::Event;
use crate::zones::NORMAL;

impl Host for World {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn random_below(&mut self, n: u32) -> u32 {
        self.rng.below(u64::from(n)) as u32
    }

    fn memcg(&mut self, memcg: MemcgId) -> MemcgView {
        self.memcgs.view(memcg, self.swap.free_slots())
    }

    fn breached_low(&mut self, memcg: MemcgId) {
        self.memcgs.event(memcg, Event::Low);
    }

    fn zone(&mut self, node: NodeId, zone: Zone) -> ZoneView {
        self.zones.view(node, zone)
    }

    fn order_view(&mut self, node: NodeId, zone: Zone, order: u8) -> OrderView {
        let pages = || OrderView::of_pages(&self.zones.view(node, zone));
        let frames = (zone == NORMAL).then(|| self.order_view_of_frames(order)).flatten();
        frames.unwrap_or_else(pages)
    }

    fn neighbours(&mut self, folio: FolioId, order: u8, out: &mut Vec<Neighbour>) {
        self.neighbours_of(folio, order, out);
    }

    fn next_pmd(&mut self, mm: MmId, from: Va) -> Option<PmdView> {
        self.spaces.next_pmd(mm, from)
    }

    fn harvest_pmd(
        &mut self,
        _mm: MmId,
        at: Va,
        lruvec: LruvecId,
        folios: &Folios,
        out: &mut Harvest,
    ) {
        self.harvest_table(at, lruvec, folios, out);
    }

    fn bring_near(&mut self, batch: &[FolioId], folios: &Folios) {
        let near = batch.iter().fold(0, |near, &folio| near ^ self.peek_folio(&folios[folio]));
        let around = batch.iter().fold(0, |near, &folio| near ^ self.peek_around(&folios[folio]));
        std::hint::black_box(near ^ around);
    }

    fn harvest_rmap(
        &mut self,
        folio: FolioId,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        self.harvest_mappings(folio, window, folios, out);
    }

    fn evict(&mut self, folios: &mut Folios, batch: &mut [Eviction]) {
        for eviction in batch {
            eviction.outcome = self.evict_folio(folios, eviction);
        }
    }

    fn drop_swap_copy(&mut self, folios: &mut Folios, folio: FolioId) {
        self.drop_copy(folios, folio);
    }

    fn free(&mut self, folios: &mut Folios, folio: FolioId, shadow: Shadow) {
        if let Some(custom) = &mut self.custom {
            custom.evicted(folios[folio].owner);
        }
        self.release(folios, folio, shadow);
    }

    fn victims(
        &mut self,
        list: ListId,
        pages: u64,
        events: &mut Vec<ListEvent>,
        _folios: &Folios,
        out: &mut Vec<FolioId>,
    ) {
        if let Some(custom) = &mut self.custom {
            custom.hear(events);
            custom.victims(list, pages, out);
        }
    }

    fn demotion_target(&mut self, node: NodeId) -> Option<NodeId> {
        self.zones.slower_than(node)
    }

    fn demote(&mut self, folios: &mut Folios, to: NodeId, batch: &mut [Demotion]) {
        for demotion in batch {
            demotion.moved = self.move_folio(&folios[demotion.folio], to);
        }
    }

    fn wake_flusher(&mut self, _node: NodeId) {
        self.writeback.wake(None, Reason::Vmscan);
        self.wake_flusher_now();
    }

    /// Nodes of page caches that hold only shadows; and the inodes of a machine that has frames,
    /// which are charged to nobody.
    fn shrink_slab(&mut self, memcg: MemcgId, node: NodeId, priority: u8) -> SlabWork {
        let nodes = self.shrink_shadow_nodes(memcg, node, priority);
        if memcg != MemcgId::ROOT {
            return nodes;
        }
        let inodes = self.shrink_inodes(priority);
        SlabWork { scanned: nodes.scanned + inodes.scanned, freed: nodes.freed + inodes.freed }
    }

    #[inline]
    fn trace(&mut self, event: TraceEvent) {
        if self.tracer.is_some() {
            self.trace_policy(&event);
        }
    }
}
