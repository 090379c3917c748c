//! Asking for a block of contiguous pages: the slow path of the allocator (experiments §17.3,
//! §17.4). Direct compaction, reclaim for the order, compaction again; then it is given up, or
//! tried again where the request says so.

use mglru::Reclaim;
use mglru::types::{FolioId, Nanos, NodeId};
use mglru::{Bit, Contig, Lru};
use mglru_workload::KernelOp;

use crate::address_space::Owner;
use crate::error::SimError;
use crate::journal::Journal;
use crate::machine::Machine;
use crate::physical::compaction::{Compaction, End, Fit, Mode, Mover, Step, Tally, suitable};
use crate::physical::{COSTLY_ORDER, Era, MigrateType, Pfn, Request, Use};
use crate::reclaiming::Progress;
use crate::task::{Doing, Flow};
use crate::zones::{Mark, NORMAL};

/// Copying a page, ns (experiments §0.3).
const COPY_NS: Nanos = 400;
/// Rounds of a repeated request in the modern era: 16, a quarter for costly orders.
const MODERN_ROUNDS: (u32, u32) = (16, 4);

/// Describes a request for a block under way.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    request: Request,
    repeat: bool,
    class: u8,
    stage: Stage,
    /// Compaction waits no longer for what is being moved: the last round.
    mode: Mode,
    compaction: Option<Compaction>,
    reclaimed: u64,
    rounds: u32,
}

/// Names the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Compact { last: bool },
    Reclaim,
}

impl BlockRequest {
    fn is_costly(&self) -> bool {
        self.request.order > COSTLY_ORDER
    }
}

/// Folios of the machine, on the move.
struct Folios<'a> {
    lru: &'a mut Lru,
    places: &'a mut Vec<Pfn>,
    journal: &'a Journal,
}

impl Folios<'_> {
    /// A block of the file system that is not written: nobody knows how to move its page.
    fn is_stuck(&self, folio: FolioId) -> bool {
        let folio = &self.lru.folios()[folio];
        let owner = Owner::unpack(folio.owner);
        let covered = matches!(owner, Owner::File { file, .. } if self.journal.covers(file));
        folio.flags.has(Bit::DIRTY) && covered
    }
}

impl Mover for Folios<'_> {
    fn isolate(&mut self, folio: FolioId, mode: Mode) -> bool {
        let flags = self.lru.folios()[folio].flags;
        let busy = flags.has_any([Bit::WRITEBACK, Bit::LOCKED]);
        let ready = flags.has(Bit::LRU) && !flags.has(Bit::PINNED) && !self.is_stuck(folio);
        ready && (mode == Mode::SyncLight || !busy)
    }

    fn relocate(&mut self, folio: FolioId, to: Pfn, _mode: Mode) -> bool {
        if self.lru.folios()[folio].flags.has_any([Bit::WRITEBACK, Bit::LOCKED]) {
            return false;
        }
        self.places[folio.index()] = to;
        true
    }

    fn put_back(&mut self, folio: FolioId) {
        self.lru.put_back_moved(folio);
    }
}

impl Machine {
    /// Begins an operation on kernel memory.
    pub(crate) fn begin_kernel(&mut self, t: usize, op: KernelOp) -> Flow {
        if self.world.frames.is_none() {
            let what = "kernel memory and large blocks: they need machine.physical = \"buddy\"";
            return self.fail(SimError::Unsupported(what));
        }
        match op {
            KernelOp::Take { pages } => self.take_kernel_pages(t, pages),
            KernelOp::Give { pages } => self.give_kernel_pages(t, pages),
            KernelOp::Inodes { nr } => self.world.make_inodes(nr),
            KernelOp::DropSlab => self.world.drop_inodes(),
            KernelOp::FreeBlocks => self.free_blocks(),
            KernelOp::MinFree { kib } => self.set_min_free(kib / 4),
            KernelOp::TryBlock { order, repeat, class } => {
                return self.begin_block(t, order, repeat, class);
            }
        }
        Flow::Done
    }

