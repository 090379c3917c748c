//! Physical memory of the machine, where the plan asks for it: which frame each folio lies in, and
//! the kernel's own pages (experiments §17.5). Without it a page is a number in a zone's count.

use mglru::Contig;
use mglru::host::{Neighbour, OrderView};
use mglru::types::{FolioId, NodeId};

use super::World;
use super::inodes::Inodes;
use crate::physical::compaction::{self, Compaction, Fit, Mode, suitable};
use crate::physical::slab::{SlabCache, SlabPage};
use crate::physical::{Era, Frame, MigrateType, Pfn, Request, Use, Zone, block_start};
use crate::spec::MachineSpec;
use crate::task::FreshPage;
use crate::zones::{Mark, NORMAL};

/// Buffer heads of 104 bytes to a page.
const BUFFERS_PER_PAGE: u16 = 39;

/// Frames, and which folio each holds.
#[derive(Clone, Debug)]
pub struct Frames {
    /// Holds the one zone.
    pub zone: Zone,
    /// Holds the state and the counters of compaction.
    pub compaction: compaction::Memory,
    /// Holds the rules for large blocks.
    pub contig: Contig,
    /// Counts direct compactions, and those that gave the block.
    pub stalls: [u64; 2],
    /// Inodes and directory entries.
    pub(super) inodes: Inodes,
    /// Where each folio lies.
    pub(crate) places: Vec<Pfn>,
    /// The processor that runs now.
    pub(crate) cpu: usize,
    /// Pages that each task took for the kernel.
    pub(crate) taken: Vec<Vec<Pfn>>,
    /// Blocks that somebody keeps.
    pub(crate) blocks: Vec<(Pfn, u8)>,
    /// The order that kswapd was last woken for.
    pub(crate) kswapd_order: u8,
    buffers: SlabCache,
    buffer_of: Vec<Option<SlabPage>>,
}

impl Frames {
    /// Creates all of the machine's memory, in one zone.
    pub fn new(spec: &MachineSpec, contig: Contig, tasks: usize) -> Self {
        let era = if contig.is_lumpy_era() { Era::Lumpy } else { Era::Modern };
        let min = spec.zones.min_free.map(|size| size.pages());
        // Transparent huge pages came with 2.6.38.
        let huge_pages = contig != Contig::L0;
        let (pages, cpus) = (spec.pages() as u32, spec.cpus as usize);
        Self {
            zone: Zone::new(era, pages, cpus, min, huge_pages),
            compaction: compaction::Memory::default(),
            contig,
            stalls: [0; 2],
            inodes: Inodes::default(),
            places: Vec::new(),
            cpu: 0,
            taken: vec![Vec::new(); tasks],
            blocks: Vec::new(),
            kswapd_order: 0,
            buffers: SlabCache::new(BUFFERS_PER_PAGE),
            buffer_of: Vec::new(),
        }
    }

    /// Returns the watermark that `mark` names.
    pub fn mark(&self, mark: Mark) -> u64 {
        let marks = self.zone.marks();
        match mark {
            Mark::None => 0,
            Mark::Min => marks.min,
            Mark::Low => marks.low,
            Mark::High => marks.high,
        }
    }

    /// Takes a block, if that leaves the watermark.
    pub(crate) fn take(&mut self, request: Request, mark: Mark) -> Option<Pfn> {
        let allowed = mark == Mark::None || self.zone.allows(request, self.mark(mark));
        allowed.then(|| self.zone.take(request, self.cpu)).flatten()
    }

    /// The zone as a movable request of this order sees it.
    fn view(&self, order: u8) -> OrderView {
        let (zone, marks) = (&self.zone, self.zone.marks());
        let request = Request::new(order, MigrateType::Movable);
        let fits = || suitable(zone, request, marks.min) != Fit::Skipped;
        OrderView {
            managed: zone.managed(),
            free: zone.nr_free(),
            low: marks.low,
            high: marks.high,
            above_min: zone.allows(request, marks.min),
            above_low: zone.allows(request, marks.low),
            above_high: zone.allows(request, marks.high),
            compaction_fits: order > 0 && self.contig.has_compaction() && fits(),
            deferred: self.compaction.defer.would_skip(order),
        }
    }

