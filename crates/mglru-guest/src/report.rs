//! Defines the guest's reports, a line of JSON each. Texts of the kernel travel as they are and are
//! read on the host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Marks the name of the processor of a guest whose instructions are counted. The usual name has
/// another word of as many letters there.
pub const PROFILED: &str = "QEMU TCG CPU profile 2.5+";

/// Names the first trace event that is told: the work begins.
pub const BEGIN: &str = "mglru: the work begins";

/// Holds one report, a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The program runs; the kernel's release.
    Hello {
        /// As `uname -r` says.
        kernel: String,
    },
    /// Answers a probe: the text of each path that this kernel has.
    Probed(BTreeMap<String, String>),
    /// Everything is set up; the first operation follows.
    Ready(Box<Snapshot>),
    /// A phase of the workload begins.
    Mark {
        /// Its number.
        phase: u32,
        /// Counters so far.
        at: Box<Snapshot>,
    },
    /// A command of an administrator was carried out.
    Command(Command),
    /// Memory of the groups while the work goes on; also a sign of life.
    Sample {
        /// Since the guest was ready, microseconds.
        at_us: u64,
        /// By group.
        groups: BTreeMap<String, Sample>,
    },
    /// Trace events since the last such report, as lines of ftrace, oldest first.
    Events {
        /// Holds whole lines, each with its line end.
        text: String,
    },
    /// The work stopped to be looked at.
    Step(Box<Step>),
    /// The run ends here: its moment has come. It goes on if the host says a line.
    Stopped {
        /// State at that moment.
        at: Box<Step>,
        /// Where the kernel's code begins; 0: it does not tell.
        text: u64,
    },
    /// The work is over.
    Over {
        /// Counters at the end.
        at: Box<Snapshot>,
        /// How each worker ended, and what it counted.
        workers: Vec<Ended>,
    },
    /// The kernel's functions, where a run is profiled.
    Symbols {
        /// A line each, by address: distance from the one before in hexadecimal digits, name.
        text: String,
    },
    /// The run cannot go on, and why.
    Failed {
        /// One line.
        why: String,
    },
}

/// Holds the counters at some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Since the guest was ready, microseconds.
    pub at_us: u64,
    /// `/proc/vmstat`.
    pub vmstat: String,
    /// The first line of `/proc/stat`.
    #[serde(default)]
    pub stat: String,
    /// `/proc/meminfo`.
    #[serde(default)]
    pub meminfo: String,
    /// `/proc/sys/vm/min_free_kbytes`.
    #[serde(default)]
    pub min_free_kb: u64,
    /// `/sys/kernel/debug/lru_gen`.
    pub lru_gen: String,
    /// `/proc/pressure/memory` and `io`.
    pub pressure: Pressure,
    /// By group.
    pub groups: BTreeMap<String, GroupState>,
    /// Work that the workload's processes did.
    pub done: Done,
    /// Pages of each file that are cached, by file.
    pub resident: Vec<u64>,
}

/// Holds the machine's state between two accesses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The first process has made so many accesses; 0: it was killed in one.
    pub access: u64,
    /// The state between this access and the next.
    pub at: Snapshot,
    /// Cached pages of each file, a bit a page in hexadecimal digits, where asked for.
    pub pages: Vec<String>,
    /// Trace events since the last step, or why there are none; where asked for.
    pub events: String,
}

/// Holds the texts about stalls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// For memory.
    pub memory: String,
    /// For reads and writes.
    pub io: String,
}

/// Holds the texts of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupState {
    /// `memory.stat`
    pub stat: String,
    /// `memory.events`
    pub events: String,
    /// `memory.current`, bytes.
    pub current: u64,
    /// `memory.peak`, bytes, where the kernel tells.
    pub peak: Option<u64>,
    /// `memory.swap.current`, bytes.
    pub swap_current: u64,
    /// `memory.pressure` and `io.pressure`
    pub pressure: Pressure,
}

/// Holds the work that the workload's processes did up to some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Application operations ended.
    pub ops: u64,
    /// Accesses that read.
    pub reads: u64,
    /// Accesses that wrote.
    pub writes: u64,
    /// Faults without I/O.
    pub minflt: u64,
    /// Faults with I/O.
    pub majflt: u64,
    /// Blocks of 512 bytes read.
    pub inblk: u64,
    /// Blocks of 512 bytes written.
    pub oublk: u64,
}

impl Done {
    /// Returns the sum of both, counter by counter.
    pub fn plus(self, other: Self) -> Self {
        Self {
            ops: self.ops + other.ops,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            minflt: self.minflt + other.minflt,
            majflt: self.majflt + other.majflt,
            inblk: self.inblk + other.inblk,
            oublk: self.oublk + other.oublk,
        }
    }
}

/// Records a command of an administrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Text that was written, such as `+ 2 0 3 1 0`.
    pub text: String,
    /// 0, or the negative number of the error.
    pub rc: i32,
    /// How long it took, microseconds.
    pub took_us: u64,
}

/// Holds the memory of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// `memory.current`, bytes.
    pub current: u64,
    /// Anonymous memory, bytes.
    pub anon: u64,
    /// Page cache, bytes.
    pub file: u64,
    /// Dirty page cache, bytes.
    pub dirty: u64,
    /// Page cache under writeback, bytes.
    pub writeback: u64,
    /// Pages scanned so far.
    pub pgscan: u64,
    /// Pages reclaimed so far.
    pub pgsteal: u64,
    /// Swap in use, bytes.
    pub swap: u64,
}

/// Tells how a process ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Its exit status; absent when a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its number in the guest, by which the kernel's messages name it.
    #[serde(default)]
    pub pid: Option<u32>,
    /// It was ended because its time was over.
    pub timed_out: bool,
    /// Measurements of a workload's process; absent when it was killed.
    pub measured: Option<Measured>,
    /// Output of a program.
    pub output: String,
}

/// Holds the measurements of a workload's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Latency per class, as pairs of nanoseconds and counts.
    pub latency: Vec<Vec<(u64, u64)>>,
    /// The workload's own figures.
    pub figures: Vec<(String, f64)>,
    /// Hash of the reference strings of its tasks.
    pub string_hash: u64,
}
