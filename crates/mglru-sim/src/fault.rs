//! Page faults: anonymous memory, swap, and mapped files with fault-around (spec §3.2).
//!
//! A read of anonymous memory that was never written maps the shared page of zeroes, charged to
//! nobody; shared memory has no such page. Pages mapped around a fault are young, as on x86.

use mglru::Entry;
use mglru::folio::{Bit, Flags, Folio, FolioKind};
use mglru::types::FolioId;
use mglru_workload::{Advice, FileId, RegionKind};

use crate::address_space::Owner;
use crate::cache_slot::Slot as Cached;
use crate::charge::Page;
use crate::device::Io;
use crate::disk::{DiskId, Purpose};
use crate::error::SimError;
use crate::fill::Fill;
use crate::machine::Machine;
use crate::page_table::{Maps, PageTable, Pte};
use crate::readahead::MapAdvice;
use crate::spec::PAGE_SIZE;
use crate::swap::Slot;
use crate::task::{Doing, Fault, Flow, FreshPage};

impl Machine {
    /// The kernel takes over an access that the hardware could not make.
    pub(crate) fn begin_fault(&mut self, t: usize, fault: Fault) -> Flow {
        self.world.events.pgfault += 1;
        self.world.spend(self.world.costs.minor_fault_ns);
        self.tasks[t].doing = Doing::Fault(fault);
        Flow::Again
    }

    /// Goes on with a fault.
    pub(crate) fn fault(&mut self, t: usize, fault: Fault) -> Flow {
        let vma = self.world.spaces.vma(fault.region);
        if !vma.mapped || fault.page >= vma.pages() {
            let Fault { region, page, .. } = fault;
            return self.fail(SimError::NotMapped { task: t as u32, region, page });
        }
        let kind = vma.kind;
        match (self.world.maps(fault.region, fault.page), kind) {
            (Maps::Folio(folio), _) if fault.write => self.write_fault(t, fault, folio),
            (Maps::Folio(_), _) => self.mapped(t, fault),
            (Maps::Zero, _) if !fault.write => self.mapped(t, fault),
            (Maps::Swap(slot), _) => self.swap_fault(t, fault, slot),
            (_, RegionKind::File { file, first_page }) => {
                self.file_fault(t, fault, file, first_page + u64::from(fault.page))
            }
            (Maps::None, RegionKind::Anon) if !fault.write => {
                self.set_pte(fault, Pte::ZERO.young());
                self.faulted(t)
            }
            _ => self.anon_fault(t, fault),
        }
    }

    /// Somebody else has mapped it meanwhile.
    fn mapped(&mut self, t: usize, fault: Fault) -> Flow {
        self.set_pte(fault, self.pte(fault).young());
        self.faulted(t)
    }

    fn faulted(&mut self, t: usize) -> Flow {
        self.end_stall(t);
        Flow::Done
    }

    fn pte(&self, fault: Fault) -> Pte {
        self.world.spaces.vma(fault.region).table.get(fault.page)
    }

    pub(crate) fn set_pte(&mut self, fault: Fault, pte: Pte) {
        let vma = self.world.spaces.vma_mut(fault.region);
        let mm = vma.mm;
        if vma.table.set(fault.page, pte) {
            let memcg = self.world.spaces.mm(mm).memcg;
            self.world.take_kernel(memcg, PAGE_SIZE);
        }
    }

    /// A store through a clean entry. The hardware marks anonymous memory dirty by itself; a
    /// page of a file becomes dirty, and a page with a copy in swap is about to differ from it.
    fn write_fault(&mut self, t: usize, fault: Fault, folio: FolioId) -> Flow {
        self.set_pte(fault, self.pte(fault).young().dirty());
        let vma = self.world.spaces.vma(fault.region);
        if let Some((file, page)) = vma.file_page(fault.page) {
            self.dirty_page(t, folio, file, page);
        }
        self.faulted(t)
    }