    fn neighbours(&self, folio: FolioId, order: u8, out: &mut Vec<Neighbour>) {
        let start = block_start(self.places[folio.index()], order);
        let end = (start + (1 << order)).min(self.zone.end());
        out.extend((start..end).map(|pfn| match self.zone.frame(pfn) {
            Frame::Free { .. } | Frame::Tail | Frame::PerCpu => Neighbour::Free,
            Frame::Used(Use::Folio(folio)) => Neighbour::Folio(folio),
            Frame::Used(_) => Neighbour::Other,
        }));
    }

    /// A folio's page has buffers from the first time it is written.
    fn attach_buffer(&mut self, folio: FolioId) {
        if self.buffer_of.len() <= folio.index() {
            self.buffer_of.resize(folio.index() + 1, None);
        }
        if self.buffer_of[folio.index()].is_none() {
            let (zone, cpu) = (&mut self.zone, self.cpu);
            let page = || take_kernel_page(zone, MigrateType::Reclaimable, cpu);
            self.buffer_of[folio.index()] = self.buffers.alloc(page);
        }
    }

    fn free_folio(&mut self, folio: FolioId) {
        self.zone.put(self.places[folio.index()], 0, self.cpu);
        let buffer = self.buffer_of.get_mut(folio.index()).and_then(Option::take);
        if let Some(pfn) = buffer.and_then(|page| self.buffers.free(page)) {
            self.zone.put(pfn, 0, self.cpu);
        }
    }

    /// Makes inodes; what memory does not suffice for is left out.
    pub(super) fn add_inodes(&mut self, nr: u32) {
        for _ in 0..nr {
            let (zone, cpu) = (&mut self.zone, self.cpu);
            self.inodes.add(|| take_kernel_page(zone, MigrateType::Reclaimable, cpu));
        }
    }

    /// Frees the oldest inodes; pages that fell free.
    pub(super) fn free_inodes(&mut self, nr: u64) -> u64 {
        let mut freed = 0;
        for _ in 0..nr {
            if let Some(pfn) = self.inodes.free_oldest() {
                self.zone.put(pfn, 0, self.cpu);
                freed += 1;
            }
        }
        freed
    }
}

fn take_kernel_page(zone: &mut Zone, migrate: MigrateType, cpu: usize) -> Option<Pfn> {
    let pfn = zone.take(Request::new(0, migrate), cpu)?;
    zone.assign(pfn, 0, Use::Kernel);
    Some(pfn)
}

impl World {
    /// Takes a page for programs, the page cache, or (unmovable) for the kernel.
    pub(super) fn take_page_of(
        &mut self,
        node: NodeId,
        mark: Mark,
        migrate: MigrateType,
    ) -> Option<FreshPage> {
        if self.frames.is_none() {
            return self.take_pages_of(node, mark, 0);
        }
        let frames = self.frames.as_mut().expect("it has frames");
        let pfn = frames.take(Request::new(0, migrate), mark);
        self.mirror_frames();
        pfn.map(|pfn| FreshPage { order: 0, node: NodeId(0), zone: NORMAL, pfn })
    }

    /// Takes pages for a large folio: a machine without frames always has them together.
    pub(super) fn take_pages_of(
        &mut self,
        node: NodeId,
        mark: Mark,
        order: u8,
    ) -> Option<FreshPage> {
        debug_assert!(self.frames.is_none(), "large folios and frames exclude each other");
        let (node, zone) = self.zones.alloc(node, NORMAL, 1 << order, mark)?;
        Some(FreshPage { order, node, zone, pfn: 0 })
    }

