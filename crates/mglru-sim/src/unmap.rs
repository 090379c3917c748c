//! Memory given back: unmapping, `MADV_DONTNEED`, the end of an address space (spec §3.2).

use std::ops::Range;

use mglru::folio::Bit;
use mglru::types::FolioId;
use mglru_workload::RegionId;

use crate::address_space::Owner;
use crate::machine::Machine;
use crate::page_table::{Maps, Pte};
use crate::spec::PAGE_SIZE;
use crate::swap::Slot;

impl Machine {
    /// Unmaps a region; swap-backed memory in it is freed.
    pub(crate) fn unmap(&mut self, region: RegionId) {
        let pages = self.world.spaces.vma(region).table.pages();
        self.zap(region, 0, pages);
        let vma = self.world.spaces.vma(region);
        let (memcg, tables) = (self.world.spaces.mm(vma.mm).memcg, vma.table.populated());
        self.world.give_kernel(memcg, tables * PAGE_SIZE);
        self.world.spaces.unmap(region);
    }

    /// Empties pages of a region that stays mapped.
    pub(crate) fn zap(&mut self, region: RegionId, from: u32, to: u32) {
        let to = to.min(self.world.spaces.vma(region).table.pages());
        let mut marked = None;
        for page in from..to {
            match self.world.maps(region, page) {
                Maps::None => continue,
                Maps::Zero => {}
                Maps::Swap(slot) => self.drop_slot(slot),
                Maps::Folio(folio) => self.drop_mapping(region, page, folio, &mut marked),
            }
            self.world.spaces.vma_mut(region).table.set(page, Pte::NONE);
        }
    }

    /// A swapped-out page is not wanted any more.
    fn drop_slot(&mut self, slot: Slot) {
        match self.world.swap_cache(slot) {
            None => self.world.free_slot(slot),
            Some(folio) => self.drop_anon(folio),
        }
    }

    /// Takes an entry away; a young one marks its folio, and a run of them does so once.
    fn drop_mapping(
        &mut self,
        region: RegionId,
        page: u32,
        folio: FolioId,
        marked: &mut Option<FolioId>,
    ) {
        match Owner::unpack(self.lru.folios()[folio].owner) {
            Owner::Anon { .. } => self.drop_anon(folio),
            Owner::File { .. } => {
                let entry = &mut self.lru.folios_mut()[folio];
                entry.set_mapcount(entry.mapcount() - 1);
                let vma = self.world.spaces.vma(region);
                let young = vma.table.get(page).is_young() && vma.recency;
                if young && marked.replace(folio) != Some(folio) {
                    self.lru.accessed(folio);
                }
                if self.world.spaces.vma(region).locked {
                    self.munlock(folio);
                }
            }
        }
    }

    /// One mlocked mapping less: the folio stays locked while another one maps it.
    pub(crate) fn munlock(&mut self, folio: FolioId) {
        let entry = &self.lru.folios()[folio];
        let (owner, n) = (Owner::unpack(entry.owner), entry.pages() as u32);
        let spaces = &self.world.spaces;
        let maps = (0..spaces.nr_mappings(owner)).filter_map(|nth| spaces.mapped(owner, n, nth));
        let holds = |(region, pages): &(RegionId, Range<u32>)| {
            let vma = spaces.vma(*region);
            vma.locked && pages.clone().any(|page| vma.table.get(page).has_folio())
        };
        // The entry being zapped still stands.
        let locked = maps.filter(holds).count() > 1;
        let unlocked_before = n > 1 && !entry.flags.has(Bit::MLOCKED);
        if !locked && !unlocked_before {
            self.lru.set_mlocked(folio, false);
        }
    }

    /// Frees an anonymous folio, at once or, while a device works on it, when that is done.
    fn drop_anon(&mut self, folio: FolioId) {
        let entry = &mut self.lru.folios_mut()[folio];
        entry.set_mapcount(0);
        if entry.flags.has_any([Bit::LOCKED, Bit::WRITEBACK]) {
            entry.flags.set(Bit::PINNED);
            self.orphans += 1;
            return;
        }
        self.free_anon(folio);
    }

    /// A device is through with a page that nobody wants any more.
    pub(crate) fn reap_orphan(&mut self, folio: FolioId) -> bool {
        let entry = &mut self.lru.folios_mut()[folio];
        let orphan =
            entry.flags.has(Bit::PINNED) && !entry.flags.has_any([Bit::LOCKED, Bit::WRITEBACK]);
        if orphan {
            self.orphans -= 1;
            self.free_anon(folio);
        }
        orphan
    }

    fn free_anon(&mut self, folio: FolioId) {
        let entry = self.lru.folios()[folio];
        if entry.flags.has(Bit::SWAPCACHE) {
            self.world.free_slot(entry.host);
        }
        self.lru.remove(folio);
        self.world.uncharge(self.lru.folios(), folio);
        self.lru.free_folio(folio);
    }

    /// Unmaps everything of an address space, for good, but for what others use too.
    pub(crate) fn unmap_all(&mut self, mm: u32) {
        for region in self.world.spaces.regions(mm).to_vec() {
            let vma = self.world.spaces.vma(region);
            if vma.mapped && !vma.shared {
                self.unmap(region);
            }
        }
    }
}
