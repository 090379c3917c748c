//! The migrate scanner: from the bottom up, one pageblock a step, pages in use that may move.

use mglru::types::FolioId;

use super::{CLUSTER, Compaction, Mode, Mover, Tally};
use crate::physical::{
    Era, Frame, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, Use, Zone, block_start,
};

impl Compaction {
    /// Takes pages off, at most [`CLUSTER`], from the pageblock the scanner is in.
    pub(super) fn isolate_pages(
        &mut self,
        zone: &mut Zone,
        tally: &mut Tally,
        mover: &mut impl Mover,
    ) -> Vec<(Pfn, FolioId)> {
        let block = block_start(self.migrate_pfn, PAGEBLOCK_ORDER);
        let end = block + PAGEBLOCK_PAGES;
        if end > self.free_pfn || !self.is_source(zone, block) {
            self.migrate_pfn = end;
            return Vec::new();
        }
        let mut taken = Vec::with_capacity(CLUSTER);
        let from_start = self.migrate_pfn == block;
        let mut pfn = self.migrate_pfn;
        while pfn < end && taken.len() < CLUSTER {
            tally.migrate_scanned += 1;
            match zone.frame(pfn) {
                Frame::Free { order, .. } => {
                    pfn += 1 << order;
                    continue;
                }
                Frame::Used(Use::Folio(folio)) if mover.isolate(folio, self.mode) => {
                    taken.push((pfn, folio));
                }
                _ => {}
            }
            pfn += 1;
        }
        self.migrate_pfn = pfn.min(end);
        if zone.era() == Era::Modern && from_start && pfn >= end && taken.is_empty() {
            zone.skip_block(block, true);
        }
        taken
    }

    fn is_source(&self, zone: &Zone, block: Pfn) -> bool {
        let movable = zone.block_type(block) == MigrateType::Movable;
        let skipped = self.wanted.is_some() && zone.is_skipped(block);
        (self.mode == Mode::SyncLight || movable) && !skipped
    }
}

/// A pageblock in the lower half that already has a free block of some size: little is left to
/// move out of it. Only for requests that are large enough to be worth the search.
pub(super) fn light_first_block(zone: &Zone, order: u8) -> Option<Pfn> {
    if order <= crate::physical::COSTLY_ORDER {
        return None;
    }
    let lower = zone.end() / 2;
    let light = |order: u8| zone.lightest(order, lower);
    (PAGEBLOCK_ORDER / 2..order.min(PAGEBLOCK_ORDER)).rev().find_map(light)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physical::Request;

    #[test]
    fn the_first_block_is_one_that_has_free_pages() {
        let mut zone = Zone::new(Era::Modern, 8 * PAGEBLOCK_PAGES, 1, Some(64), false);
        while zone.take(Request::new(8, MigrateType::Movable), 0).is_some() {}
        assert_eq!(light_first_block(&zone, 9), None);
        zone.put(3 * PAGEBLOCK_PAGES + 256, 8, 0);
        zone.put(6 * PAGEBLOCK_PAGES, 8, 0);
        assert_eq!(light_first_block(&zone, 9), Some(3 * PAGEBLOCK_PAGES));
        assert_eq!(light_first_block(&zone, 2), None, "not for small requests");
    }
}
