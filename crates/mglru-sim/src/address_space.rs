//! Address spaces: what each maps where, and the reverse map from a folio's owner to the entries
//! that may map it (spec §4.3, §4.4).
//!
//! A region of the layout is one mapping. Its virtual address is its number in the high bits, so
//! that mappings of one address space keep an order and start at a PMD. The reverse map is
//! computed: an anonymous page belongs to one region; a file knows the regions that map it.

use std::ops::Range;

use mglru::host::{Backing, PmdView, Va};
use mglru::types::{MemcgId, MmId};
use mglru_workload::{Advice, Content, FileId, RegionId, RegionKind, RegionSpec};

use crate::page_table::{PageTable, TABLE_ENTRIES};
use crate::swap_readahead::SwapReadahead;

const PAGE_SHIFT: u32 = 12;
const REGION_SHIFT: u32 = 44;
const ANON: u32 = 1 << 31;

/// Names the page that a folio holds, as packed into its owner words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Names a page of a file.
    File {
        /// Names the file.
        file: FileId,
        /// Holds the page of it.
        page: u32,
    },
    /// Names a page of an anonymous (or shared-memory) region.
    Anon {
        /// Names the region.
        region: RegionId,
        /// Holds the page of it.
        page: u32,
    },
}

impl Owner {
    /// Packs the owner as the slab keeps it.
    pub fn pack(self) -> [u32; 2] {
        match self {
            Self::File { file, page } => [file, page],
            Self::Anon { region, page } => [region | ANON, page],
        }
    }

    /// Unpacks an owner from the slab's words.
    #[inline]
    pub fn unpack([who, page]: [u32; 2]) -> Self {
        if who & ANON == 0 {
            Self::File { file: who, page }
        } else {
            Self::Anon { region: who & !ANON, page }
        }
    }
}

/// Describes one mapping.
#[derive(Clone, Debug)]
pub struct Vma {
    /// Names the address space, as an index into the machine's.
    pub mm: u32,
    /// Names the kind of memory that is mapped.
    pub kind: RegionKind,
    /// Counts accesses through it as reuse.
    pub recency: bool,
    /// Holds the advice for readahead.
    pub advice: Advice,
    /// Describes the content of the region's anonymous pages.
    pub content: Content,
    /// Says that the region's pages cannot be reclaimed.
    pub locked: bool,
    /// Says that the region is mapped executable.
    pub exec: bool,
    /// Says that the region is mapped now.
    pub mapped: bool,
    /// Says that tasks of other address spaces use the region too.
    pub shared: bool,
    /// Holds the region's page tables.
    pub table: PageTable,
    /// Records the region's last faults on swap.
    pub swap_readahead: SwapReadahead,
    pages: u32,
}

impl Vma {
    fn new(spec: &RegionSpec) -> Self {
        Self {
            mm: spec.mm,
            kind: spec.kind,
            recency: spec.advice == Advice::Normal,
            advice: spec.advice,
            content: spec.content,
            locked: spec.locked,
            exec: spec.exec,
            mapped: spec.mapped,
            shared: spec.shared,
            table: PageTable::new(
                if spec.mapped { spec.pages } else { 0 },
                is_swap_backed(spec.kind),
            ),
            swap_readahead: SwapReadahead::default(),
            pages: spec.pages,
        }
    }

    /// Returns the page of this mapping that shows `page` of its file.
    #[inline]
    pub fn page_of_file(&self, page: u32) -> Option<u32> {
        let RegionKind::File { first_page, .. } = self.kind else { return None };
        let at = u64::from(page).checked_sub(first_page)?;
        (at < u64::from(self.pages)).then_some(at as u32)
    }

    /// Returns the file and the page of it that `page` of this mapping shows.
    #[inline]
    pub fn file_page(&self, page: u32) -> Option<(FileId, u64)> {
        let RegionKind::File { file, first_page } = self.kind else { return None };
        Some((file, first_page + u64::from(page)))
    }

