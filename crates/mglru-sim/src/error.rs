//! Names the ways in which a run can fail.

use mglru_workload::RegionId;

use crate::spec::SpecError;

/// Says why a run cannot begin, or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The machine cannot be simulated.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The workload's layout contradicts itself.
    #[error("layout: {0}")]
    Layout(String),
    /// The plan limits a group that the workload does not have.
    #[error("groups.{0}: the workload has no such group")]
    UnknownGroup(String),
    /// The machine cannot do this.
    #[error("the machine does not support {0}")]
    Unsupported(&'static str),
    /// A task touched a page that is not mapped.
    #[error("task {task}: page {page} of region {region} is not mapped")]
    NotMapped {
        /// Names the task.
        task: u32,
        /// Names the region.
        region: RegionId,
        /// Holds the page of it.
        page: u32,
    },
    /// A task touched a page of a mapping past the end of its file.
    #[error("task {task}: page {page} of region {region} lies past the end of its file")]
    BeyondFile {
        /// Names the task.
        task: u32,
        /// Names the region.
        region: RegionId,
        /// Holds the page of it.
        page: u32,
    },
    /// A task asked for what no kernel does.
    #[error("task {task}: {what} is refused")]
    Refused {
        /// Names the task.
        task: u32,
        /// Names the thing that it asked for.
        what: &'static str,
    },
    /// A task removed a group that is in use, or gone.
    #[error("task {task}: rmdir {name}: the group has tasks or groups, or is removed already")]
    GroupInUse {
        /// Names the task.
        task: u32,
        /// Holds the path of the group.
        name: String,
    },
    /// A policy from outside failed.
    #[error("custom policy, {0}")]
    Policy(String),
    /// The sink of its events failed.
    #[error("{0}")]
    Sink(String),
    /// Nothing can happen any more although tasks have not ended.
    #[error("{blocked} tasks wait for each other: {waits}")]
    Deadlock {
        /// Counts the tasks that wait.
        blocked: usize,
        /// Names the event that the first of them waits for.
        waits: String,
    },
}
