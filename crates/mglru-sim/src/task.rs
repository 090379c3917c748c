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
    /// Says that more is to do at once.
    Again,
    /// Says that the operation is over.
    Done,
    /// Keeps the processor for as long as the clock was advanced; others may run meanwhile.
    Busy,
    /// Sleeps until this time.
    Sleep(Nanos),
    /// Waits until another task or event wakes this one.
    Wait,
}

/// Names the state of a task in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Runs on a CPU, or is about to at the time of its event.
    Running,
    /// Wants a CPU.
    Queued,
    /// Sleeps or waits, off the CPU.
    Blocked,
    /// Has ended.
    Ended,
}

/// Describes the operation of a task, with its progress.
#[derive(Clone, Debug)]
pub enum Doing {
    /// Waits between operations.
    Nothing,
    /// Serves an access that faulted.
    Fault(Fault),
    /// Serves a buffered read.
    Read(Read),
    /// Serves a buffered write.
    Write(Write),
    /// Waits for files to be written back.
    Sync(Sync),
    /// Drops cached pages past the end of a file.
    Truncate {
        /// Names the file.
        file: FileId,
        /// Numbers the first page to go.
        page: u64,
    },
    /// Uses the CPU.
    Compute {
        /// Counts the nanoseconds to go.
        left: Nanos,
    },
    /// Asks for a block of contiguous pages.
    Block(Box<BlockRequest>),
    /// Waits at a barrier.
    Barrier,
    /// Carries out an administrator's command.
    Control {
        /// Names the command.
        control: Control,
        /// Counts the fruitless attempts left, where it is repeated.
        retries: u32,
    },
    /// Brings its group below `memory.high`.
    High {
        /// Counts the pages charged above the limit.
        pages: u64,
        /// Counts the fruitless attempts left.
        retries: u32,
    },
}

/// Describes a page fault under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Names the region.
    pub region: RegionId,
    /// Holds the page of the region.
    pub page: u32,
    /// Says that the access is a store.
    pub write: bool,
    /// Says that data had to be read.
    pub major: bool,
}

/// Describes a buffered read under way. Pages are of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Names the file.
    pub file: FileId,
    /// Holds the next page to copy.
    pub next: u64,
    /// Holds the last page to copy.
    pub last: u64,
    /// Holds the first page whose folio this read has not marked accessed yet.
    pub due: u64,
}

/// Describes a buffered write under way. Positions are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Names the file.
    pub file: FileId,
    /// Holds the next byte to write.
    pub next: u64,
    /// Holds one past the last byte.
    pub end: u64,
    /// Bounds the order of the next folio, a power of two of pages.
    pub most: u8,
}

/// Waits for dirty pages to become durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Names the files to go, the first one under way.
    pub files: std::ops::Range<FileId>,
    /// Says that the first file's pages have been handed to the device.
    pub started: bool,
}

/// Describes pages that are charged and allocated but hold nothing yet: one, or as many as a large
/// folio has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshPage {
    /// Holds log2 of their number.
    pub order: u8,
    /// Names their node.
    pub node: NodeId,
    /// Names their zone.
    pub zone: Zone,
    /// Holds their first frame, on a machine that has frames.
    pub pfn: Pfn,
}

impl FreshPage {
    /// Counts the pages.
    pub fn pages(&self) -> u64 {
        1 << self.order
    }
}

/// Holds the state of a task.
#[derive(Debug)]
pub struct Task {
    /// Names the address space, as an index into the machine's.
    pub mm: u32,
    /// Names the group that is charged.
    pub memcg: MemcgId,
    /// Names the node that the task runs on.
    pub node: NodeId,
    /// Says that the run does not wait for the task.
    pub background: bool,
    /// Names the set of tasks that it waits with at barriers.
    pub barrier_set: Option<u32>,
    /// Holds the task's state in the scheduler.
    pub state: State,
    /// Names the current wait: an event of an earlier one is stale.
    pub epoch: u32,
    /// Holds the operations fetched.
    pub ops: Vec<Op>,
    /// Holds the index of the next one to begin.
    pub next: usize,
    /// Describes the current operation.
    pub doing: Doing,
    /// Holds the window of pages being brought in for it.
    pub fill: Option<Fill>,
    /// Holds the neighbours in swap being brought in with it.
    pub swap_window: Option<Window>,
    /// Holds the page being charged for it.
    pub charging: Option<Box<Charging>>,
    /// Holds the reclaim call that the task makes.
    pub reclaim: Option<Box<Reclaim>>,
    /// Holds the file that the task writes back.
    pub scan: Option<FileScan>,
    /// Counts pages charged in advance.
    pub stock: u64,
    /// Counts pages dirtied since the task last asked whether it must slow down.
    pub dirtied: u32,
    /// Says that the dirty limit holds the task.
    pub held_dirty: bool,
    /// Counts pages charged while its group was above `memory.high`.
    pub over_high: u64,
    /// Holds the time when the current application operation began.
    pub began: Nanos,
    /// Says that the task stalls for memory.
    pub stalled: bool,
    /// Names the barrier where the task waits.
    pub barrier: Option<u32>,
    /// Holds the time of its arrival there.
    pub arrived: Nanos,
    /// Holds the time since which it has its CPU.
    pub on_cpu_since: Nanos,
}

impl Task {
    /// Makes a task that has not run yet.
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
