//! A task: what it does, what it waits for, and the pieces of work it has in hand.
//!
//! A task is data. Its current operation ([`Doing`]) may be held up by a window of pages being
//! read ([`Fill`]) and that by a page being charged ([`Charging`]); each layer is resumed from the
//! top until it is through, so nothing is ever left on a call stack while others run.

use mglru::Reclaim;
use mglru::types::{MemcgId, Nanos, NodeId, Zone};
use mglru_workload::{Control, FileId, Op, RegionId};

use crate::blocks::BlockRequest;
use crate::charge::Charging;
use crate::dirty::FileScan;
use crate::fill::Fill;
use crate::physical::Pfn;
use crate::swap_readahead::Window;

/// Says how one step of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// There is more to do at once.
    Again,
    /// The operation is over.
    Done,
    /// The processor is needed for as long as the clock was advanced; others may run meanwhile.
    Busy,
    /// Nothing to do before this time.
    Sleep(Nanos),
    /// Nothing to do until somebody wakes the task.
    Wait,
}

/// Where a task stands with the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On a CPU, or about to be at the time of its event.
    Running,
    /// Wants a CPU.
    Queued,
    /// Asleep or waiting, off the CPU.
    Blocked,
    /// Ended.
    Ended,
}

/// The operation a task is in, with its progress.
#[derive(Clone, Debug)]
pub enum Doing {
    /// Between operations.
    Nothing,
    /// An access that faulted.
    Fault(Fault),
    /// A buffered read.
    Read(Read),
    /// A buffered write.
    Write(Write),
    /// Waiting for files to be written back.
    Sync(Sync),
    /// Dropping cached pages past the end of a file.
    Truncate {
        /// Which file.
        file: FileId,
        /// First page to go.
        page: u64,
    },
    /// Using the CPU.
    Compute {
        /// Nanoseconds to go.
        left: Nanos,
    },
    /// Asking for a block of contiguous pages.
    Block(Box<BlockRequest>),
    /// At a barrier.
    Barrier,
    /// An administrator's command.
    Control {
        /// Which.
        control: Control,
        /// Fruitless attempts left, where it is repeated.
        retries: u32,
    },
    /// Bringing its group below `memory.high`.
    High {
        /// Pages charged above the limit.
        pages: u64,
        /// Fruitless attempts left.
        retries: u32,
    },
}

/// Describes a page fault under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which region.
    pub region: RegionId,
    /// Which page of it.
    pub page: u32,
    /// A store.
    pub write: bool,
    /// Data had to be read.
    pub major: bool,
}

/// Describes a buffered read under way. Pages are of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which file.
    pub file: FileId,
    /// Next page to copy.
    pub next: u64,
    /// Last page to copy.
    pub last: u64,
    /// The first page whose folio this read has not marked accessed yet.
    pub due: u64,
}

/// Describes a buffered write under way. Positions are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which file.
    pub file: FileId,
    /// Next byte to write.
    pub next: u64,
    /// One past the last byte.
    pub end: u64,
    /// The largest folio to try next, as a power of two of pages.
    pub most: u8,
}

/// A wait for dirty pages to become durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Files to go, the first one under way.
    pub files: std::ops::Range<FileId>,
    /// The first one's pages have been handed to the device.
    pub started: bool,
}

/// Pages that are charged and allocated but hold nothing yet: one, or as many as a large folio has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshPage {
    /// How many they are, as a power of two.
    pub order: u8,
    /// Its node.
    pub node: NodeId,
    /// Its zone.
    pub zone: Zone,
    /// Its frame, on a machine that has frames.
    pub pfn: Pfn,
}

impl FreshPage {
    /// How many pages they are.
    pub fn pages(&self) -> u64 {
        1 << self.order
    }
}

/// Holds the state of a task.
#[derive(Debug)]
pub struct Task {
    /// Address space, as an index into the machine's.
    pub mm: u32,
    /// Group that is charged.
    pub memcg: MemcgId,
    /// Node it runs on.
    pub node: NodeId,
    /// The run does not wait for it.
    pub background: bool,
    /// Those it waits with at barriers.
    pub barrier_set: Option<u32>,
    /// Where it stands with the scheduler.
    pub state: State,
    /// Names the current wait: an event of an earlier one is stale.
    pub epoch: u32,
    /// Operations fetched.
    pub ops: Vec<Op>,
    /// Next of them to begin.
    pub next: usize,
    /// The current operation.
    pub doing: Doing,
    /// The window of pages being brought in for it.
    pub fill: Option<Fill>,
    /// The neighbours in swap being brought in with it.
    pub swap_window: Option<Window>,
    /// The page being charged for it.
    pub charging: Option<Box<Charging>>,
    /// The reclaim it is in.
    pub reclaim: Option<Box<Reclaim>>,
    /// The file it writes back.
    pub scan: Option<FileScan>,
    /// Pages charged in advance.
    pub stock: u64,
    /// Pages dirtied since it last asked whether it must slow down.
    pub dirtied: u32,
    /// The dirty limit holds it.
    pub held_dirty: bool,
    /// Pages charged while its group was above `memory.high`.
    pub over_high: u64,
    /// When the current application operation began.
    pub began: Nanos,
    /// It stalls for memory.
    pub stalled: bool,
    /// The barrier it stands at.
    pub barrier: Option<u32>,
    /// When it came there.
    pub arrived: Nanos,
    /// Since when it has its CPU.
    pub on_cpu_since: Nanos,
}

impl Task {
    /// A task that has not run yet.
    pub fn new(mm: u32, memcg: MemcgId, node: NodeId, background: bool) -> Self {
        Self {
            mm,
            memcg,
            node,
            background,
            barrier_set: None,
            state: State::Blocked,
            epoch: 0,
            ops: Vec::new(),
            next: 0,
            doing: Doing::Nothing,
            fill: None,
            swap_window: None,
            charging: None,
            reclaim: None,
            scan: None,
            stock: 0,
            dirtied: 0,
            held_dirty: false,
            over_high: 0,
            began: 0,
            stalled: false,
            barrier: None,
            arrived: 0,
            on_cpu_since: 0,
        }
    }

    /// Tells whether the task has ended.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }
}