    /// Gives a page back.
    pub(super) fn put_page(&mut self, page: FreshPage) {
        match &mut self.frames {
            None => self.zones.free(page.node, page.zone, page.pages()),
            Some(frames) => frames.zone.put(page.pfn, 0, frames.cpu),
        }
        self.mirror_frames();
    }

    /// A page has become a folio.
    pub(crate) fn place(&mut self, folio: FolioId, page: FreshPage) {
        let Some(frames) = &mut self.frames else { return };
        if frames.places.len() <= folio.index() {
            frames.places.resize(folio.index() + 1, 0);
        }
        frames.places[folio.index()] = page.pfn;
        frames.zone.assign(page.pfn, 0, Use::Folio(folio));
    }

    /// A folio's page falls free. False: the machine has no frames.
    pub(super) fn put_folio(&mut self, folio: FolioId) -> bool {
        let Some(frames) = &mut self.frames else { return false };
        frames.free_folio(folio);
        self.mirror_frames();
        true
    }

    /// A page of a file is written through the page cache.
    pub(crate) fn attach_buffer(&mut self, folio: FolioId) {
        if let Some(frames) = &mut self.frames {
            frames.attach_buffer(folio);
            self.mirror_frames();
        }
    }

    /// Lets the zone's counts follow the frames.
    #[inline]
    pub(crate) fn mirror_frames(&mut self) {
        if let Some(frames) = &self.frames {
            let marks = frames.zone.marks();
            self.zones.mirror(frames.zone.nr_free(), [marks.min, marks.low, marks.high]);
        }
    }

    /// The processor that runs now.
    #[inline]
    pub(crate) fn run_on(&mut self, cpu: usize) {
        if let Some(frames) = &mut self.frames {
            frames.cpu = cpu;
        }
    }

    /// Wakes kswapd to make room for a block.
    pub(crate) fn wake_kswapd_for(&mut self, order: u8) {
        if let Some(frames) = &mut self.frames {
            frames.kswapd_order = frames.kswapd_order.max(order);
        }
        self.wake_kswapd(NodeId(0));
    }

    /// The order that kswapd is to work for.
    pub(crate) fn take_kswapd_order(&mut self) -> u8 {
        self.frames.as_mut().map_or(0, |frames| std::mem::take(&mut frames.kswapd_order))
    }

    /// Was kswapd woken for an order since it last began?
    pub(crate) fn is_kswapd_wanted(&self) -> bool {
        self.frames.as_ref().is_some_and(|frames| frames.kswapd_order > 0)
    }

    /// The pages that a steal asked kswapd for are there.
    pub(crate) fn end_boost(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.zone.end_boost();
            self.mirror_frames();
        }
    }

    /// Compacts for kswapd when it is through: since the change that made reclaim order-0.
    pub(crate) fn kswapd_compaction(&mut self, order: u8) -> Option<Compaction> {
        let frames = self.frames.as_mut()?;
        let mode = match frames.contig {
            Contig::L0 | Contig::L1 => return None,
            Contig::L2 | Contig::L3 => Mode::Async,
            Contig::K612 => Mode::SyncLight,
        };
        let request = Request::new(order, MigrateType::Movable);
        let low = frames.zone.marks().low;
        let runs = order > 0
            && !frames.compaction.defer.skips(order)
            && suitable(&frames.zone, request, low) == Fit::Continue;
        let (zone, cpu) = (&frames.zone, frames.cpu);
        runs.then(|| Compaction::new(zone, &frames.compaction, Some(request), mode, cpu))
    }

    pub(super) fn order_view_of_frames(&self, order: u8) -> Option<OrderView> {
        self.frames.as_ref().map(|frames| frames.view(order))
    }

    pub(super) fn neighbours_of(&self, folio: FolioId, order: u8, out: &mut Vec<Neighbour>) {
        if let Some(frames) = &self.frames {
            frames.neighbours(folio, order, out);
        }
    }
}