    fn anon_fault(&mut self, t: usize, fault: Fault) -> Flow {
        let page = match self.take_page(t, false) {
            Page::Ready(page) => page,
            Page::Refused => return Flow::Again,
            Page::Held(flow) => return flow,
        };
        if matches!(self.world.maps(fault.region, fault.page), Maps::Folio(_) | Maps::Swap(_)) {
            self.world.give_page_back(self.tasks[t].memcg, page);
            return Flow::Again;
        }
        let folio = self.new_anon(t, fault, page);
        self.add_anon(fault, folio);
        let pte = Pte::FOLIO.young();
        self.map_anon(fault, folio, if fault.write { pte.dirty() } else { pte });
        self.faulted(t)
    }

    fn new_anon(&mut self, t: usize, fault: Fault, page: FreshPage) -> FolioId {
        let vma = self.world.spaces.vma(fault.region);
        let (locked, shmem) = (vma.locked, vma.kind == RegionKind::Shmem);
        let kind = if shmem { FolioKind::Shmem } else { FolioKind::Anon };
        let owner = Owner::Anon { region: fault.region, page: fault.page }.pack();
        let memcg = self.tasks[t].memcg;
        let folio = self.lru.new_folio(kind, memcg, page.node, page.zone, 0, owner);
        self.world.hold(&self.lru.folios()[folio]);
        self.world.place(folio, page);
        if locked {
            self.lru.set_mlocked(folio, true);
        }
        folio
    }

    fn add_anon(&mut self, fault: Fault, folio: FolioId) {
        let recency = self.world.spaces.vma(fault.region).recency;
        self.lru.add(folio, Entry::Fault { recency });
    }

    /// A store in 7.2 drains the batch while the page still has its slot.
    fn add_swapped_in(&mut self, fault: Fault, folio: FolioId) {
        let drains = fault.write && self.lru.config().drains_at_swapin();
        self.lru.folios_mut()[folio].flags.put(Bit::SWAPCACHE, drains);
        self.add_anon(fault, folio);
        if drains {
            self.lru.drain_batch();
            self.lru.folios_mut()[folio].flags.clear(Bit::SWAPCACHE);
        }
    }

    fn map_anon(&mut self, fault: Fault, folio: FolioId, pte: Pte) {
        self.lru.folios_mut()[folio].set_mapcount(1);
        self.world.spaces.vma_mut(fault.region).table.point(fault.page, folio.0);
        self.set_pte(fault, pte);
    }

    fn swap_fault(&mut self, t: usize, fault: Fault, slot: Slot) -> Flow {
        if let Some(folio) = self.world.swap_cache(slot) {
            let ahead = self.takes_readahead_mark(folio);
            self.world.spaces.vma_mut(fault.region).swap_readahead.used(fault.page, ahead);
            if self.lru.folios()[folio].flags.has(Bit::LOCKED) {
                return self.wait_for_data(t, folio);
            }
            return self.map_swap_cached(t, fault, folio, slot);
        }
        if self.world.swap.is_on_device(slot)
            && let Some(flow) = self.read_swap_ahead(t, fault)
        {
            return flow;
        }
        let page = match self.take_page(t, false) {
            Page::Ready(page) => page,
            Page::Refused => return Flow::Again,
            Page::Held(flow) => return flow,
        };
        let maps = self.world.maps(fault.region, fault.page);
        if maps != Maps::Swap(slot) || self.world.swap_cache(slot).is_some() {
            self.world.give_page_back(self.tasks[t].memcg, page);
            return Flow::Again;
        }
        self.swap_in(t, fault, slot, page)
    }

    fn new_swapped(&mut self, t: usize, fault: Fault, slot: Slot, page: FreshPage) -> FolioId {
        let folio = self.new_anon(t, fault, page);
        let recency = self.world.spaces.vma(fault.region).recency;
        if let Some(shadow) = self.world.take_swap_shadow(slot) {
            self.lru.refault(folio, shadow, recency);
        }
        folio
    }

