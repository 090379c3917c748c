//! The free scanner: from the top down, by pageblock, free pages to move to.

use super::{CLUSTER, Compaction, Tally};
use crate::physical::{
    Era, Frame, MAX_ORDER, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, Use, Zone,
    block_start,
};

/// Free blocks of an order that the fast search looks at.
const FAST_SEARCH: usize = 32;

impl Compaction {
    /// Fills the list of targets, if there are any above the migrate scanner. The scanner goes
    /// back to the highest pageblock that gave some: more may fall free there.
    pub(super) fn gather_targets(&mut self, zone: &mut Zone, tally: &mut Tally) {
        let lowest = block_start(self.migrate_pfn, PAGEBLOCK_ORDER) + PAGEBLOCK_PAGES;
        let mut block = self.fast_start(zone).unwrap_or(self.free_pfn);
        let mut highest = None;
        while self.targets.len() < CLUSTER && block >= lowest {
            if self.is_target(zone, block) && self.take_free(zone, block, tally) {
                highest = highest.or(Some(block));
            }
            let Some(next) = block.checked_sub(PAGEBLOCK_PAGES) else { break };
            block = next;
        }
        // Nothing found: the scanners have met.
        self.free_pfn = highest.unwrap_or_else(|| block.min(lowest).min(self.migrate_pfn));
        self.targets.reverse();
    }

    /// The highest pageblock of the upper half between the scanners with a free block too small for
    /// the request, if one is found quickly (modern era).
    fn fast_start(&self, zone: &Zone) -> Option<Pfn> {
        let order = self.wanted.filter(|_| zone.era() == Era::Modern)?.order;
        let middle = self.migrate_pfn + self.free_pfn.saturating_sub(self.migrate_pfn) / 2;
        let between = |pfn: &Pfn| (middle..self.free_pfn + PAGEBLOCK_PAGES).contains(pfn);
        let quick = |o| zone.movable_blocks(o).take(FAST_SEARCH).filter(between).max();
        let found = (0..order.min(MAX_ORDER)).rev().find_map(quick)?;
        Some(block_start(found, PAGEBLOCK_ORDER))
    }

    fn is_target(&self, zone: &Zone, block: Pfn) -> bool {
        let migrate = zone.block_type(block);
        let wholly_free =
            zone.free_block_of(block).is_some_and(|(_, order)| order >= PAGEBLOCK_ORDER);
        match zone.era() {
            Era::Lumpy => {
                migrate != MigrateType::Reserve && (migrate == MigrateType::Movable || wholly_free)
            }
            Era::Modern => migrate == MigrateType::Movable && !self.is_large_enough(zone, block),
        }
    }

    /// A free block that would do for the request is not broken up (modern era).
    fn is_large_enough(&self, zone: &Zone, pfn: Pfn) -> bool {
        let wanted = self.wanted.map_or(PAGEBLOCK_ORDER, |request| request.order);
        zone.era() == Era::Modern
            && zone.free_block_of(pfn).is_some_and(|(_, order)| order >= wanted)
    }

    /// Takes every free page of a pageblock. True when there were any.
    fn take_free(&mut self, zone: &mut Zone, block: Pfn, tally: &mut Tally) -> bool {
        let before = self.targets.len();
        let mut pfn = block;
        while pfn < block + PAGEBLOCK_PAGES {
            tally.free_scanned += 1;
            let refused = self.is_large_enough(zone, pfn);
            let Some((first, order)) = (!refused).then(|| zone.isolate_free(pfn)).flatten() else {
                pfn += 1;
                continue;
            };
            pfn = first + (1 << order);
            self.targets.extend(first..pfn);
        }
        self.targets.len() > before
    }
}

impl Zone {
    /// The pageblock below `end` of the lowest free block of an order on the movable list.
    pub(super) fn lightest(&self, order: u8, end: Pfn) -> Option<Pfn> {
        self.movable_blocks(order)
            .filter(|&pfn| pfn < end)
            .map(|pfn| block_start(pfn, PAGEBLOCK_ORDER))
            .min()
    }

    /// Frames of a pageblock in use by folios.
    pub fn folios_in_block(&self, block: Pfn) -> u32 {
        let is_folio = |&pfn: &Pfn| matches!(self.frame(pfn), Frame::Used(Use::Folio(_)));
        (block..block + PAGEBLOCK_PAGES).filter(is_folio).count() as u32
    }
}
