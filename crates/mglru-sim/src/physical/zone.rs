//! A zone's frames and the buddy allocator over them (experiments §17.5).
//!
//! A free block of order `o` is `2^o` frames aligned to their number; two free buddies are one
//! block. Each pageblock has a type; free blocks lie on the list of some type, normally that of
//! their pageblock. Watermarks are asked for by the caller, not enforced here.

mod pageblocks;
#[cfg(test)]
pub(super) mod tests;

use mglru::types::FolioId;

use super::fallback::{donors, orders, takes_pageblock};
use super::free_lists::FreeLists;
use super::per_cpu::{BATCH, PerCpu};
use super::watermarks::{Stock, Watermarks, min_free};
use super::{Era, MAX_ORDER, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, block_start};

/// Names the content of a frame in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Holds a frame that is taken and not yet put to use.
    Fresh,
    /// Holds a page of a program or of the page cache: it can be moved and reclaimed.
    Folio(FolioId),
    /// Holds kernel memory that stays where it is.
    Kernel,
    /// Holds a part of a block of several pages in use.
    Held,
}

/// Describes the state of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Begins a free block.
    Free {
        /// Its order.
        order: u8,
        /// The list it is on.
        list: MigrateType,
    },
    /// Lies inside a free block, not at its first frame.
    Tail,
    /// Lies on a processor's list.
    PerCpu,
    /// Lies in use.
    Used(Use),
}

/// Describes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Holds log2 of the request's pages.
    pub order: u8,
    /// Names the request's purpose: one of [`MigrateType::REQUESTED`].
    pub migrate: MigrateType,
    /// Says that the request cannot wait, and may use blocks kept for such (modern era).
    pub atomic: bool,
}

impl Request {
    /// Makes a request that can wait.
    pub fn new(order: u8, migrate: MigrateType) -> Self {
        Self { order, migrate, atomic: false }
    }
}

/// Holds the frames, free lists and watermarks of a zone.
#[derive(Clone, Debug)]
pub struct Zone {
    era: Era,
    frames: Vec<Frame>,
    blocks: Vec<MigrateType>,
    /// Pageblocks that compaction need not look at again (modern era).
    skipped: Vec<bool>,
    lists: FreeLists,
    per_cpu: Vec<PerCpu>,
    marks: Watermarks,
    boost: u64,
    nr_free: u64,
    /// Pageblocks that changed hands.
    pub stolen_blocks: u64,
}

impl Zone {
    /// Creates a zone of `pages` free pages, a multiple of a pageblock, all of them movable but the
    /// reserve. `min`: the minimum watermark, by size when absent.
    pub fn new(era: Era, pages: u32, cpus: usize, min: Option<u64>, huge_pages: bool) -> Self {
        assert!(pages > 0 && pages % PAGEBLOCK_PAGES == 0, "whole pageblocks only");
        let mut zone = Self {
            era,
            frames: vec![Frame::Used(Use::Fresh); pages as usize],
            blocks: vec![MigrateType::Movable; (pages / PAGEBLOCK_PAGES) as usize],
            skipped: vec![false; (pages / PAGEBLOCK_PAGES) as usize],
            lists: FreeLists::new(pages),
            per_cpu: vec![PerCpu::default(); cpus.max(1)],
            marks: Watermarks::default(),
            boost: 0,
            nr_free: 0,
            stolen_blocks: 0,
        };
        // From the top down, so that the lists start at the bottom.
        for pfn in (0..pages).step_by(PAGEBLOCK_PAGES as usize).rev() {
            zone.give(pfn, PAGEBLOCK_ORDER);
        }
        let by_size = || min_free(u64::from(pages), huge_pages);
        zone.set_min(min.unwrap_or_else(by_size));
        zone
    }

    /// Sets the minimum watermark; the other marks and the reserve follow.
    pub fn set_min(&mut self, min: u64) {
        self.marks = Watermarks::above(self.era, min, self.managed());
        self.boost = 0;
        if self.era == Era::Lumpy {
            self.size_reserve();
        }
    }