    /// Brings in a neighbour of a faulting page, if that is still to be done.
    pub(crate) fn swap_in_ahead(&mut self, t: usize, near: Fault, page: FreshPage) {
        let maps = self.world.maps(near.region, near.page);
        let Maps::Swap(slot) = maps else {
            return self.world.give_page_back(self.tasks[t].memcg, page);
        };
        if self.world.swap_cache(slot).is_some() {
            return self.world.give_page_back(self.tasks[t].memcg, page);
        }
        let folio = self.new_swapped(t, near, slot, page);
        self.world.swap.load(slot);
        self.lru.folios_mut()[folio].flags.set(self.readahead_mark);
        self.read_slot(near, folio, slot);
    }

    fn swap_in(&mut self, t: usize, fault: Fault, slot: Slot, page: FreshPage) -> Flow {
        self.tasks[t].swap_window = None;
        let folio = self.new_swapped(t, fault, slot, page);
        self.count_major(t, fault);
        let transfer = self.world.swap.load(slot);
        self.world.spend(transfer.cpu);
        if !transfer.io {
            // The page in memory is the only one from now on.
            self.add_swapped_in(fault, folio);
            self.map_anon(fault, folio, Pte::FOLIO.young().dirty());
            self.world.free_slot(slot);
            return self.faulted(t);
        }
        self.read_slot(fault, folio, slot);
        Flow::Again
    }

    /// Reads a page from the swap device into a folio that the swap cache holds.
    fn read_slot(&mut self, fault: Fault, folio: FolioId, slot: Slot) {
        let folios = self.lru.folios_mut();
        folios[folio].flags.set(Bit::LOCKED);
        folios[folio].flags.set(Bit::SWAPCACHE);
        folios[folio].host = slot;
        self.world.swap.set_cached(slot, Cached::Folio(folio));
        self.add_anon(fault, folio);
        let io = Io { write: false, lba_page: u64::from(slot), pages: 1 };
        if self.world.submit(DiskId::Swap, io, Purpose::SwapIn(folio)) {
            self.unlock(folio);
        }
    }

    /// Maps a page whose copy in swap stays, unless swap is getting full.
    fn map_swap_cached(&mut self, t: usize, fault: Fault, folio: FolioId, slot: Slot) -> Flow {
        let Folio { flags, lruvec, .. } = self.lru.folios()[folio];
        let crowded = self.world.swap_is_crowded(lruvec);
        let mut pte = Pte::FOLIO.young();
        if fault.write {
            pte = pte.dirty();
        }
        if crowded && !flags.has(Bit::WRITEBACK) {
            self.lru.folios_mut()[folio].flags.clear(Bit::SWAPCACHE);
            self.map_anon(fault, folio, pte.dirty());
            self.world.free_slot(slot);
        } else {
            self.map_anon(fault, folio, pte);
        }
        self.faulted(t)
    }

    fn count_major(&mut self, t: usize, fault: Fault) {
        if !fault.major {
            self.world.events.pgmajfault += 1;
            self.tasks[t].doing = Doing::Fault(Fault { major: true, ..fault });
        }
    }

    fn file_fault(&mut self, t: usize, fault: Fault, file: FileId, index: u64) -> Flow {
        if self.tasks[t].fill.is_some() {
            let flow = self.fill_on(t);
            if flow != Flow::Again {
                return flow;
            }
        }
        if index >= self.world.files[file as usize].pages() {
            let Fault { region, page, .. } = fault;
            return self.fail(SimError::BeyondFile { task: t as u32, region, page });
        }
        let vma = self.world.spaces.vma(fault.region);
        let (advice, recency) = (map_advice(vma.advice), vma.recency);
        let Some(folio) = self.world.files[file as usize].cache.folio(index) else {
            return self.map_miss(t, fault, file, index);
        };
        let flags = self.lru.folios()[folio].flags;
        if advice != MapAdvice::Random && self.takes_readahead_mark(folio) {
            let until = self.start_of(folio) + self.readahead_max;
            if self.read_ahead(t, file, folio, until, Some(recency)) {
                return Flow::Again;
            }
        }
        if flags.has(Bit::LOCKED) {
            return self.wait_for_data(t, folio);
        }
        self.map_file_page(t, fault, folio, file, index);
        // A fault that had to read is made again from its start, and maps what its read brought
        // besides. Its own page is no hit: with `fault_around_kb = 4` Linux stops reading around.
        let around = if fault.write { 0 } else { self.fault_around(fault, file, index) };
        let hits = around + u32::from(!fault.major && self.counts_as_map_hit(folio));
        self.world.files[file as usize].descriptor.map_hits(hits);
        self.faulted(t)
    }

