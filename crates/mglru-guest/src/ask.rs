//! Defines the messages between the first process and its workers: a line of JSON each, through
//! pipes.

use mglru_guest::order::{Steps, Until, Worker, Workload};
use mglru_guest::report::Measured;
use serde::{Deserialize, Serialize};

/// Holds the first line a worker is given.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// Holds the workload; the worker carries out some of its tasks.
    pub workload: Workload,
    /// Names the worker's tasks and its group.
    pub me: Worker,
    /// Says after which accesses it stops to be looked at.
    pub steps: Option<Steps>,
    /// Says where the run ends early.
    pub until: Option<Until>,
}

/// Lists the messages from a worker to the first process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Reports that everything is built; the worker is in its group.
    Ready,
    /// Reports that a phase begins.
    Mark { task: u32, phase: u32 },
    /// Stops a task after an access of its process, so that the state can be read.
    Step { task: u32, access: u64 },
    /// Reports that the moment has come at which the run ends, after an access.
    Stop { task: u32, access: u64 },
    /// Reports that a task waits at a barrier.
    Barrier { task: u32, id: u32 },
    /// Asks for an administrator's command.
    Administer { task: u32, command: Administer },
    /// Reports that a task is done.
    TaskDone { task: u32 },
    /// Answers [`Message::Count`]: operations, reads, writes.
    Counted { ops: u64, reads: u64, writes: u64 },
    /// Answers [`Message::Finish`].
    Measured(Measured),
    /// Reports that the worker cannot go on.
    Failed { why: String },
}

/// Lists the messages from the first process to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// Lets tasks begin.
    Go,
    /// Reports that the request of a task is done.
    GoOn { task: u32 },
    /// Says that the moment at which the run was to end has passed.
    PassBy,
    /// Asks how much is done.
    Count,
    /// Asks for the measurements, and for the end.
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
