//! Defines the messages between the first process and its workers: a line of JSON each, through
//! pipes.

use mglru_guest::order::{Steps, Until, Worker, Workload};
use mglru_guest::report::Measured;
use serde::{Deserialize, Serialize};

/// Holds the first line a worker is given.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// The workload; the worker carries out some of its tasks.
    pub workload: Workload,
    /// The worker's tasks and its group.
    pub me: Worker,
    /// Says after which accesses it stops to be looked at.
    pub steps: Option<Steps>,
    /// Where the run ends early.
    pub until: Option<Until>,
}

/// Lists the messages from a worker to the first process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Everything is built; the worker is in its group.
    Ready,
    /// A phase begins.
    Mark { task: u32, phase: u32 },
    /// A task stops after an access of its process to be looked at.
    Step { task: u32, access: u64 },
    /// The moment has come at which the run ends, after an access.
    Stop { task: u32, access: u64 },
    /// A task stands at a barrier.
    Barrier { task: u32, id: u32 },
    /// An administrator's command.
    Administer { task: u32, command: Administer },
    /// A task is done.
    TaskDone { task: u32 },
    /// The answer to [`Message::Count`]: operations, reads, writes.
    Counted { ops: u64, reads: u64, writes: u64 },
    /// The answer to [`Message::Finish`].
    Measured(Measured),
    /// The worker cannot go on.
    Failed { why: String },
}

/// Lists the messages from the first process to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// Tasks may begin.
    Go,
    /// The request of a task is done.
    GoOn { task: u32 },
    /// The moment at which the run was to end lies behind.
    PassBy,
    /// Say how much is done.
    Count,
    /// Say what was measured, and end.
    Finish,
}

/// Describes a command of an administrator, by the names of the guest.
#[derive(Debug, Serialize, Deserialize)]
pub enum Administer {
    Sync,
    DropCaches,
    Reclaim { group: String, bytes: u64, swappiness: Option<String> },
    Remove { group: String },
    Write { path: String, value: String },
    Age { group: String, can_swap: bool, force: bool },
    Evict { group: String, offset: u32, swappiness: u8, nr: u64 },
}
