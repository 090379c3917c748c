//! The vocabulary between a workload and whatever runs it: one enum of operations and the
//! layout (files, regions, groups, tasks) they refer to. Nothing here knows how memory is managed.

mod layout;

pub use self::layout::{
    Advice, Content, FileId, FileSpec, GroupId, GroupSpec, Layout, RegionId, RegionKind,
    RegionSpec, TaskId, TaskSpec,
};

/// One thing a task does. Offsets and lengths are bytes, pages are 4 KiB, times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Load from (or store to) one page of a mapped region.
    Touch {
        /// Which region.
        region: RegionId,
        /// Page inside the region.
        page: u32,
        /// A store rather than a load.
        write: bool,
    },
    /// Buffered read through a file descriptor.
    Read {
        /// Which file.
        file: FileId,
        /// Byte offset.
        off: u64,
        /// Length in bytes.
        len: u32,
    },
    /// Buffered write through a file descriptor; extends the file when it ends past its size.
    Write {
        /// Which file.
        file: FileId,
        /// Byte offset.
        off: u64,
        /// Length in bytes.
        len: u32,
    },
    /// Write back a file's dirty pages and wait until they are durable.
    Fsync {
        /// Which file.
        file: FileId,
    },
    /// Cut (or extend) a file to `len` bytes; cached pages past the end are dropped.
    Truncate {
        /// Which file.
        file: FileId,
        /// New length in bytes.
        len: u64,
    },
    /// Map a region of the layout that was declared unmapped (or was unmapped since).
    Map {
        /// Which region.
        region: RegionId,
    },
    /// Unmap a region; anonymous memory in it is freed, with its swap slots.
    Unmap {
        /// Which region.
        region: RegionId,
    },
    /// Free `nr` pages of an anonymous region but keep it mapped (`MADV_DONTNEED`).
    Free {
        /// Which region.
        region: RegionId,
        /// First page.
        page: u32,
        /// Number of pages.
        nr: u32,
    },
    /// Lock a mapped region in memory (`mlock`): all of it is brought in, and stays.
    Lock {
        /// Which region.
        region: RegionId,
    },
    /// Take that back (`munlock`).
    Unlock {
        /// Which region.
        region: RegionId,
    },
    /// Say what is to become of mapped pages (`madvise`).
    Advise {
        /// Which region.
        region: RegionId,
        /// First page.
        page: u32,
        /// Number of pages.
        nr: u32,
        /// What is said.
        advice: MemoryAdvice,
    },
    /// Say what is to become of a file's pages (`posix_fadvise`).
    AdviseFile {
        /// Which file.
        file: FileId,
        /// First page.
        page: u64,
        /// Number of pages.
        nr: u64,
        /// What is said.
        advice: FileAdvice,
    },
    /// Use the CPU for a while.
    Compute {
        /// How long.
        ns: u64,
    },
    /// Sleep for a while.
    Think {
        /// How long.
        ns: u64,
    },
    /// One application operation ended; its latency runs from the task's previous `End`.
    End {
        /// Class of the operation, an index into [`Layout::classes`].
        class: u8,
    },
    /// Wait until every counted task that has not finished stands at a barrier of this number.
    /// Background tasks must not use it.
    Barrier {
        /// Number of the barrier.
        id: u32,
    },
    /// A phase begins: counters are snapshotted under the name `Layout::phases[phase]`.
    Mark {
        /// Index into [`Layout::phases`].
        phase: u32,
    },
    /// An administrator's command, carried out outside the groups.
    Control(Control),
    /// Something that happens to the kernel's own memory, or needs contiguous memory.
    Kernel(KernelOp),
    /// The task has ended.
    Done,
}

/// Names what `madvise` says of mapped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAdvice {
    /// `MADV_COLD`: their accesses are forgotten.
    Cold,
    /// `MADV_PAGEOUT`: they are reclaimed now.
    PageOut,
    /// `MADV_POPULATE_READ`: they are brought in as loads do.
    PopulateRead,
    /// `MADV_POPULATE_WRITE`: they are brought in as stores do.
    PopulateWrite,
}

/// Names what `posix_fadvise` says of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileAdvice {
    /// `POSIX_FADV_DONTNEED`: writing of dirty ones begins, clean ones are dropped that nobody
    /// maps.
    DontNeed,
    /// `POSIX_FADV_NOREUSE`: accesses through mappings say nothing about reuse.
    NoReuse,
    /// `POSIX_FADV_NORMAL`: takes that back.
    Normal,
}

