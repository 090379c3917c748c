//! Defines the guest's reports, a line of JSON each. Texts of the kernel travel as they are and are
//! read on the host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Marks the name of the processor of a guest whose instructions are counted. The usual name has
/// another word of as many letters there.
pub const PROFILED: &str = "QEMU TCG CPU profile 2.5+";

/// Names the first trace event that is reported: the work begins.
pub const BEGIN: &str = "mglru: the work begins";

/// Holds one report, a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// Reports that the program runs, and the kernel's release.
    Hello {
        /// As `uname -r` says.
        kernel: String,
    },
    /// Answers a probe: the text of each path that this kernel has.
    Probed(BTreeMap<String, String>),
    /// Reports that everything is set up; the first operation follows.
    Ready(Box<Snapshot>),
    /// Reports that a phase of the workload begins.
    Mark {
        /// Its number.
        phase: u32,
        /// Counters so far.
        at: Box<Snapshot>,
    },
    /// Reports that a command of an administrator was carried out.
    Command(Command),
    /// Reports memory of the groups while the work goes on; also a sign of life.
    Sample {
        /// Since the guest was ready, microseconds.
        at_us: u64,
        /// By group.
        groups: BTreeMap<String, Sample>,
    },
    /// Holds trace events since the last such report, as lines of ftrace, oldest first.
    Events {
        /// Holds whole lines, each with its line end.
        text: String,
    },
    /// Reports the state at a stop of the work.
    Step(Box<Step>),
    /// Reports that the run ends here: its moment has come. It goes on if the host sends a line.
    Stopped {
        /// State at that moment.
        at: Box<Step>,
        /// Where the kernel's code begins; 0: unknown.
        text: u64,
    },
    /// Reports that the work is over.
    Over {
        /// Counters at the end.
        at: Box<Snapshot>,
        /// How each worker ended, and what it counted.
        workers: Vec<Ended>,
    },
    /// Lists the kernel's functions, where a run is profiled.
    Symbols {
        /// A line each, by address: distance from the one before in hexadecimal digits, name.
        text: String,
    },
    /// Reports that the run cannot go on, and why.
    Failed {
        /// One line.
        why: String,
    },
}

/// Holds the counters at some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Holds the time since the guest was ready, µs.
    pub at_us: u64,
    /// Holds `/proc/vmstat`.
    pub vmstat: String,
    /// Holds the first line of `/proc/stat`.
    #[serde(default)]
    pub stat: String,
    /// Holds `/proc/meminfo`.
    #[serde(default)]
    pub meminfo: String,
    /// Holds `/proc/sys/vm/min_free_kbytes`.
    #[serde(default)]
    pub min_free_kb: u64,
    /// Holds `/sys/kernel/debug/lru_gen`.
    pub lru_gen: String,
    /// Holds `/proc/pressure/memory` and `io`.
    pub pressure: Pressure,
    /// Holds statistics by group.
    pub groups: BTreeMap<String, GroupState>,
    /// Counts the work that the workload's processes did.
    pub done: Done,
    /// Counts the cached pages of each file, by file.
    pub resident: Vec<u64>,
}

/// Holds the machine's state between two accesses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Counts accesses of the first process; 0: it was killed in one.
    pub access: u64,
    /// Holds the state between this access and the next.
    pub at: Snapshot,
    /// Holds cached pages of each file, a bit a page in hexadecimal digits, where asked for.
    pub pages: Vec<String>,
    /// Holds trace events since the last step, or why there are none; where asked for.
    pub events: String,
}

/// Holds the texts about stalls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Holds the pressure on memory.
    pub memory: String,
    /// Holds the pressure on reads and writes.
    pub io: String,
}

/// Holds the texts of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupState {
    /// Holds `memory.stat`.
    pub stat: String,
    /// Holds `memory.events`.
    pub events: String,
    /// Holds `memory.current`, bytes.
    pub current: u64,
    /// Holds `memory.peak`, bytes, where the kernel reports it.
    pub peak: Option<u64>,
    /// Holds `memory.swap.current`, bytes.
    pub swap_current: u64,
    /// Holds `memory.pressure` and `io.pressure`.
    pub pressure: Pressure,
}

/// Holds the work that the workload's processes did up to some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Counts application operations ended.
    pub ops: u64,
    /// Counts accesses that read.
    pub reads: u64,
    /// Counts accesses that wrote.
    pub writes: u64,
    /// Counts faults without I/O.
    pub minflt: u64,
    /// Counts faults with I/O.
    pub majflt: u64,
    /// Counts blocks of 512 bytes read.
    pub inblk: u64,
    /// Counts blocks of 512 bytes written.
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
    /// Holds the text that was written, such as `+ 2 0 3 1 0`.
    pub text: String,
    /// Holds 0, or the negative number of the error.
    pub rc: i32,
    /// Holds the time that it took, µs.
    pub took_us: u64,
}

/// Holds the memory of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Holds `memory.current`, bytes.
    pub current: u64,
    /// Counts anonymous memory, bytes.
    pub anon: u64,
    /// Counts page cache, bytes.
    pub file: u64,
    /// Counts dirty page cache, bytes.
    pub dirty: u64,
    /// Counts page cache under writeback, bytes.
    pub writeback: u64,
    /// Counts pages scanned so far.
    pub pgscan: u64,
    /// Counts pages reclaimed so far.
    pub pgsteal: u64,
    /// Counts swap in use, bytes.
    pub swap: u64,
}

/// Tells how a process ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Holds its exit status; absent when a signal ended it.
    pub status: Option<i32>,
    /// Holds the signal that ended it.
    pub signal: Option<i32>,
    /// Holds its number in the guest, by which the kernel's messages name it.
    #[serde(default)]
    pub pid: Option<u32>,
    /// Says that it was ended because its time was over.
    pub timed_out: bool,
    /// Holds the measurements of a workload's process; absent when it was killed.
    pub measured: Option<Measured>,
    /// Holds the output of a program.
    pub output: String,
}

/// Holds the measurements of a workload's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Holds latency per class, as pairs of nanoseconds and counts.
    pub latency: Vec<Vec<(u64, u64)>>,
    /// Holds figures that only this workload has.
    pub figures: Vec<(String, f64)>,
    /// Holds the hash of the reference strings of its tasks.
    pub string_hash: u64,
}
