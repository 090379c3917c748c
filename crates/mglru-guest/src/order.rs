//! Tells the guest its work: a description of the machine's set-up and of the work, packed into the
//! initramfs as `/order.json`.

use serde::{Deserialize, Serialize};

/// Names the file of the order in the initramfs.
pub const ORDER_FILE: &str = "/order.json";
/// Names a probe's list of the kinds of mapped devices.
pub const TARGETS: &str = "dmsetup targets";
/// Names the directory of the workload's files in the guest: [`file_path`].
pub const MOUNT: &str = "/mnt";

/// Returns the path of a workload's file in the guest.
pub fn file_path(file: usize) -> String {
    format!("{MOUNT}/f{file}")
}

/// Holds everything that the guest gets from the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Lists modules to load, in order, as paths in the initramfs, each with its parameters behind
    /// it.
    pub modules: Vec<String>,
    /// Describes the file system that files lie on.
    pub disk: Option<Disk>,
    /// Sets the size of compressed swap in memory, bytes; 0: no such swap.
    pub zram_bytes: u64,
    /// Describes a disk of memory that serves as swap.
    #[serde(default)]
    pub swap_disk: Option<MemoryDisk>,
    /// Lists values to write, in order, after disk and swap are there.
    pub settings: Vec<Setting>,
    /// Says that writeback is limited for the machine alone: groups have no dirty limits.
    #[serde(default)]
    pub shared_writeback: bool,
    /// Lists groups to make, parents first.
    pub groups: Vec<Group>,
    /// Lists files of the workload, made before it starts and not cached then; [`file_path`] by
    /// number.
    pub files: Vec<u64>,
    /// Sets the time between samples, ms.
    pub sample_ms: u64,
    /// Says after which accesses the first process stops to be looked at.
    #[serde(default)]
    pub steps: Option<Steps>,
    /// Says where the run ends early.
    #[serde(default)]
    pub until: Option<Until>,
    /// Sends trace events to the host while the work goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace_events: bool,
    /// Holds commands of an administrator before the work, for a shell.
    pub prepare: String,
    /// Describes the work to run.
    pub work: Work,
}

/// Lists accesses of the first process after which the work stops and the guest reports its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// Sets the access that precedes the first stop.
    pub from: u64,
    /// Sets the access after which no stop follows.
    pub to: u64,
    /// Stops are so many accesses apart.
    pub every: u64,
    /// Sets the number of stops after which the distance doubles; 0: never.
    pub doubled_after: u64,
    /// Reports pages of files one by one, and trace events from the first stop on.
    pub closely: bool,
    /// Reports pages of files one by one at every stop.
    #[serde(default)]
    pub pages: bool,
}

impl Steps {
    /// Returns the stop after one that is the `taken`-th.
    pub fn after(&self, stop: u64, taken: u64) -> Option<u64> {
        let doubled = taken.checked_div(self.doubled_after).unwrap_or(0).min(40);
        let next = stop + (self.every.max(1) << doubled);
        (next <= self.to).then_some(next)
    }

    /// Returns all stops in order, as accesses.
    pub fn stops(self) -> impl Iterator<Item = u64> {
        let mut taken = 0;
        std::iter::successors(Some(self.from.max(1)), move |stop| {
            taken += 1;
            self.after(*stop, taken)
        })
    }
}

/// Names the moment at which a run ends before its work is over, and everything is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// Ends after so many accesses of the first process.
    Accesses(u64),
    /// Ends so long after the work began, µs.
    TimeUs(u64),
    /// Ends after the access in which the kernel first traces an event of this name.
    Event(String),
}

/// Describes a block device with a file system on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Names the device, such as `/dev/vda`.
    pub device: String,
    /// Bounds readahead, KiB.
    pub read_ahead_kb: u32,
    /// Holds the time for which dm-delay holds reads and writes back, ms.
    pub delay_ms: Option<(u64, u64)>,
    /// Says how the guest makes the disk; none: the host gives it, with its file system.
    #[serde(default)]
    pub made: Option<MemoryDisk>,
    /// Names its file system.
    #[serde(default)]
    pub file_system: FileSystem,
}

/// Names the file system that files lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// Has the guest make and mount ext4.
    #[default]
    Ext4,
    /// Has the guest make and mount XFS.
    Xfs,
}

impl FileSystem {
    /// Returns the name by which the kernel mounts it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Returns the name of the program that makes it.
    pub fn maker(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
        }
    }
}

/// Describes a disk in the guest's memory, so that no device of the host decides when it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDisk {
    /// Sets its size, whole MiB.
    pub bytes: u64,
    /// Says when it answers; none: at once, on the processor that asks.
    pub queue: Option<Queue>,
}

/// Describes a queue of requests that are served at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Sets the time until a request is answered, ns.
    pub latency_ns: u64,
    /// Counts the requests served at the same time.
    pub depth: u32,
}

/// Holds a value for a file of procfs, sysfs, debugfs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Names the file.
    pub path: String,
    /// Holds the value to write.
    pub value: String,
    /// Says that a kernel without the file cannot do what is asked.
    pub needed: bool,
}

/// Describes a memory cgroup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Holds the path below the root, such as `/job`.
    pub path: String,
    /// Lists files of the group with their values, such as `memory.max`.
    pub limits: Vec<(String, String)>,
}

/// Chooses the work once everything is set up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Does nothing: the machine boots and stops.
    #[default]
    Nothing,
    /// Searches the kernel for texts and folders, with whatever modules can be loaded.
    Probe(Vec<String>),
    /// Runs a workload, operation by operation.
    Workload(Workload),
    /// Runs a program of the host.
    Program(Program),
}

/// Describes a workload, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Holds a plan's `[workload]`, files of traces as paths in the initramfs.
    pub spec: serde_json::Value,
    /// Holds the seed of the run.
    pub seed: u64,
    /// Holds the scale of the workload.
    pub scale: f64,
    /// Names the processor to which every task is pinned.
    pub pin: Option<usize>,
    /// Sets after how many operations the TLB is flushed; 0: never.
    pub tlb_flush_every: u64,
    /// Names the barrier set of each task: tasks of one set wait for each other at barriers.
    #[serde(rename = "crews")]
    pub barrier_sets: Vec<Option<u32>>,
    /// Lists the processes in which the tasks run.
    pub workers: Vec<Worker>,
}

/// Describes a process: an address space in a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Names its group; empty: the root.
    pub group: String,
    /// Lists its tasks.
    pub tasks: Vec<Task>,
}

/// Describes a thread of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Numbers the task in the workload.
    pub id: u32,
    /// Says that the run does not wait for it.
    pub background: bool,
}

/// Describes a program that runs in a group until it ends by itself or its time is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Holds a text for the shell.
    pub script: String,
    /// Names its group; empty: the root.
    pub group: String,
    /// Sets the time after which it is killed, ms.
    pub at_most_ms: u64,
}