    /// Returns the length in pages, mapped or not.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Tells whether the memory is swap-backed.
    pub fn is_swap_backed(&self) -> bool {
        is_swap_backed(self.kind)
    }

    fn backing(&self) -> Backing {
        match self.kind {
            RegionKind::Anon => Backing::Anon,
            RegionKind::Shmem => Backing::Shmem,
            RegionKind::File { .. } => Backing::File,
        }
    }
}

/// Describes one address space.
#[derive(Clone, Debug)]
pub struct Mm {
    /// Names the address space to the policy.
    pub id: MmId,
    /// Names the group to which its page tables are charged.
    pub memcg: MemcgId,
    regions: Vec<RegionId>,
    /// Says that its memory is gone.
    pub dead: bool,
}

impl Mm {
    fn new(id: MmId, memcg: MemcgId) -> Self {
        Self { id, memcg, regions: Vec::new(), dead: false }
    }
}

/// Holds all address spaces of the machine.
#[derive(Clone, Debug, Default)]
pub struct AddressSpaces {
    vmas: Vec<Vma>,
    mms: Vec<Mm>,
    by_id: Vec<Option<u32>>,
    file_maps: Vec<Vec<RegionId>>,
}

impl AddressSpaces {
    /// Builds the mappings of a layout; `ids[mm]` names its address spaces to the policy, and says
    /// whose they are.
    pub fn new(regions: &[RegionSpec], ids: &[(MmId, MemcgId)], nr_files: usize) -> Self {
        let mut spaces = Self {
            vmas: regions.iter().map(Vma::new).collect(),
            mms: ids.iter().map(|&(id, memcg)| Mm::new(id, memcg)).collect(),
            by_id: vec![None; ids.iter().map(|(id, _)| id.index() + 1).max().unwrap_or(0)],
            file_maps: vec![Vec::new(); nr_files],
        };
        for (mm, (id, _)) in ids.iter().enumerate() {
            spaces.by_id[id.index()] = Some(mm as u32);
        }
        for (region, spec) in regions.iter().enumerate() {
            spaces.mms[spec.mm as usize].regions.push(region as RegionId);
            if spec.mapped {
                spaces.link_file(region as RegionId);
            }
        }
        spaces
    }

    /// Returns a mapping.
    #[inline]
    pub fn vma(&self, region: RegionId) -> &Vma {
        &self.vmas[region as usize]
    }

    /// Returns a mapping, to be changed.
    #[inline]
    pub fn vma_mut(&mut self, region: RegionId) -> &mut Vma {
        &mut self.vmas[region as usize]
    }

    /// Returns an address space.
    pub fn mm(&self, mm: u32) -> &Mm {
        &self.mms[mm as usize]
    }

    /// Returns an address space, to be changed.
    pub fn mm_mut(&mut self, mm: u32) -> &mut Mm {
        &mut self.mms[mm as usize]
    }

    /// Counts the address spaces.
    pub fn nr_mms(&self) -> u32 {
        self.mms.len() as u32
    }

    /// Lists the mappings of an address space, mapped or not, in address order.
    pub fn regions(&self, mm: u32) -> &[RegionId] {
        &self.mms[mm as usize].regions
    }

    /// Counts the pages of memory that only this address space holds, resident or in swap: its end
    /// frees them.
    pub fn footprint(&self, mm: u32) -> u64 {
        let vmas = self.regions(mm).iter().map(|&r| self.vma(r));
        vmas.filter(|v| !v.shared).map(|v| v.table.resident() + v.table.swapped()).sum()
    }

    /// Maps a region; mapping one that is mapped changes nothing.
    pub fn map(&mut self, region: RegionId) {
        let vma = self.vma_mut(region);
        if !vma.mapped {
            vma.mapped = true;
            vma.table = PageTable::new(vma.pages, vma.is_swap_backed());
            self.link_file(region);
        }
    }