    fn map_miss(&mut self, t: usize, fault: Fault, file: FileId, index: u64) -> Flow {
        self.count_major(t, fault);
        let vma = self.world.spaces.vma(fault.region);
        let (advice, recency) = (map_advice(vma.advice), vma.recency);
        let max = self.readahead_max;
        let open = &mut self.world.files[file as usize];
        let plan = open.descriptor.map_miss(index, max, advice, &open.cache);
        let pages = open.pages();
        self.tasks[t].fill = Some(Fill::new(file, plan, pages, Some(index), Some(recency)));
        Flow::Again
    }

    fn map_file_page(&mut self, t: usize, fault: Fault, folio: FolioId, file: FileId, index: u64) {
        self.map_folio(fault, folio);
        if fault.write {
            self.set_pte(fault, Pte::FOLIO.young().dirty());
            self.dirty_page(t, folio, file, index);
        }
        self.mark_mapping(fault.region, folio);
    }

    /// Holds the facts that all pages of a mapping share.
    fn mark_mapping(&mut self, region: u32, folio: FolioId) {
        let vma = self.world.spaces.vma(region);
        let (locked, exec) = (vma.locked, vma.exec);
        if exec {
            self.lru.folios_mut()[folio].flags.set(Bit::EXEC);
        }
        if locked && !self.lru.folios()[folio].flags.has(Bit::MLOCKED) {
            self.lru.set_mlocked(folio, true);
        }
    }

    fn counts_as_map_hit(&self, folio: FolioId) -> bool {
        is_map_hit(self.lru.config().is_k612(), self.lru.folios()[folio].flags)
    }

    /// Maps cached pages of the aligned window around a fault; how many count as hits.
    fn fault_around(&mut self, fault: Fault, file: FileId, index: u64) -> u32 {
        let window = self.fault_around;
        if window <= 1 {
            return 0;
        }
        let table = &self.world.spaces.vma(fault.region).table;
        let under_pmd = table.table_pages(PageTable::table_of(fault.page));
        let start = (fault.page / window * window).max(under_pmd.start);
        let end = (start + window).min(under_pmd.end);
        let (mut mapped, mut hits) = (0, 0);
        for page in start..end {
            let at = index + u64::from(page) - u64::from(fault.page);
            if let Some((folio, pages)) = self.map_around(Fault { page, ..fault }, file, at) {
                mapped += u64::from(pages);
                hits += if self.counts_as_map_hit(folio) { pages } else { 0 };
            }
        }
        self.world.spend(self.world.costs.fault_around_page_ns * mapped);
        hits
    }

    /// Maps a cached folio near a fault; with how many pages.
    fn map_around(&mut self, fault: Fault, file: FileId, index: u64) -> Option<(FolioId, u32)> {
        let vma = self.world.spaces.vma(fault.region);
        if vma.table.get(fault.page) != Pte::NONE {
            return None;
        }
        let folio = self.world.files[file as usize].cache.folio(index)?;
        let flags = self.lru.folios()[folio].flags;
        if flags.has_any([Bit::LOCKED, self.readahead_mark]) {
            return None;
        }
        let pages = self.map_folio(fault, folio);
        self.mark_mapping(fault.region, folio);
        Some((folio, pages))
    }
}

/// Whether finding a page shows that reading around pays. Since 7.1 one that comes back again and
/// again does not (LF.4): it is likely to be evicted once more.
fn is_map_hit(k612: bool, flags: Flags) -> bool {
    k612 || !flags.has(Bit::WORKINGSET)
}

fn map_advice(advice: Advice) -> MapAdvice {
    match advice {
        Advice::Normal => MapAdvice::Normal,
        Advice::Random => MapAdvice::Random,
        Advice::Sequential => MapAdvice::Sequential,
    }
}

#[cfg(test)]
mod tests;