    /// Returns the era whose rules it follows.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Counts the pages of the zone.
    pub fn managed(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Counts the pages on the free lists; those that processors keep are not free.
    pub fn nr_free(&self) -> u64 {
        self.nr_free
    }

    /// Counts the pages that processors keep.
    pub fn nr_per_cpu(&self) -> u64 {
        self.per_cpu.iter().map(|list| list.len() as u64).sum()
    }

    /// Returns the watermarks, the high one with its boost.
    pub fn marks(&self) -> Watermarks {
        Watermarks { high: self.marks.high + self.boost, ..self.marks }
    }

    /// Ends the boost: kswapd has made up for steals.
    pub fn end_boost(&mut self) {
        self.boost = 0;
    }

    /// Returns the frame number one past the last frame.
    pub fn end(&self) -> Pfn {
        self.frames.len() as Pfn
    }

    /// Returns a frame's state.
    pub fn frame(&self, pfn: Pfn) -> Frame {
        self.frames[pfn as usize]
    }

    /// Says whether the request would leave the zone above `mark`.
    pub fn allows(&self, request: Request, mark: u64) -> bool {
        if request.order == 0 && self.nr_free <= mark {
            return false;
        }
        self.stock(request.atomic).allows(self.era, request.order, mark)
    }

    /// Returns free memory as the watermark test sees it.
    pub fn stock(&self, atomic: bool) -> Stock {
        let mut stock = Stock { free: self.nr_free, ..Stock::default() };
        for order in 0..=MAX_ORDER {
            let at = usize::from(order);
            let kept = self.lists.on_list(order, MigrateType::HighAtomic);
            stock.blocks[at] = self.lists.of_order(order);
            stock.usable[at] = if atomic { stock.blocks[at] } else { stock.blocks[at] - kept };
            stock.kept += if atomic { 0 } else { kept << order };
        }
        stock
    }

    /// Counts the free blocks of an order, of every type.
    pub fn free_blocks(&self, order: u8) -> u64 {
        self.lists.of_order(order)
    }

    /// Counts the free blocks of an order on one list.
    pub fn free_on(&self, order: u8, list: MigrateType) -> u64 {
        self.lists.on_list(order, list)
    }

    /// Takes a block, whatever the watermarks say. Its frames are [`Use::Fresh`].
    pub fn take(&mut self, request: Request, cpu: usize) -> Option<Pfn> {
        let Request { order, migrate, .. } = request;
        if order > 0 {
            return self.take_block(request);
        }
        let cpu = cpu % self.per_cpu.len();
        if let Some(pfn) = self.per_cpu[cpu].take(migrate) {
            self.frames[pfn as usize] = Frame::Used(Use::Fresh);
            return Some(pfn);
        }
        let first = self.take_block(request)?;
        for _ in 1..BATCH {
            let Some(pfn) = self.take_block(request) else { break };
            self.frames[pfn as usize] = Frame::PerCpu;
            self.per_cpu[cpu].keep(pfn, migrate);
        }
        Some(first)
    }

    /// Gives a block back.
    pub fn put(&mut self, pfn: Pfn, order: u8, cpu: usize) {
        debug_assert!(matches!(self.frame(pfn), Frame::Used(_)), "frame {pfn} freed twice");
        if order > 0 {
            return self.give(pfn, order);
        }
        let cpu = cpu % self.per_cpu.len();
        self.frames[pfn as usize] = Frame::PerCpu;
        let block = self.block_type(pfn);
        self.per_cpu[cpu].keep(pfn, block);
        for pfn in self.per_cpu[cpu].overflow() {
            self.give(pfn, 0);
        }
    }

    /// Puts all pages that processors keep on the free lists.
    pub fn drain(&mut self) {
        for cpu in 0..self.per_cpu.len() {
            for pfn in self.per_cpu[cpu].drain() {
                self.give(pfn, 0);
            }
        }
    }

    /// Says what the frames of a block in use hold.
    pub fn assign(&mut self, pfn: Pfn, order: u8, what: Use) {
        for frame in &mut self.frames[pfn as usize..(pfn + (1 << order)) as usize] {
            debug_assert!(matches!(frame, Frame::Used(_)), "frame {pfn} is not in use");
            *frame = Frame::Used(what);
        }
    }

    /// Takes the free block that holds a frame off its list, as single pages in use (compaction's
    /// targets), or the part of it in the frame's pageblock. Its first frame and its order.
    pub(super) fn isolate_free(&mut self, pfn: Pfn) -> Option<(Pfn, u8)> {
        let (first, order) = self.free_block_of(pfn)?;
        if order > PAGEBLOCK_ORDER {
            self.break_block(first, order);
            return self.isolate_free(pfn);
        }
        let Frame::Free { list, .. } = self.frame(first) else { panic!("{first} is free") };
        self.unlist(first, order, list);
        self.use_block(first, order);
        Some((first, order))
    }

    /// Free blocks of an order on the movable list, the one freed last first.
    pub(super) fn movable_blocks(&self, order: u8) -> impl Iterator<Item = Pfn> + '_ {
        self.lists.iter(order, MigrateType::Movable)
    }