    /// Unmaps a region whose entries are all gone.
    pub fn unmap(&mut self, region: RegionId) {
        let vma = self.vma_mut(region);
        debug_assert!(vma.table.resident() == 0 && vma.table.swapped() == 0);
        vma.mapped = false;
        vma.table = PageTable::default();
        if let RegionKind::File { file, .. } = vma.kind {
            self.file_maps[file as usize].retain(|&r| r != region);
        }
    }

    fn link_file(&mut self, region: RegionId) {
        if let RegionKind::File { file, .. } = self.vma(region).kind {
            self.file_maps[file as usize].push(region);
        }
    }

    /// Counts the entries that may map a folio of this owner.
    pub fn nr_mappings(&self, owner: Owner) -> usize {
        match owner {
            Owner::Anon { .. } => 1,
            Owner::File { file, .. } => self.file_maps[file as usize].len(),
        }
    }

    /// Returns the `nth` entry that may map a folio of this owner.
    #[inline]
    pub fn mapping(&self, owner: Owner, nth: usize) -> Option<(RegionId, u32)> {
        match owner {
            Owner::Anon { region, page } => Some((region, page)),
            Owner::File { file, page } => {
                let region = self.file_maps[file as usize][nth];
                self.vma(region).page_of_file(page).map(|at| (region, at))
            }
        }
    }

    /// Returns the entries of the `nth` mapping that may map a folio of `n` pages, which this owner
    /// is the first of; `None`: it shows none of them.
    #[inline]
    pub fn mapped(&self, owner: Owner, n: u32, nth: usize) -> Option<(RegionId, Range<u32>)> {
        if n == 1 {
            return self.mapping(owner, nth).map(|(region, page)| (region, page..page + 1));
        }
        let Owner::File { file, page } = owner else { return None };
        let region = self.file_maps[file as usize][nth];
        let vma = self.vma(region);
        let RegionKind::File { first_page, .. } = vma.kind else { return None };
        let at = |page: u64| page.saturating_sub(first_page).min(u64::from(vma.pages)) as u32;
        let pages = at(u64::from(page))..at(u64::from(page) + u64::from(n));
        (!pages.is_empty()).then_some((region, pages))
    }

    /// Finds the first page table of `mm` at or after `from`.
    pub fn next_pmd(&self, mm: MmId, from: Va) -> Option<PmdView> {
        let mm = self.by_id.get(mm.index()).copied().flatten()?;
        let regions = self.regions(mm);
        let (region, page) = split(from);
        let first = regions.partition_point(|&r| r < region);
        regions[first..].iter().find_map(|&r| {
            let from = if r == region { page } else { 0 };
            self.table_at(r, PageTable::table_of(from))
        })
    }

    fn table_at(&self, region: RegionId, from: u32) -> Option<PmdView> {
        let vma = self.vma(region);
        if !vma.mapped {
            return None;
        }
        let (table, young) = vma.table.next_table(from)?;
        // A mapping has its last table to itself: the next one may start after that.
        Some(PmdView {
            at: va(region, table * TABLE_ENTRIES),
            next: va(region, (table + 1) * TABLE_ENTRIES),
            mapping_end: va(region, vma.pages.next_multiple_of(TABLE_ENTRIES)),
            backing: vma.backing(),
            recency: vma.recency,
            special: vma.locked,
            young,
        })
    }
}

fn is_swap_backed(kind: RegionKind) -> bool {
    !matches!(kind, RegionKind::File { .. })
}

/// Returns the address of a page of a region.
pub fn va(region: RegionId, page: u32) -> Va {
    Va(u64::from(region) << REGION_SHIFT | u64::from(page) << PAGE_SHIFT)
}

/// Splits an address into its region and page.
pub fn split(at: Va) -> (RegionId, u32) {
    ((at.0 >> REGION_SHIFT) as u32, (at.0 >> PAGE_SHIFT) as u32)
}

#[cfg(test)]
mod tests;
