//! The answers to what reclaim asks ([`Host`]).

use mglru::Shadow;
use mglru::folio::Folios;
use mglru::host::{
    Demotion, Eviction, Harvest, Host, MemcgView, PmdView, RmapHarvest, SlabWork, Va, ZoneView,
};
use mglru::types::{FolioId, LruvecId, MemcgId, MmId, Nanos, NodeId, Zone};

use super::World;
use crate::dirty::Reason;

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

    fn zone(&mut self, node: NodeId, zone: Zone) -> ZoneView {
        self.zones.view(node, zone)
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
        window: u32,
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

    fn free(&mut self, folios: &mut Folios, folio: FolioId, shadow: Shadow) {
        self.release(folios, folio, shadow);
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

    /// Kernel memory that could be shrunk is not modelled: shadow entries are never dropped and
    /// inodes cost nothing.
    fn shrink_slab(&mut self, _memcg: MemcgId, _node: NodeId, _priority: u8) -> SlabWork {
        SlabWork::default()
    }
}