    /// Whatever the watermarks say: what programs do next feels it.
    fn take_kernel_pages(&mut self, t: usize, pages: u32) {
        let frames = self.world.frames.as_mut().expect("it has frames");
        for _ in 0..pages {
            let request = Request::new(0, MigrateType::Unmovable);
            let Some(pfn) = frames.take(request, Mark::None) else { break };
            frames.zone.assign(pfn, 0, Use::Kernel);
            frames.taken[t].push(pfn);
        }
        self.world.mirror_frames();
        if self.world.zones.wants_kswapd(NodeId(0), NORMAL) {
            self.world.wake_kswapd(NodeId(0));
        }
    }

    fn give_kernel_pages(&mut self, t: usize, pages: u32) {
        let frames = self.world.frames.as_mut().expect("it has frames");
        let left = frames.taken[t].len().saturating_sub(pages as usize);
        for pfn in frames.taken[t].drain(left..) {
            frames.zone.put(pfn, 0, frames.cpu);
        }
        self.world.mirror_frames();
    }

    fn free_blocks(&mut self) {
        let frames = self.world.frames.as_mut().expect("it has frames");
        for (pfn, order) in std::mem::take(&mut frames.blocks) {
            frames.zone.put(pfn, order, frames.cpu);
        }
        self.world.mirror_frames();
    }

    fn set_min_free(&mut self, pages: u64) {
        self.world.frames.as_mut().expect("it has frames").zone.set_min(pages);
        self.world.mirror_frames();
    }

    fn begin_block(&mut self, t: usize, order: u8, repeat: bool, class: u8) -> Flow {
        self.tasks[t].doing = Doing::Block(Box::new(BlockRequest {
            request: Request::new(order, MigrateType::Movable),
            repeat,
            class,
            stage: Stage::Begin,
            mode: Mode::Async,
            compaction: None,
            reclaimed: 0,
            rounds: 0,
        }));
        Flow::Again
    }

    /// Goes on with a request.
    pub(crate) fn try_for_block(&mut self, t: usize) -> Flow {
        let doing = std::mem::replace(&mut self.tasks[t].doing, Doing::Nothing);
        let Doing::Block(mut block) = doing else { panic!("a request is under way") };
        let flow = match block.stage {
            Stage::Begin => self.first_attempt(&mut block),
            Stage::Compact { last } => self.compact(&mut block, last),
            Stage::Reclaim => self.reclaim_for(t, &mut block),
        };
        if flow != Flow::Done {
            self.tasks[t].doing = Doing::Block(block);
        }
        flow
    }

    fn first_attempt(&mut self, block: &mut BlockRequest) -> Flow {
        if self.try_block(block, Mark::Low) {
            return Flow::Done;
        }
        self.world.wake_kswapd_for(block.request.order);
        if self.try_block(block, Mark::Min) {
            return Flow::Done;
        }
        block.stage = Stage::Compact { last: false };
        Flow::Again
    }

    /// The block, if that leaves the watermark.
    fn try_block(&mut self, block: &BlockRequest, mark: Mark) -> bool {
        let frames = self.world.frames.as_mut().expect("it has frames");
        let order = block.request.order;
        let Some(pfn) = frames.take(block.request, mark) else { return false };
        frames.zone.assign(pfn, order, Use::Held);
        frames.blocks.push((pfn, order));
        self.world.mirror_frames();
        self.recorder.end_block(block.class, true);
        true
    }

    fn give_up(&mut self, block: &BlockRequest) -> Flow {
        self.recorder.end_block(block.class, false);
        Flow::Done
    }

    /// Direct compaction, a slice at a time. `last`: nothing follows it.
    fn compact(&mut self, block: &mut BlockRequest, last: bool) -> Flow {
        let Some(mut run) = block.compaction.take().or_else(|| self.start_compaction(block)) else {
            return self.after_compaction(block, last);
        };
        loop {
            match self.step_compaction(&mut run) {
                Step::Again if self.others_first() => {
                    block.compaction = Some(run);
                    return Flow::Busy;
                }
                Step::Again => {}
                Step::Over(end) => return self.judge_compaction(block, last, end),
            }
        }
    }

