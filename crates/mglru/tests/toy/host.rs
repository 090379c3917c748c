//! What the toy machine answers.

use mglru::folio::{Bit, Folios};
use mglru::host::{
    Around, Demotion, Eviction, Harvest, Host, MemcgView, Neighbour, Outcome, PmdView, RmapHarvest,
    SlabWork, Va, Window, YoungPte, ZoneView,
};
use mglru::{FolioId, LruvecId, MemcgId, MmId, Nanos, NodeId, Shadow, Zone};

use super::{Freed, NODE, NORMAL, PAGE, TABLE, Toy, draw};

impl Host for Toy {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn random_below(&mut self, n: u32) -> u32 {
        draw(&mut self.random, n)
    }

    fn memcg(&mut self, memcg: MemcgId) -> MemcgView {
        let group = self.groups[memcg.index()];
        MemcgView {
            usage: self.usage(memcg.index()),
            min: group.min,
            low: group.low,
            max: group.max,
            swappiness: group.swappiness,
            swap_left: group.swap_left,
        }
    }

    fn zone(&mut self, _node: NodeId, zone: Zone) -> ZoneView {
        self.zones[zone.index()]
    }

    fn neighbours(&mut self, folio: FolioId, _order: u8, out: &mut Vec<Neighbour>) {
        if self.block.contains(&Neighbour::Folio(folio)) {
            out.extend(&self.block);
        }
    }

    fn breached_low(&mut self, memcg: MemcgId) {
        self.low_events.push(memcg.index());
    }

    fn next_pmd(&mut self, mm: MmId, from: Va) -> Option<PmdView> {
        let from = from.0 / PAGE;
        let space = &self.spaces[mm.index()];
        let mapping = space.mappings.iter().find(|m| m.end > from)?;
        let at = from.max(mapping.start);
        let next = ((at / TABLE + 1) * TABLE).min(mapping.end);
        Some(PmdView {
            at: Va(at * PAGE),
            next: Va(next * PAGE),
            mapping_end: Va(mapping.end * PAGE),
            backing: mapping.backing,
            recency: mapping.recency,
            special: mapping.special,
            young: space.young_tables.contains(&(at / TABLE)),
        })
    }

    fn harvest_pmd(
        &mut self,
        mm: MmId,
        at: Va,
        lruvec: LruvecId,
        folios: &Folios,
        out: &mut Harvest,
    ) {
        self.walked.push((mm, at));
        let page = at.0 / PAGE;
        let end = ((page / TABLE + 1) * TABLE).min(self.mapping(mm, page).end);
        if self.contended.contains(&(mm, page / TABLE)) {
            out.contended = true;
            return;
        }
        let space = &mut self.spaces[mm.index()];
        space.young_tables.remove(&(page / TABLE));
        for pte in space.ptes.range_mut(page..end).map(|(_, pte)| pte) {
            out.entries += 1;
            if pte.young && folios.is_harvested(pte.folio, lruvec) {
                pte.young = false;
                out.young.push(YoungPte { folio: pte.folio, dirty: pte.dirty });
            }
        }
    }

    fn harvest_rmap(
        &mut self,
        folio: FolioId,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        self.rmap_walks.push(folio);
        for (mm, page) in self.places(folio) {
            out.exec |= self.mapping(mm, page).exec;
            let pte = self.spaces[mm.index()].ptes.get_mut(&page).expect("a place");
            if !std::mem::take(&mut pte.young) {
                continue;
            }
            out.referenced += 1;
            if window.entries > 1 && self.mapping(mm, page).recency {
                self.look_around(mm, page, window, folios, out);
            }
        }
    }

    fn evict(&mut self, folios: &mut Folios, batch: &mut [Eviction]) {
        self.batches.push(batch.len());
        for eviction in batch {
            eviction.outcome = match self.script.remove(&eviction.folio) {
                Some(outcome) => outcome,
                None => self.evict_one(folios, eviction.folio, eviction.may_write),
            };
        }
    }

    fn drop_swap_copy(&mut self, _folios: &mut Folios, folio: FolioId) {
        self.copies_offered.push(folio);
    }

    fn demotion_target(&mut self, node: NodeId) -> Option<NodeId> {
        (node == NODE && self.slow_room.is_some()).then_some(NodeId(1))
    }

    fn demote(&mut self, folios: &mut Folios, to: NodeId, batch: &mut [Demotion]) {
        assert_eq!(to, NodeId(1));
        let room = self.slow_room.as_mut().expect("a second node");
        for demotion in batch {
            let pages = folios[demotion.folio].pages();
            if *room >= pages {
                *room -= pages;
                demotion.moved = Some(NORMAL);
            }
        }
    }

