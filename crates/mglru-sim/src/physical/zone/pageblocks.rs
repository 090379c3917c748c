//! Pageblocks: their types, stealing, the reserve of the lumpy era and the blocks that the modern
//! era keeps for large requests that cannot wait.

use super::{Frame, Use, Zone};
use crate::physical::fallback::retags;
use crate::physical::{Era, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, block_start};

/// Pageblocks kept in reserve at most.
const MAX_RESERVE: u64 = 2;

impl Zone {
    /// Returns the type of the pageblock that holds a frame.
    pub fn block_type(&self, pfn: Pfn) -> MigrateType {
        self.blocks[(pfn >> PAGEBLOCK_ORDER) as usize]
    }

    /// Pageblocks of a type.
    pub fn blocks_of(&self, migrate: MigrateType) -> u64 {
        self.blocks.iter().filter(|&&m| m == migrate).count() as u64
    }

    /// Compaction need not look at this pageblock until the marks are forgotten.
    pub(in crate::physical) fn skip_block(&mut self, pfn: Pfn, skip: bool) {
        self.skipped[(pfn >> PAGEBLOCK_ORDER) as usize] = skip;
    }

    /// Was it marked?
    pub(in crate::physical) fn is_skipped(&self, pfn: Pfn) -> bool {
        self.skipped[(pfn >> PAGEBLOCK_ORDER) as usize]
    }

    /// Forgets all marks.
    pub(in crate::physical) fn forget_skips(&mut self) {
        self.skipped.fill(false);
    }

    pub(super) fn set_block_type(&mut self, pfn: Pfn, migrate: MigrateType) {
        self.blocks[(pfn >> PAGEBLOCK_ORDER) as usize] = migrate;
    }

    /// A block is taken from another type: it may bring its pageblock along.
    pub(super) fn steal(&mut self, pfn: Pfn, order: u8, to: MigrateType) {
        if order >= PAGEBLOCK_ORDER {
            for block in (pfn..pfn + (1 << order)).step_by(PAGEBLOCK_PAGES as usize) {
                self.set_block_type(block, to);
                self.stolen_blocks += 1;
            }
            return;
        }
        let start = block_start(pfn, PAGEBLOCK_ORDER);
        if self.era == Era::Modern {
            let most = self.marks.most_boost() - self.marks.high;
            self.boost = (self.boost + u64::from(PAGEBLOCK_PAGES)).min(most);
        }
        let alike = self.alike(start, to);
        let free = self.free_in_block(start);
        self.move_free_pages(start, to);
        if retags(self.era, free, alike) {
            self.set_block_type(start, to);
            self.stolen_blocks += 1;
        }
    }

    /// Pages in use that are of the kind a type is for. What is in use in a block that was not
    /// movable is of its own kind or movable; the map does not say which of the two.
    fn alike(&self, start: Pfn, to: MigrateType) -> u32 {
        let is_movable = |frame: &&Frame| matches!(frame, Frame::Used(Use::Folio(_)));
        let movable = self.block(start).iter().filter(is_movable).count() as u32;
        match (to, self.block_type(start)) {
            (MigrateType::Movable, _) => movable,
            (_, MigrateType::Movable) => PAGEBLOCK_PAGES - self.free_in_block(start) - movable,
            _ => 0,
        }
    }

    fn block(&self, start: Pfn) -> &[Frame] {
        &self.frames[start as usize..(start + PAGEBLOCK_PAGES) as usize]
    }

    /// Counts the free pages of a pageblock.
    pub fn free_in_block(&self, start: Pfn) -> u32 {
        let is_free = |frame: &&Frame| matches!(frame, Frame::Free { .. } | Frame::Tail);
        self.block(start).iter().filter(is_free).count() as u32
    }

    /// Free blocks inside a pageblock, a larger one that covers it included, change their list.
    fn move_free_pages(&mut self, start: Pfn, to: MigrateType) {
        let mut pfn = start;
        while pfn < start + PAGEBLOCK_PAGES {
            let Frame::Free { order, list } = self.frame(pfn) else {
                pfn += 1;
                continue;
            };
            self.move_block(pfn, order, list, to);
            pfn += 1 << order;
        }
    }

    /// Brings the reserve to the size that the minimum watermark asks for.
    pub(super) fn size_reserve(&mut self) {
        let wanted = self.marks.min.div_ceil(u64::from(PAGEBLOCK_PAGES)).min(MAX_RESERVE);
        let mut left = wanted;
        for at in 0..self.blocks.len() {
            let start = (at as Pfn) << PAGEBLOCK_ORDER;
            let free = self.free_in_block(start) == PAGEBLOCK_PAGES;
            let is_reserve = self.blocks[at] == MigrateType::Reserve;
            if left > 0 && (is_reserve || free && self.blocks[at] == MigrateType::Movable) {
                self.retype(start, MigrateType::Reserve);
                left -= 1;
            } else if is_reserve {
                self.retype(start, MigrateType::Movable);
            }
        }
    }

    /// A pageblock changes its type with all that is free in it.
    pub(super) fn retype(&mut self, start: Pfn, to: MigrateType) {
        self.set_block_type(start, to);
        if let Some((first, order)) = self.free_block_of(start)
            && order > PAGEBLOCK_ORDER
        {
            self.break_block(first, order);
        }
        self.move_free_pages(start, to);
    }

    /// A free block of several pageblocks becomes one block for each.
    pub(super) fn break_block(&mut self, first: Pfn, order: u8) {
        let Frame::Free { list, .. } = self.frame(first) else { panic!("{first} is free") };
        self.unlist(first, order, list);
        for start in (first..first + (1 << order)).step_by(PAGEBLOCK_PAGES as usize) {
            self.list(start, PAGEBLOCK_ORDER, list);
        }
    }

    /// Keeps the pageblock of a large request that could not wait, up to a hundredth of the zone.
    pub(super) fn keep_for_atomic(&mut self, pfn: Pfn) {
        let most = (self.managed() / 100 / u64::from(PAGEBLOCK_PAGES)).max(1);
        let start = block_start(pfn, PAGEBLOCK_ORDER);
        let kept = self.blocks_of(MigrateType::HighAtomic);
        if self.block_type(start) != MigrateType::HighAtomic && kept < most {
            self.retype(start, MigrateType::HighAtomic);
        }
    }

    /// Gives one kept pageblock back: reclaim is failing. False: there is none.
    pub fn release_atomic(&mut self, to: MigrateType) -> bool {
        let at = self.blocks.iter().position(|&m| m == MigrateType::HighAtomic);
        let Some(at) = at else { return false };
        self.retype((at as Pfn) << PAGEBLOCK_ORDER, to);
        true
    }
}