    /// `None`: compaction is not built, deferred, or would not help.
    fn start_compaction(&mut self, block: &BlockRequest) -> Option<Compaction> {
        let frames = self.world.frames.as_mut().expect("it has frames");
        let order = block.request.order;
        if !frames.contig.has_compaction() || order == 0 || frames.compaction.defer.skips(order) {
            return None;
        }
        let fit = suitable(&frames.zone, block.request, frames.mark(Mark::Min));
        let (zone, cpu) = (&frames.zone, frames.cpu);
        let runs = fit == Fit::Continue;
        let run = runs.then(|| {
            Compaction::new(zone, &frames.compaction, Some(block.request), block.mode, cpu)
        });
        // The lumpy era counts a stall although there is nothing to do.
        if run.is_none() && zone.era() == Era::Lumpy {
            frames.stalls[0] += 1;
        }
        run
    }

    fn judge_compaction(&mut self, block: &mut BlockRequest, last: bool, end: End) -> Flow {
        self.world.frames.as_mut().expect("it has frames").stalls[0] += 1;
        let got = self.try_block(block, Mark::Min);
        let frames = self.world.frames.as_mut().expect("it has frames");
        let order = block.request.order;
        if got {
            frames.stalls[1] += 1;
            frames.compaction.defer.succeeded(order);
            return Flow::Done;
        }
        let counts = frames.zone.era() == Era::Lumpy || end != End::Partial;
        if block.mode == Mode::SyncLight && counts {
            frames.compaction.defer.failed(order);
        }
        self.after_compaction(block, last)
    }

    fn after_compaction(&mut self, block: &mut BlockRequest, last: bool) -> Flow {
        if last {
            return self.give_up(block);
        }
        block.stage = Stage::Reclaim;
        Flow::Again
    }

    fn reclaim_for(&mut self, t: usize, block: &mut BlockRequest) -> Flow {
        if self.tasks[t].reclaim.is_none() {
            let order = block.request.order;
            self.begin_reclaim(t, Reclaim::block(NodeId(0), NORMAL, order, block.repeat));
        }
        match self.reclaim_on(t) {
            Progress::Held(flow) => flow,
            Progress::Done(reclaimed) => self.after_block_reclaim(block, reclaimed),
        }
    }

    fn after_block_reclaim(&mut self, block: &mut BlockRequest, reclaimed: u64) -> Flow {
        self.world.frames.as_mut().expect("it has frames").zone.drain();
        self.world.mirror_frames();
        if self.try_block(block, Mark::Min) {
            return Flow::Done;
        }
        block.reclaimed += reclaimed;
        block.rounds += 1;
        let contig = self.lru.config().contig;
        let again = reclaimed > 0 && block.is_worth_another(contig);
        block.mode = block.next_mode(contig);
        block.stage = Stage::Compact { last: !again };
        Flow::Again
    }

    /// One slice of a run, with its price.
    pub(crate) fn step_compaction(&mut self, run: &mut Compaction) -> Step {
        let frames = self.world.frames.as_mut().expect("it has frames");
        let before = frames.compaction.tally;
        let journal = &self.world.journal;
        let mut folios = Folios { lru: &mut self.lru, places: &mut frames.places, journal };
        let step = run.step(&mut frames.zone, &mut frames.compaction, &mut folios);
        let spent = price(&self.world.costs, &before, &frames.compaction.tally);
        self.world.spend(spent);
        self.world.mirror_frames();
        step
    }
}

impl BlockRequest {
    /// Requests that are not costly go on as long as reclaim makes progress; others only if they
    /// are repeated, until as much was reclaimed as is asked for (lumpy era) or for some rounds.
    fn is_worth_another(&self, contig: Contig) -> bool {
        let rounds = if self.is_costly() { MODERN_ROUNDS.1 } else { MODERN_ROUNDS.0 };
        match contig {
            Contig::K612 => (self.repeat || !self.is_costly()) && self.rounds < rounds,
            _ => !self.is_costly() || self.repeat && self.reclaimed < 1 << self.request.order,
        }
    }

    /// Compaction tries harder after reclaim; in the modern era only for callers that try again.
    fn next_mode(&self, contig: Contig) -> Mode {
        match contig {
            Contig::K612 if self.is_costly() && !self.repeat => Mode::Async,
            _ => Mode::SyncLight,
        }
    }
}

fn price(costs: &crate::costs::Costs, before: &Tally, after: &Tally) -> Nanos {
    let scanned = after.migrate_scanned - before.migrate_scanned;
    let moved = after.moved - before.moved;
    scanned * costs.lru_lock_ns + moved * (COPY_NS + costs.unmap_ns)
}
