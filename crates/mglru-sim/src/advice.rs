//! What a program says of its memory: `mlock`, `madvise`, `posix_fadvise` (spec §3.2).
//!
//! Bringing pages in is a run of faults: the operation gives way to a fault of its first page that
//! is missing, and to itself for those behind it.

use std::ops::Range;

use mglru::folio::Bit;
use mglru::types::FolioId;
use mglru_workload::{Advice, FileAdvice, FileId, MemoryAdvice, Op, RegionId, RegionKind};

use crate::error::SimError;
use crate::machine::Machine;
use crate::page_table::Maps;
use crate::task::{Fault, Flow};

impl Machine {
    /// Locks what is there and brings in the rest; private memory as stores do.
    pub(crate) fn lock(&mut self, t: usize, region: RegionId) -> Flow {
        let vma = self.world.spaces.vma_mut(region);
        if !vma.mapped {
            return self.refuse(t, "mlock of a region that is not mapped");
        }
        vma.locked = true;
        self.lru.drain_batch();
        let vma = self.world.spaces.vma(region);
        let (pages, private) = (vma.pages(), vma.kind == RegionKind::Anon);
        for folio in self.folios_of(region, 0..pages) {
            if !self.lru.folios()[folio].flags.has(Bit::MLOCKED) {
                self.lru.set_mlocked(folio, true);
            }
        }
        let advice = if private { MemoryAdvice::PopulateWrite } else { MemoryAdvice::PopulateRead };
        self.advise(t, region, 0, pages, advice)
    }

    /// Lets a region's pages go, but for those that another locked mapping shows.
    pub(crate) fn unlock_region(&mut self, region: RegionId) -> Flow {
        let vma = self.world.spaces.vma(region);
        if vma.locked {
            for folio in self.folios_of(region, 0..vma.pages()) {
                self.munlock(folio);
            }
            self.world.spaces.vma_mut(region).locked = false;
        }
        Flow::Done
    }

    /// Follows a program's advice about mapped pages.
    pub(crate) fn advise(
        &mut self,
        t: usize,
        region: RegionId,
        page: u32,
        nr: u32,
        advice: MemoryAdvice,
    ) -> Flow {
        let vma = self.world.spaces.vma(region);
        let pages = page..page.saturating_add(nr).min(vma.pages());
        if !vma.mapped {
            return self.refuse(t, "madvise of a region that is not mapped");
        }
        let takes_away = matches!(advice, MemoryAdvice::Cold | MemoryAdvice::PageOut);
        if takes_away && vma.locked {
            return self.refuse(t, "MADV_COLD and MADV_PAGEOUT of a locked region");
        }
        match advice {
            MemoryAdvice::Cold => self.cool(region, pages),
            MemoryAdvice::PageOut => self.page_out(region, pages),
            MemoryAdvice::PopulateRead => return self.populate(t, region, pages, advice, false),
            MemoryAdvice::PopulateWrite => return self.populate(t, region, pages, advice, true),
        }
        Flow::Done
    }

    fn refuse(&mut self, t: usize, what: &'static str) -> Flow {
        self.fail(SimError::Refused { task: t as u32, what })
    }

    /// Folios that a range of a region maps, in its order.
    fn folios_of(&self, region: RegionId, pages: Range<u32>) -> Vec<FolioId> {
        let folio = |page| match self.world.maps(region, page) {
            Maps::Folio(folio) => Some(folio),
            _ => None,
        };
        let mut folios: Vec<FolioId> = pages.filter_map(folio).collect();
        folios.dedup();
        folios
    }

    /// Folios that nobody else maps: advice of one program is not for another's.
    fn own_folios_of(&self, region: RegionId, pages: Range<u32>) -> Vec<FolioId> {
        let mut folios = self.folios_of(region, pages);
        let all = self.lru.folios();
        folios.retain(|&folio| u64::from(all[folio].mapcount()) <= all[folio].pages());
        folios
    }

