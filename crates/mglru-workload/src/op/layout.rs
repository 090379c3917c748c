//! Lists what a workload's operations refer to by index: files, regions, groups and tasks.

/// Names a task by its index in [`Layout::tasks`].
pub type TaskId = u32;
/// Names a region by its index in [`Layout::regions`].
pub type RegionId = u32;
/// Names a file by its index in [`Layout::files`].
pub type FileId = u32;
/// Names a group by its index in [`Layout::groups`].
pub type GroupId = u32;

/// Lists everything that a workload's operations refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Lists groups besides the root; a group's limits come from the plan, by name.
    pub groups: Vec<GroupSpec>,
    /// Lists files that exist (or will be created) and where they lie.
    pub files: Vec<FileSpec>,
    /// Names the file among them that stands for the file system's own blocks (inode tables,
    /// directories, maps of blocks): the journal holds its pages back.
    pub blocks: Option<FileId>,
    /// Lists mapped memory.
    pub regions: Vec<RegionSpec>,
    /// Lists tasks, in order of [`TaskId`].
    pub tasks: Vec<TaskSpec>,
    /// Names operation classes (`read`, `update`, …).
    pub classes: Vec<String>,
    /// Names the phases.
    pub phases: Vec<String>,
    /// Numbers the sequence that each phase belongs to: one ends where the next of its sequence
    /// begins. Empty: all phases are one sequence.
    pub sequences: Vec<u32>,
    /// Numbers each task's barrier set: the tasks that wait for each other at barriers, if it waits
    /// for any. Empty: all tasks that the run waits for are one set.
    pub barrier_sets: Vec<Option<u32>>,
}

impl Layout {
    /// Returns the barrier set that a task waits with at barriers.
    pub fn barrier_set(&self, task: TaskId) -> Option<u32> {
        let one = || (!self.tasks[task as usize].background).then_some(0);
        self.barrier_sets.get(task as usize).copied().unwrap_or_else(one)
    }

    /// Returns the sequence that a phase belongs to.
    pub fn sequence(&self, phase: u32) -> u32 {
        self.sequences.get(phase as usize).copied().unwrap_or(0)
    }
}

/// Describes a memory cgroup the workload runs in.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSpec {
    /// Holds the path below the root, such as `/mongo`.
    pub name: String,
    /// Names the parent group; `None` is the root.
    pub parent: Option<GroupId>,
}

/// Describes a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSpec {
    /// Holds the name, for reports.
    pub name: String,
    /// Holds the size in bytes at the start (present on the device, not cached).
    pub bytes: u64,
}

/// Names the memory that a region maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Maps private anonymous memory.
    Anon,
    /// Maps shared memory (tmpfs): swap-backed, shared by all that map it.
    Shmem,
    /// Maps a file, shared, from a page offset.
    File {
        /// Names the file.
        file: FileId,
        /// Numbers the first page of the file that is mapped.
        first_page: u64,
    },
}

/// Names the access advice of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// Gives no advice.
    #[default]
    Normal,
    /// Gives `MADV_RANDOM`: no readahead, no recency.
    Random,
    /// Gives `MADV_SEQUENTIAL`: read ahead, no recency.
    Sequential,
}

/// Names the content of an anonymous page, as far as swap is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Holds only zeros.
    Zero,
    /// Compresses as the swap device's ratio says.
    Compressible,
    /// Holds pages of which `per_mille` (chosen by a hash of the page number) do not compress.
    Mixed {
        /// Counts incompressible pages per thousand.
        per_mille: u16,
    },
}

/// Describes a mapped region of one address space (tasks of the same `mm` share it).
#[derive(Clone, Debug, PartialEq)]
pub struct RegionSpec {
    /// Numbers the address space it belongs to.
    pub mm: u32,
    /// Names the kind of memory that is mapped.
    pub kind: RegionKind,
    /// Counts its pages.
    pub pages: u32,
    /// Names the access advice.
    pub advice: Advice,
    /// Describes the content of its pages.
    pub content: Content,
    /// Says that its pages cannot be reclaimed.
    pub locked: bool,
    /// Says that it is mapped executable.
    pub exec: bool,
    /// Says that it is mapped from the start; otherwise by [`Op::Map`](super::Op::Map).
    pub mapped: bool,
    /// Says that tasks of other address spaces use it too, as they do a file of tmpfs: it stays
    /// when the one it belongs to ends or is killed.
    pub shared: bool,
}

impl RegionSpec {
    /// Creates a plain region: mapped, reclaimable, unadvised, compressible, of one address space.
    pub fn plain(mm: u32, kind: RegionKind, pages: u32) -> Self {
        Self {
            mm,
            kind,
            pages,
            advice: Advice::Normal,
            content: Content::Compressible,
            locked: false,
            exec: false,
            mapped: true,
            shared: false,
        }
    }
}

/// Describes a task: a thread of an address space, in a group.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    /// Numbers the address space.
    pub mm: u32,
    /// Names its group; `None` is the root.
    pub group: Option<GroupId>,
    /// Numbers the node that the task runs on; `None`: any.
    pub node: Option<u32>,
    /// Takes the task out of the count: the run is over when all counted tasks are done.
    pub background: bool,
}
