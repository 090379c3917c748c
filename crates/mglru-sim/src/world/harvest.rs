//! Accessed bits, as reclaim collects them: by page table and by reverse map (spec §4.3, §4.4).

use std::ops::Range;

use mglru::folio::Folios;
use mglru::host::{Around, Harvest, RmapHarvest, Va, Window, YoungPte};
use mglru::types::{FolioId, LruvecId};
use mglru_workload::{RegionId, RegionKind};

use super::World;
use crate::address_space::{Owner, Vma, split, va};
use crate::page_table::PageTable;

impl World {
    /// Tests and clears the accessed bits under one PMD for folios of one lruvec.
    pub(super) fn harvest_table(
        &mut self,
        at: Va,
        lruvec: LruvecId,
        folios: &Folios,
        out: &mut Harvest,
    ) {
        let (region, page) = split(at);
        let table = PageTable::table_of(page);
        let vma = self.spaces.vma_mut(region);
        vma.table.clear_table_young(table);
        let pages = vma.table.table_pages(table);
        let here = |folio| folios.is_harvested(folio, lruvec);
        let (entries, young) = self.harvest_range(region, pages, here, &mut out.young);
        out.entries = entries;
        out.repeats = young - out.young.len() as u32;
        let spent = self.costs.aging_walk(u64::from(entries), u64::from(young));
        self.spend(spent);
    }

    /// Tests and clears the accessed bits of every entry that maps `folio`; mappings without
    /// recency have nothing to say.
    pub(super) fn harvest_mappings(
        &mut self,
        folio: FolioId,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        let owner = Owner::unpack(folios[folio].owner);
        let mut left = folios[folio].mapcount();
        let n = folios[folio].pages() as u32;
        for nth in 0..self.spaces.nr_mappings(owner) {
            if left == 0 {
                break;
            }
            let Some((region, pages)) = self.spaces.mapped(owner, n, nth) else { continue };
            let vma = self.spaces.vma(region);
            let mapped = pages.clone().filter(|&page| self.folio_at(vma, page) == Some(folio));
            let entries = mapped.count() as u32;
            if entries > 0 {
                left -= entries;
                self.harvest_mapping(folio, region, pages, window, folios, out);
            }
        }
    }

    /// A young entry of a run is a touch of the folio, and the others are no more (spec §LF.8).
    fn harvest_mapping(
        &mut self,
        folio: FolioId,
        region: RegionId,
        pages: Range<u32>,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        self.spend(self.costs.rmap_ns);
        let vma = self.spaces.vma_mut(region);
        out.locked |= vma.locked;
        out.exec |= vma.exec;
        if !vma.recency {
            return;
        }
        let mut young = None;
        for page in pages {
            if vma.table.take_young(page).is_young() {
                young = young.or(Some(page));
            }
        }
        let Some(page) = young else { return };
        out.referenced += 1;
        if window.entries > 1 && !vma.locked {
            self.look_around(folio, region, page, window, folios, out);
        }
    }

    fn look_around(
        &mut self,
        folio: FolioId,
        region: RegionId,
        page: u32,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        let vma = self.spaces.vma_mut(region);
        let pages = vma.table.table_pages(PageTable::table_of(page));
        let width = window.entries.min(pages.end - pages.start);
        if width <= 1 {
            return;
        }
        let start = page.saturating_sub(width / 2).clamp(pages.start, pages.end - width);
        let lruvec = folios[folio].lruvec;
        let (entries, found) = self.harvest_range(
            region,
            start..start + width,
            |near| folios.is_harvested(near, lruvec) && window.includes(folios[near].lru_type()),
            &mut out.neighbours,
        );
        let mm = self.spaces.mm(self.spaces.vma(region).mm).id;
        let young = found + 1;
        out.around.push(Around { mm, at: va(region, pages.start), entries, young });
        let spent = self.costs.aging_walk(u64::from(entries), u64::from(found));
        self.spend(spent);
    }

    /// Collects young entries of wanted folios; returns how many entries were looked at, and how
    /// many of them were young.
    fn harvest_range(
        &mut self,
        region: RegionId,
        pages: std::ops::Range<u32>,
        wanted: impl Fn(FolioId) -> bool,
        out: &mut Vec<YoungPte>,
    ) -> (u32, u32) {
        let Self { spaces, files, .. } = self;
        let Vma { kind, table, .. } = spaces.vma_mut(region);
        match *kind {
            RegionKind::File { file, first_page } => {
                let cache = &files[file as usize].cache;
                let folio = |_: &PageTable, page| cache.folio(first_page + u64::from(page));
                collect(table, pages, folio, wanted, out)
            }
            RegionKind::Anon | RegionKind::Shmem => {
                let folio = |table: &PageTable, page| {
                    table.get(page).has_folio().then(|| FolioId(table.peek_target(page)))
                };
                collect(table, pages, folio, wanted, out)
            }
        }
    }
}

/// Takes the accessed bits of entries that map a wanted folio, which `folio` returns; a run that
/// maps one folio is one young entry. Returns how many entries were looked at and were young.
/// Empty ones count: a table is worth a walk by the young entries it has for each of its cache
/// lines (spec §4.3).
fn collect(
    table: &mut PageTable,
    pages: std::ops::Range<u32>,
    folio: impl Fn(&PageTable, u32) -> Option<FolioId>,
    wanted: impl Fn(FolioId) -> bool,
    out: &mut Vec<YoungPte>,
) -> (u32, u32) {
    let (mut found, before) = (0, out.len());
    for start in pages.clone().step_by(64) {
        let (_, mut young) = table.present_and_young(start..pages.end.min(start + 64));
        while young != 0 {
            let page = start + young.trailing_zeros();
            young &= young - 1;
            if let Some(folio) = folio(table, page).filter(|&folio| wanted(folio)) {
                let dirty = table.take_young(page).is_dirty();
                found += 1;
                match out[before..].last_mut() {
                    Some(run) if run.folio == folio => run.dirty |= dirty,
                    _ => out.push(YoungPte { folio, dirty }),
                }
            }
        }
    }
    (pages.end - pages.start, found)
}