    fn free(&mut self, folios: &mut Folios, folio: FolioId, shadow: Shadow) {
        let f = folios[folio];
        assert!(!f.is_mapped() && self.places(folio).is_empty(), "I7: freed while mapped");
        assert!(!f.flags.has_any([Bit::DIRTY, Bit::WRITEBACK]), "I8: freed before it is durable");
        assert!(!f.flags.has_any([Bit::PINNED, Bit::LOCKED]), "I7: freed while somebody has it");
        self.freed.push(Freed { owner: f.owner, lru_type: f.lru_type(), pages: f.pages(), shadow });
        let group = self.lruvec_groups[f.lruvec.index()];
        self.groups[group].charged -= f.pages();
        self.stored.remove(&folio);
    }

    fn wake_flusher(&mut self, _node: NodeId) {
        self.flusher_wakes += 1;
    }

    fn shrink_slab(&mut self, memcg: MemcgId, _node: NodeId, priority: u8) -> SlabWork {
        self.slab_calls.push((memcg.index(), priority));
        self.slab
    }
}

impl Toy {
    /// Harvests the window around a young entry, which is clear already.
    fn look_around(
        &mut self,
        mm: MmId,
        page: u64,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        let mapping = *self.mapping(mm, page);
        let table = page / TABLE * TABLE;
        let lowest = mapping.start.max(table);
        let highest = mapping.end.min(table + TABLE);
        let start = page.saturating_sub(u64::from(window.entries) / 2).max(lowest);
        let end = (start + u64::from(window.entries)).min(highest);
        let space = &mut self.spaces[mm.index()];
        let centre = space.ptes[&page].folio;
        let mut around = Around { mm, at: Va(lowest * PAGE), entries: 0, young: 1 };
        for (_, pte) in space.ptes.range_mut(start..end) {
            around.entries += 1;
            let here = folios.is_harvested(pte.folio, folios[centre].lruvec);
            if pte.young && here && window.includes(folios[pte.folio].lru_type()) {
                pte.young = false;
                around.young += 1;
                out.neighbours.push(YoungPte { folio: pte.folio, dirty: pte.dirty });
            }
        }
        out.around.push(around);
    }

    fn evict_one(&mut self, folios: &mut Folios, folio: FolioId, may_write: bool) -> Outcome {
        let swap_backed = folios[folio].flags.has(Bit::SWAPBACKED);
        if swap_backed && !self.give_swap_slot(folios, folio) {
            return Outcome::NoSwapSlot;
        }
        self.unmap(folios, folio, swap_backed);
        let flags = folios[folio].flags;
        if flags.has(Bit::PINNED) {
            return Outcome::Pinned;
        }
        if !swap_backed {
            return match flags.has(Bit::DIRTY) {
                false => Outcome::Ready { wrote: false },
                true if may_write => Outcome::WriteQueued,
                true => Outcome::Dirty,
            };
        }
        let dirty = flags.has(Bit::DIRTY) || !self.stored.contains(&folio);
        match (dirty, may_write) {
            (false, _) => Outcome::Ready { wrote: false },
            (true, false) => Outcome::Busy,
            (true, true) if self.swap_is_fast => Outcome::Ready { wrote: true },
            (true, true) => Outcome::WriteQueued,
        }
    }

    fn give_swap_slot(&mut self, folios: &mut Folios, folio: FolioId) -> bool {
        if folios[folio].flags.has(Bit::SWAPCACHE) {
            return true;
        }
        let pages = folios[folio].pages();
        let group = &mut self.groups[self.lruvec_groups[folios[folio].lruvec.index()]];
        if group.swap_left < pages {
            return false;
        }
        group.swap_left -= pages;
        folios[folio].flags.set(Bit::SWAPCACHE);
        true
    }

    fn unmap(&mut self, folios: &mut Folios, folio: FolioId, swap_backed: bool) {
        for (mm, page) in self.places(folio) {
            let pte = self.spaces[mm.index()].ptes.remove(&page).expect("a place");
            if pte.dirty && swap_backed {
                folios[folio].flags.set(Bit::DIRTY);
            }
            if pte.dirty && folios[folio].flags.has(Bit::ANON) {
                folios[folio].flags.set(Bit::DIRTY);
            }
        }
        folios[folio].set_mapcount(0);
    }
}
