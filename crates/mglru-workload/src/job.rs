//! The job language: the small programs that were run on a real kernel, as a workload.
//!
//! A job is tasks in groups, and for each of them regions, streams that draw pages from these, and
//! steps: phases (mixes of streams) and commands, of the program about its own memory or of an
//! administrator. A job that names no task has one, in [`GROUP_NAME`]. Drawn bit for bit like the
//! kernel measurements, so that a model and a kernel see the same accesses.
//!
//! Every step, phase or command, begins with a [`Op::Mark`] of its own number, so that counters
//! can be compared step by step as in the measured records; `Layout::phases` holds the steps'
//! names (a phase's own name, a command's verb) and may repeat one. A task that has a name marks
//! its end, too (`end`).
//!
//! A stream may reach past the pages declared for its region (some of the published vectors do):
//! the region that is run is as long as its streams reach.

mod command;
mod layout;
mod line;
mod parse;
mod statements;
mod stream;
mod workload;

use crate::op::{Advice, FileId, GroupId, Knob, Op, RegionId, TaskId};

pub use line::JobError;
pub use statements::STATEMENTS;
pub use stream::{Draw, Pattern, StreamSpec};
pub use workload::JobWorkload;

/// Gives the group of a job that names none.
pub const GROUP: GroupId = 0;
/// Gives the name of that group.
pub const GROUP_NAME: &str = "/job";

/// Holds a parsed job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Seeds every stream and selector.
    pub seed: u64,
    /// Lists knobs of the job's groups, set before it starts.
    pub settings: Vec<(GroupId, Knob, u64)>,
    /// Lists paths of its groups, parents first.
    pub groups: Vec<String>,
    /// Lists its tasks, at least one.
    pub tasks: Vec<JobTask>,
    /// Lists memory and files.
    pub regions: Vec<JobRegion>,
    /// Lists sources of accesses.
    pub streams: Vec<StreamSpec>,
    /// Lists phases and commands, in the order of the text.
    pub steps: Vec<Step>,
    /// Names the task that takes each step.
    pub owners: Vec<TaskId>,
    /// Names the CPU to which the tasks are pinned.
    pub pin: Option<u32>,
    /// Says after how many operations the job flushed the TLB; a machine without a TLB ignores it.
    pub tlb_flush_every: Option<u64>,
}

/// Describes a task of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobTask {
    /// Holds its name; empty in a job that names none.
    pub name: String,
    /// Names its group; `None` is the root.
    pub group: Option<GroupId>,
    /// Numbers its address space, which another task may share.
    pub space: u32,
    /// Says that the run does not wait for it.
    pub background: bool,
}

/// Tells how a region is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Maps a file, shared.
    Mmap,
    /// Reads and writes a file in pages through a descriptor.
    Pread,
    /// Maps private anonymous memory.
    Anon,
    /// Maps shared memory.
    Shmem,
}

/// Describes a region of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRegion {
    /// Holds its name, where it has one.
    pub name: String,
    /// Numbers the address space that it belongs to.
    pub space: u32,
    /// Says how it is accessed.
    pub access: Access,
    /// Holds the path of the file behind it; empty for memory.
    pub path: String,
    /// Counts its pages.
    pub pages: u32,
    /// Holds the advice given for the mapping.
    pub advice: Advice,
    /// Says that it is mapped executable.
    pub exec: bool,
    /// Says that it is mapped from the start.
    pub mapped: bool,
}

/// Describes a step of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Draws operations from a mix of streams.
    Phase {
        /// Names the phase.
        name: String,
        /// Counts the operations.
        ops: u64,
        /// Lists streams with their weights.
        mix: Vec<(usize, u64)>,
    },
    /// Carries out a command.
    Command {
        /// Holds its verb.
        name: String,
        /// Names the operation that the task does for it.
        op: Op,
    },
}

impl Step {
    fn name(&self) -> &str {
        match self {
            Self::Phase { name, .. } | Self::Command { name, .. } => name,
        }
    }

    fn ops(&self) -> u64 {
        match self {
            Self::Phase { ops, .. } => *ops,
            Self::Command { .. } => 1,
        }
    }
}

/// Tells where the accesses to a region of a job go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Names a region of the layout.
    Region(RegionId),
    /// Names a file of the layout, accessed through a descriptor.
    File(FileId),
}

impl Job {
    /// Parses a job's text.
    ///
    /// # Errors
    /// The first line that cannot be understood, with the offending key.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        parse::parse(text)
    }

    /// Returns the number of operations in all phases.
    pub fn ops(&self) -> u64 {
        let phases = self.steps.iter().filter(|step| matches!(step, Step::Phase { .. }));
        phases.map(Step::ops).sum()
    }

    /// Tasks that the text names: each marks its end, so that its last step's counters are its own.
    pub(crate) fn named_tasks(&self) -> impl Iterator<Item = TaskId> + Clone + use<> {
        let named = self.tasks.iter().filter(|task| !task.name.is_empty()).count();
        0..named as TaskId
    }

    /// Returns the pages of a region: as declared, or as far as its streams reach.
    pub fn region_pages(&self, region: usize) -> u32 {
        let streams = self.streams.iter().filter(|stream| stream.region == region);
        let reach = streams.map(|stream| stream.base + stream.pages).max().unwrap_or(0);
        reach.max(self.regions[region].pages)
    }

    /// Returns the knobs set before the start, by the paths of their groups.
    pub fn settings_by_path(&self) -> impl Iterator<Item = (&str, Knob, u64)> {
        let settings = self.settings.iter();
        settings.map(|&(group, knob, value)| (self.groups[group as usize].as_str(), knob, value))
    }
}

#[cfg(test)]
mod tests;
