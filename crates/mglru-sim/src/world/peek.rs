//! Loads words before they are needed, many at once: what operations and reclaim will look at.

use mglru::folio::{Folio, Folios};
use mglru_workload::{Op, RegionId};

use super::World;
use crate::address_space::{Owner, Vma};
use crate::spec::PAGE_SIZE;

impl World {
    /// Loads the word that an operation will look at first. Many such loads overlap, where the
    /// operations themselves would wait for each; only that is what they are for. `true`: it will
    /// look at no other.
    #[inline]
    pub fn peek(&self, op: Op) -> bool {
        match op {
            Op::Touch { region, page, .. } => self.spaces.vma(region).table.peek(page).has_folio(),
            Op::Read { file, off, .. } => {
                std::hint::black_box(self.files[file as usize].cache.peek(off / PAGE_SIZE));
                false
            }
            _ => true,
        }
    }

    /// Loads the word that the operation needs next, if the first one says that it will.
    #[inline]
    pub fn peek_further(&self, op: Op) -> u64 {
        let Op::Touch { region, page, .. } = op else { return 0 };
        let vma = self.spaces.vma(region);
        if vma.table.peek(page).has_folio() { 0 } else { self.peek_target(vma, page) }
    }

    /// Loads the last such word: a swap slot, or the folio of a page that a read finds cached.
    #[inline]
    pub fn peek_last(&self, op: Op, folios: &Folios) -> u64 {
        match op {
            Op::Touch { region, page, .. } => {
                let table = &self.spaces.vma(region).table;
                table.swapped_to(page).map_or(0, |slot| self.swap.peek(slot))
            }
            Op::Read { file, off, .. } => {
                let folio = self.files[file as usize].cache.folio(off / PAGE_SIZE);
                folio.map_or(0, |folio| u64::from(folios[folio].mapcount()))
            }
            _ => 0,
        }
    }

    /// Loads the words that reclaim will ask of a folio: its entry in the first mapping, and what
    /// leads from there to it.
    #[inline]
    pub(super) fn peek_folio(&self, folio: &Folio) -> u64 {
        let slot = match Owner::unpack(folio.owner) {
            Owner::File { file, page } => self.files[file as usize].cache.peek(u64::from(page)),
            Owner::Anon { region, page } => {
                u64::from(self.spaces.vma(region).table.peek_target(page))
            }
        };
        let entry = |(region, page)| u64::from(self.spaces.vma(region).table.peek(page).is_young());
        slot ^ self.first_mapping(folio).map_or(0, entry)
    }

    /// Loads what it will ask next if that entry is young: which folios are around it.
    #[inline]
    pub(super) fn peek_around(&self, folio: &Folio) -> u64 {
        let Some((region, page)) = self.first_mapping(folio) else { return 0 };
        let vma = self.spaces.vma(region);
        if !vma.table.peek(page).is_young() {
            return 0;
        }
        let near = [page.wrapping_sub(32), page.wrapping_sub(16), page + 16, page + 31];
        near.iter().fold(0, |near, &page| near ^ self.peek_target(vma, page))
    }

    #[inline]
    fn peek_target(&self, vma: &Vma, page: u32) -> u64 {
        match vma.file_page(page) {
            Some((file, at)) => self.files[file as usize].cache.peek(at),
            None => u64::from(vma.table.peek_target(page)),
        }
    }

    #[inline]
    fn first_mapping(&self, folio: &Folio) -> Option<(RegionId, u32)> {
        let owner = Owner::unpack(folio.owner);
        if folio.is_mapped() { self.spaces.mapping(owner, 0) } else { None }
    }
}
