//! Large folios of files: mapped whole, and split where a file is cut (spec §LF.7, §LF.13).

use std::ops::Range;

use mglru::folio::Bit;
use mglru::types::FolioId;
use mglru_workload::{FileId, RegionId};

use crate::address_space::Owner;
use crate::machine::Machine;
use crate::page_table::{PageTable, Pte};
use crate::task::Fault;

impl Machine {
    /// Maps the folio of a faulting page: all of it if it lies inside the mapping, one page table
    /// and the file, and nothing of it is mapped yet; else that page. Returns how many entries.
    pub(crate) fn map_folio(&mut self, fault: Fault, folio: FolioId) -> u32 {
        let pages = self.entries_of(fault, folio).unwrap_or(fault.page..fault.page + 1);
        let n = pages.len() as u32;
        for page in pages {
            self.set_pte(Fault { page, ..fault }, Pte::FOLIO.young());
        }
        let entry = &mut self.lru.folios_mut()[folio];
        entry.set_mapcount(entry.mapcount() + n);
        n
    }

    /// The empty entries that a whole large folio fills; `None`: it does not fit, or is one page.
    fn entries_of(&self, fault: Fault, folio: FolioId) -> Option<Range<u32>> {
        let entry = &self.lru.folios()[folio];
        if entry.flags.order() == 0 {
            return None;
        }
        let owner = Owner::unpack(entry.owner);
        let vma = self.world.spaces.vma(fault.region);
        let n = entry.pages() as u32;
        let first = fault.page.checked_sub(self.offset_in(fault, folio)?)?;
        let pages = first..first.checked_add(n)?;
        let table = vma.table.table_pages(PageTable::table_of(fault.page));
        let inside = pages.start >= table.start && pages.end <= table.end;
        let Owner::File { file, page } = owner else { return None };
        let in_file = u64::from(page) + u64::from(n) <= self.world.files[file as usize].pages();
        let fits = inside && in_file && pages.clone().all(|p| vma.table.get(p) == Pte::NONE);
        fits.then_some(pages)
    }

    /// How far into its folio the faulting page lies.
    fn offset_in(&self, fault: Fault, folio: FolioId) -> Option<u32> {
        let (_, at) = self.world.spaces.vma(fault.region).file_page(fault.page)?;
        Some((at - self.start_of(folio)) as u32)
    }

    /// Halves a folio that page `index` of its file lies inside of, so that what comes before that
    /// page can stay.
    pub(crate) fn split_before(&mut self, file: FileId, folio: FolioId, index: u64) {
        let (start, end) = (self.start_of(folio), self.end_of(folio));
        debug_assert!(start < index && index < end);
        let middle = start + (end - start) / 2;
        let upper = self.lru.split(folio, Owner::File { file, page: middle as u32 }.pack());
        for page in middle..end {
            self.world.files[file as usize].cache.replace(page, upper);
        }
        for half in [folio, upper] {
            let mapcount = self.count_entries(half);
            let entry = &mut self.lru.folios_mut()[half];
            entry.set_mapcount(mapcount);
            entry.flags.clear(self.readahead_mark);
            self.clean_if_written(file, half);
        }
    }

    fn count_entries(&self, folio: FolioId) -> u32 {
        let entry = &self.lru.folios()[folio];
        let (owner, n) = (Owner::unpack(entry.owner), entry.pages() as u32);
        let spaces = &self.world.spaces;
        let maps = (0..spaces.nr_mappings(owner)).filter_map(|nth| spaces.mapped(owner, n, nth));
        let present = |(region, pages): (RegionId, Range<u32>)| {
            let table = &spaces.vma(region).table;
            pages.filter(|&page| table.get(page).has_folio()).count() as u32
        };
        maps.map(present).sum()
    }

    /// A half without a dirty block has nothing to write.
    fn clean_if_written(&mut self, file: FileId, half: FolioId) {
        let (start, end) = (self.start_of(half), self.end_of(half));
        let files = &self.world.writeback.files;
        let dirty = files.next_run(file, start, 1).is_some_and(|(page, _)| page < end);
        if !dirty && !self.lru.folios()[half].flags.has(Bit::PINNED) {
            self.lru.clean(half);
        }
    }
}