    fn take_block(&mut self, request: Request) -> Option<Pfn> {
        let Request { order, migrate, atomic } = request;
        let found = self
            .take_from(order, migrate)
            .or_else(|| self.fall_back(order, migrate))
            .or_else(|| self.take_last_resort(order, atomic));
        if let (Some(pfn), true, Era::Modern) = (found, atomic && order > 0, self.era) {
            self.keep_for_atomic(pfn);
        }
        found
    }

    fn take_last_resort(&mut self, order: u8, atomic: bool) -> Option<Pfn> {
        match self.era {
            Era::Lumpy => self.take_from(order, MigrateType::Reserve),
            Era::Modern if atomic => self.take_from(order, MigrateType::HighAtomic),
            Era::Modern => None,
        }
    }

    /// The smallest block of a list that is large enough.
    fn take_from(&mut self, order: u8, list: MigrateType) -> Option<Pfn> {
        let large = (order..=MAX_ORDER).find(|&o| self.lists.on_list(o, list) > 0)?;
        let pfn = self.lists.first(large, list).expect("the list is not empty");
        self.split(pfn, large, order, list);
        Some(pfn)
    }

    /// The largest block of another type, with as much of its pageblock as the rules allow.
    fn fall_back(&mut self, order: u8, migrate: MigrateType) -> Option<Pfn> {
        let (large, donor) = orders(order).find_map(|large| {
            let has = |&&donor: &&MigrateType| self.lists.on_list(large, donor) > 0;
            donors(migrate).iter().find(has).map(|&donor| (large, donor))
        })?;
        let pfn = self.lists.first(large, donor).expect("the list is not empty");
        let list = if takes_pageblock(self.era, large, migrate) {
            self.steal(pfn, large, migrate);
            migrate
        } else {
            donor
        };
        let Frame::Free { order: large, list: from } = self.frame(pfn) else {
            panic!("frame {pfn} was free")
        };
        self.move_block(pfn, large, from, list);
        self.split(pfn, large, order, list);
        Some(pfn)
    }

    /// Uses the first part of a free block; the rest stays on its list.
    fn split(&mut self, pfn: Pfn, large: u8, order: u8, list: MigrateType) {
        self.unlist(pfn, large, list);
        for half in (order..large).rev() {
            self.list(pfn + (1 << half), half, list);
        }
        self.use_block(pfn, order);
    }

    /// Frees a block into its pageblock's list, with its buddies as far as they are free.
    fn give(&mut self, pfn: Pfn, order: u8) {
        let list = self.block_type(pfn);
        let (mut pfn, mut order) = (pfn, order);
        while order < MAX_ORDER {
            let buddy = pfn ^ 1 << order;
            match self.frames.get(buddy as usize) {
                Some(&Frame::Free { order: same, list: on }) if same == order => {
                    self.unlist(buddy, order, on);
                }
                _ => break,
            }
            pfn = pfn.min(buddy);
            order += 1;
        }
        self.list(pfn, order, list);
    }

    fn list(&mut self, pfn: Pfn, order: u8, list: MigrateType) {
        let frames = &mut self.frames[pfn as usize..(pfn + (1 << order)) as usize];
        frames.fill(Frame::Tail);
        frames[0] = Frame::Free { order, list };
        self.lists.push(pfn, order, list);
        self.nr_free += 1 << order;
    }

    fn unlist(&mut self, pfn: Pfn, order: u8, list: MigrateType) {
        self.lists.remove(pfn, order, list);
        self.nr_free -= 1 << order;
    }

    fn use_block(&mut self, pfn: Pfn, order: u8) {
        self.frames[pfn as usize..(pfn + (1 << order)) as usize].fill(Frame::Used(Use::Fresh));
    }

    /// Moves a free block to another list.
    fn move_block(&mut self, pfn: Pfn, order: u8, from: MigrateType, to: MigrateType) {
        if from != to {
            self.lists.remove(pfn, order, from);
            self.lists.push(pfn, order, to);
            self.frames[pfn as usize] = Frame::Free { order, list: to };
        }
    }

    /// Returns the free block that holds a frame, if one does: its first frame and its order.
    pub fn free_block_of(&self, pfn: Pfn) -> Option<(Pfn, u8)> {
        match self.frame(pfn) {
            Frame::Free { order, .. } => Some((pfn, order)),
            Frame::Tail => (1..=MAX_ORDER).find_map(|o| match self.frame(block_start(pfn, o)) {
                Frame::Free { order, .. } => Some((block_start(pfn, o), order)),
                _ => None,
            }),
            Frame::PerCpu | Frame::Used(_) => None,
        }
    }
}