/// Uses kernel memory or blocks of contiguous pages. Needs a machine with physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelOp {
    /// Takes pages that cannot be moved (page tables, slab), for the task.
    Take {
        /// How many.
        pages: u32,
    },
    /// Gives the pages back that the task took last.
    Give {
        /// How many.
        pages: u32,
    },
    /// Makes inodes with their directory entries: slab objects that reclaim can free.
    Inodes {
        /// How many.
        nr: u32,
    },
    /// Frees all inodes that nobody uses.
    DropSlab,
    /// Tries to get a block of movable pages, and keeps it.
    TryBlock {
        /// log2 of its pages.
        order: u8,
        /// Tried again as long as reclaim makes progress, as hugetlb does.
        repeat: bool,
        /// Class of the attempt, an index into [`Layout::classes`].
        class: u8,
    },
    /// Frees all blocks.
    FreeBlocks,
    /// Sets `vm.min_free_kbytes`.
    MinFree {
        /// KiB.
        kib: u64,
    },
}

/// Commands an administrator gives between phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Write back everything and wait.
    Sync,
    /// Drop clean page cache of the whole machine.
    DropCaches,
    /// `memory.reclaim` of a group (`None`: the root): bytes, optional swappiness.
    Reclaim {
        /// Target group, or the root.
        group: Option<GroupId>,
        /// Bytes requested.
        bytes: u64,
        /// Swappiness override; [`ANON_ONLY`]: anonymous memory alone.
        swappiness: Option<u8>,
    },
    /// Remove a group (`rmdir`). Its tasks have ended; what it holds stays until it is reclaimed,
    /// or becomes its parent's.
    Remove {
        /// Which group.
        group: GroupId,
    },
    /// Set a limit or knob of a group.
    Set {
        /// Target group.
        group: GroupId,
        /// Which knob.
        knob: Knob,
        /// New value, bytes for limits (`u64::MAX` = max).
        value: u64,
    },
    /// lru_gen debug command: age the group once (`+`).
    Age {
        /// Target group.
        group: GroupId,
        /// Anonymous memory may be aged too.
        can_swap: bool,
        /// Walk all page tables, whatever the filters say.
        force: bool,
    },
    /// lru_gen debug command: evict the generation `min_seq + offset` (`-`).
    Evict {
        /// Target group.
        group: GroupId,
        /// Distance from the oldest generation.
        offset: u32,
        /// Swappiness of this eviction.
        swappiness: u8,
        /// Pages to evict at most.
        nr: u64,
    },
}

/// Swappiness that `memory.reclaim` calls `max`.
pub const ANON_ONLY: u8 = 201;

/// Names the knobs of a group as cgroup v2 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Knob {
    /// `memory.min`
    MemoryMin,
    /// `memory.low`
    MemoryLow,
    /// `memory.high`
    MemoryHigh,
    /// `memory.max`
    MemoryMax,
    /// `memory.swap.max`
    MemorySwapMax,
    /// `memory.swappiness` / `vm.swappiness`
    Swappiness,
}

/// Supplies operations. Every task draws from streams of its own, so that the reference string
/// of a task does not depend on how tasks interleave.
pub trait Workload: Send {
    /// Returns the layout that the operations refer to.
    fn layout(&self) -> Layout;

    /// Returns the task's next operation. After [`Op::Done`] it is not asked again.
    fn next(&mut self, task: TaskId) -> Op;

    /// Appends one or more next operations of a task. Only workloads whose tasks share no state
    /// may append more than one.
    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        out.push(self.next(task));
    }

    /// Returns the hash of the reference strings drawn so far: equal for all variants of a run.
    fn string_hash(&self) -> u64;

    /// Returns figures the workload itself measures (name, value), such as its own cache's misses.
    fn figures(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Returns the number of operations in all, where known: for progress display only.
    fn total_ops(&self) -> Option<u64> {
        None
    }

    /// Returns the upper ends of the latency classes a report counts, ns, rising, if any.
    fn latency_edges_ns(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// Operations that [`fill_batch`] appends at most.
const BATCH: usize = 64;

/// Appends many operations at once: [`Workload::fill`] of a workload whose tasks share no state.
pub fn fill_batch<W: Workload>(workload: &mut W, task: TaskId, out: &mut Vec<Op>) {
    for _ in 0..BATCH {
        let op = workload.next(task);
        out.push(op);
        if op == Op::Done {
            return;
        }
    }
}