    fn cool(&mut self, region: RegionId, pages: Range<u32>) {
        self.lru.drain_batch();
        let folios = self.own_folios_of(region, pages.clone());
        self.forget_accesses(region, pages);
        for folio in folios {
            self.lru.deactivate(folio);
        }
    }

    fn forget_accesses(&mut self, region: RegionId, pages: Range<u32>) {
        let table = &mut self.world.spaces.vma_mut(region).table;
        for page in pages {
            if table.get(page).is_young() {
                table.take_young(page);
            }
        }
    }

    fn page_out(&mut self, region: RegionId, pages: Range<u32>) {
        let folios = self.own_folios_of(region, pages.clone());
        self.forget_accesses(region, pages);
        self.world.spend(self.world.costs.scan_ns * folios.len() as u64);
        self.lru.page_out(&folios, &mut self.world);
    }

    /// Faults the first page in that is missing, and comes back for the others.
    fn populate(
        &mut self,
        t: usize,
        region: RegionId,
        mut pages: Range<u32>,
        advice: MemoryAdvice,
        write: bool,
    ) -> Flow {
        let Some(page) = pages.find(|&page| self.is_missing(region, page, write)) else {
            return Flow::Done;
        };
        let (next, nr) = (pages.start, pages.end - pages.start);
        self.push_op(t, Op::Advise { region, page: next, nr, advice });
        self.begin_fault(t, Fault { region, page, write, major: false })
    }

    fn is_missing(&self, region: RegionId, page: u32, write: bool) -> bool {
        let vma = self.world.spaces.vma(region);
        match self.world.maps(region, page) {
            Maps::Folio(_) => write && !vma.is_swap_backed() && !vma.table.get(page).is_dirty(),
            Maps::Zero => write,
            Maps::None | Maps::Swap(_) => true,
        }
    }

    /// Follows a program's advice about pages of a file.
    pub(crate) fn advise_file(
        &mut self,
        t: usize,
        file: FileId,
        pages: Range<u64>,
        advice: FileAdvice,
    ) -> Flow {
        match advice {
            FileAdvice::DontNeed => self.drop_range(file, pages),
            FileAdvice::NoReuse => self.set_reuse(t, file, false),
            FileAdvice::Normal => self.set_reuse(t, file, true),
        }
        Flow::Done
    }

    /// Writing of what is dirty begins; what is clean and unmapped goes, without a shadow.
    fn drop_range(&mut self, file: FileId, pages: Range<u64>) {
        let end = pages.end.min(self.world.files[file as usize].cache.end());
        let pages = pages.start.min(end)..end;
        self.lru.drain_parked();
        self.write_pages(file, pages.start, pages.end - pages.start);
        let cache = &self.world.files[file as usize].cache;
        let cached: Vec<(u64, FolioId)> = cache.folios(pages.start, pages.end).collect();
        for (_, folio) in cached {
            let whole = self.start_of(folio) >= pages.start && self.end_of(folio) <= pages.end;
            if whole && self.is_unused(folio) {
                self.drop_cached(file, folio);
            }
        }
        self.world.drop_shadows_in(file, pages);
    }

    /// Clean, unmapped, and in nobody's hands.
    pub(crate) fn is_unused(&self, folio: FolioId) -> bool {
        let entry = &self.lru.folios()[folio];
        let busy = entry.flags.has_any([Bit::LOCKED, Bit::WRITEBACK]);
        let held = entry.flags.has_any([Bit::DIRTY, Bit::PINNED]);
        !busy && !held && !entry.is_mapped()
    }

    /// The advice is the open file's: it holds for the mappings that the program makes of it.
    fn set_reuse(&mut self, t: usize, file: FileId, reused: bool) {
        for region in self.world.spaces.regions(self.tasks[t].mm).to_vec() {
            let vma = self.world.spaces.vma_mut(region);
            if matches!(vma.kind, RegionKind::File { file: shown, .. } if shown == file) {
                vma.recency = reused && vma.advice == Advice::Normal;
            }
        }
    }
}
