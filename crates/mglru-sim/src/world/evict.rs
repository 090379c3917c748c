//! Carrying an eviction out: swap slot, unmapping, write, and the folio's release (spec §5.6).

use mglru::Shadow;
use mglru::folio::{Bit, Folios};
use mglru::host::{Eviction, Outcome};
use mglru::types::{FolioId, LruType};
use mglru_workload::{Content, RegionId};

use super::World;
use crate::address_space::Owner;
use crate::cache_slot::Slot as Cached;
use crate::device::Io;
use crate::disk::{DiskId, Purpose};
use crate::page_table::{Maps, Pte};
use crate::swap::{Class, Slot};

impl World {
    /// Brings one folio to where it can be freed.
    pub(super) fn evict_folio(&mut self, folios: &mut Folios, eviction: &Eviction) -> Outcome {
        let Eviction { folio, may_write, .. } = *eviction;
        if folios[folio].flags.has(Bit::PINNED) {
            return Outcome::Pinned;
        }
        match Owner::unpack(folios[folio].owner) {
            Owner::File { file, .. } => {
                self.unmap_file_folio(folios, folio);
                match (folios[folio].flags.has(Bit::DIRTY), may_write) {
                    (false, _) => Outcome::Ready { wrote: false },
                    (true, true) => self.write_file_folio(folios, folio, file),
                    (true, false) => Outcome::Dirty,
                }
            }
            Owner::Anon { region, page } => {
                let Some(slot) = self.slot_for(folios, folio) else { return Outcome::NoSwapSlot };
                self.unmap_anon_folio(folios, folio, region, page, slot);
                let dirty = folios[folio].flags.has(Bit::DIRTY) || !self.swap.is_stored(slot);
                match (dirty, may_write) {
                    (false, _) => Outcome::Ready { wrote: false },
                    (true, true) => self.write_to_swap(folio, slot, self.class_of(region, page)),
                    (true, false) => Outcome::Busy,
                }
            }
        }
    }

    /// Removes every entry that maps a page of a file. A dirty entry implies a dirty folio, so
    /// nothing is lost with it. Returns whether any entry in a mapping with recency was young.
    pub(crate) fn unmap_file_folio(&mut self, folios: &mut Folios, folio: FolioId) -> bool {
        let owner = Owner::unpack(folios[folio].owner);
        let mut left = folios[folio].mapcount();
        let mut young = false;
        if left > 0 {
            self.spend(self.costs.unmap_ns);
        }
        let n = folios[folio].pages() as u32;
        for nth in 0..self.spaces.nr_mappings(owner) {
            if left == 0 {
                break;
            }
            let Some((region, pages)) = self.spaces.mapped(owner, n, nth) else { continue };
            let vma = self.spaces.vma_mut(region);
            for page in pages {
                let pte = vma.table.get(page);
                if pte.has_folio() {
                    young |= pte.is_young() && vma.recency;
                    vma.table.set(page, Pte::NONE);
                    left -= 1;
                }
            }
        }
        folios[folio].set_mapcount(left);
        young
    }

    fn unmap_anon_folio(
        &mut self,
        folios: &mut Folios,
        folio: FolioId,
        region: RegionId,
        page: u32,
        slot: Slot,
    ) {
        let table = &mut self.spaces.vma_mut(region).table;
        if table.maps(page) != Maps::Folio(folio) {
            return;
        }
        let pte = table.get(page);
        table.point(page, slot);
        table.set(page, Pte::SWAP);
        folios[folio].set_mapcount(0);
        if pte.is_dirty() {
            folios[folio].flags.set(Bit::DIRTY);
        }
        self.spend(self.costs.unmap_ns);
    }

    /// The folio's swap slot, a new one if it has none.
    fn slot_for(&mut self, folios: &mut Folios, folio: FolioId) -> Option<Slot> {
        if folios[folio].flags.has(Bit::SWAPCACHE) {
            return Some(folios[folio].host);
        }
        let slot = self.take_slot(folios[folio].lruvec)?;
        folios[folio].flags.set(Bit::SWAPCACHE);
        folios[folio].host = slot;
        self.swap.set_cached(slot, Cached::Folio(folio));
        Some(slot)
    }

    /// Frees the swap slot of a folio that is in use, if swap is getting full: the page in memory
    /// is the only one from now on.
    pub(super) fn drop_copy(&mut self, folios: &mut Folios, folio: FolioId) {
        let entry = &mut folios[folio];
        let spared = entry.flags.has(Bit::WRITEBACK) || !entry.is_mapped();
        if spared || !(entry.flags.has(Bit::MLOCKED) || self.swap_is_crowded(entry.lruvec)) {
            return;
        }
        entry.flags.clear(Bit::SWAPCACHE);
        entry.flags.set(Bit::DIRTY);
        self.free_slot(entry.host);
    }

    fn write_to_swap(&mut self, folio: FolioId, slot: Slot, class: Class) -> Outcome {
        self.trace_write(folio, LruType::Anon);
        let transfer = self.swap.store(slot, class);
        self.spend(transfer.cpu);
        self.settle_pool();
        if !transfer.io {
            return Outcome::Ready { wrote: true };
        }
        let io = Io { write: true, lba_page: u64::from(slot), pages: 1 };
        if self.submit(DiskId::Swap, io, Purpose::SwapOut(folio)) {
            return Outcome::Ready { wrote: true };
        }
        self.swap_queued = true;
        Outcome::WriteQueued
    }

    /// Returns the content of a page of an anonymous region.
    pub(crate) fn class_of(&self, region: RegionId, page: u32) -> Class {
        match self.spaces.vma(region).content {
            Content::Zero => Class::Zero,
            Content::Compressible => Class::Compressible,
            Content::Mixed { per_mille } => {
                let seed = u64::from(region) << 32 | u64::from(page);
                let draw = mglru_workload::rng::splitmix(seed) % 1000;
                if draw < u64::from(per_mille) {
                    Class::Incompressible
                } else {
                    Class::Compressible
                }
            }
        }
    }

    /// Takes a reclaimed folio out of its mapping and gives its memory back.
    pub(super) fn release(&mut self, folios: &mut Folios, folio: FolioId, shadow: Shadow) {
        let owner = Owner::unpack(folios[folio].owner);
        match owner {
            Owner::File { file, page } => {
                let first = u64::from(page);
                self.trace_cached(false, file, first, folio, folios[folio].pages());
                for page in first..first + folios[folio].pages() {
                    self.uncache_page(file, page, shadow);
                }
            }
            Owner::Anon { .. } => {
                let slot = folios[folio].host;
                folios[folio].flags.clear(Bit::SWAPCACHE);
                let kept = self.shadows.keep(shadow);
                self.swap.set_cached(slot, Cached::Shadow(kept));
            }
        }
        self.uncharge(folios, folio);
    }
}
