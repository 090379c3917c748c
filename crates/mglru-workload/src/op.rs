//! The vocabulary between a workload and whatever runs it: one enum of operations and the
//! layout (files, regions, groups, tasks) they refer to. Nothing here knows how memory is managed.

mod layout;

pub use self::layout::{
    Advice, Content, FileId, FileSpec, GroupId, GroupSpec, Layout, RegionId, RegionKind,
    RegionSpec, TaskId, TaskSpec,
};

/// Names one operation of a task. Offsets and lengths are bytes, pages are 4 KiB, times are
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Loads from (or stores to) one page of a mapped region.
    Touch {
        /// Names the region.
        region: RegionId,
        /// Numbers the page inside the region.
        page: u32,
        /// Says that it is a store rather than a load.
        write: bool,
    },
    /// Reads through a file descriptor, buffered.
    Read {
        /// Names the file.
        file: FileId,
        /// Holds the byte offset.
        off: u64,
        /// Holds the length in bytes.
        len: u32,
    },
    /// Writes through a file descriptor, buffered; extends the file when it ends past its size.
    Write {
        /// Names the file.
        file: FileId,
        /// Holds the byte offset.
        off: u64,
        /// Holds the length in bytes.
        len: u32,
    },
    /// Writes back a file's dirty pages and waits until they are durable.
    Fsync {
        /// Names the file.
        file: FileId,
    },
    /// Cuts (or extends) a file to `len` bytes; cached pages past the end are dropped.
    Truncate {
        /// Names the file.
        file: FileId,
        /// Holds the new length in bytes.
        len: u64,
    },
    /// Maps a region of the layout that was declared unmapped (or was unmapped since).
    Map {
        /// Names the region.
        region: RegionId,
    },
    /// Unmaps a region; anonymous memory in it is freed, with its swap slots.
    Unmap {
        /// Names the region.
        region: RegionId,
    },
    /// Frees `nr` pages of an anonymous region but keeps it mapped (`MADV_DONTNEED`).
    Free {
        /// Names the region.
        region: RegionId,
        /// Numbers the first page.
        page: u32,
        /// Counts the pages.
        nr: u32,
    },
    /// Locks a mapped region in memory (`mlock`): all of it is brought in, and stays.
    Lock {
        /// Names the region.
        region: RegionId,
    },
    /// Unlocks it (`munlock`).
    Unlock {
        /// Names the region.
        region: RegionId,
    },
    /// Advises what is to become of mapped pages (`madvise`).
    Advise {
        /// Names the region.
        region: RegionId,
        /// Numbers the first page.
        page: u32,
        /// Counts the pages.
        nr: u32,
        /// Names the advice.
        advice: MemoryAdvice,
    },
    /// Advises what is to become of a file's pages (`posix_fadvise`).
    AdviseFile {
        /// Names the file.
        file: FileId,
        /// Numbers the first page.
        page: u64,
        /// Counts the pages.
        nr: u64,
        /// Names the advice.
        advice: FileAdvice,
    },
    /// Uses the CPU for a while.
    Compute {
        /// Says for how long.
        ns: u64,
    },
    /// Sleeps for a while.
    Think {
        /// Says for how long.
        ns: u64,
    },
    /// Ends one application operation; its latency runs from the task's previous `End`.
    End {
        /// Names the class of the operation by its index into [`Layout::classes`].
        class: u8,
    },
    /// Waits until every counted task that has not finished stands at a barrier of this number.
    /// Background tasks must not use it.
    Barrier {
        /// Numbers the barrier.
        id: u32,
    },
    /// Begins a phase: counters are snapshotted under the name `Layout::phases[phase]`.
    Mark {
        /// Names the phase by its index into [`Layout::phases`].
        phase: u32,
    },
    /// Carries out an administrator's command, outside the groups.
    Control(Control),
    /// Changes the kernel's memory, or asks for contiguous memory.
    Kernel(KernelOp),
    /// Ends the task.
    Done,
}

/// Names what `madvise` says of mapped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAdvice {
    /// Forgets their accesses (`MADV_COLD`).
    Cold,
    /// Reclaims them now (`MADV_PAGEOUT`).
    PageOut,
    /// Brings them in as loads do (`MADV_POPULATE_READ`).
    PopulateRead,
    /// Brings them in as stores do (`MADV_POPULATE_WRITE`).
    PopulateWrite,
}

/// Names what `posix_fadvise` says of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileAdvice {
    /// Begins to write dirty ones, and drops clean ones that nobody maps (`POSIX_FADV_DONTNEED`).
    DontNeed,
    /// Says that accesses through mappings predict no reuse (`POSIX_FADV_NOREUSE`).
    NoReuse,
    /// Takes that back (`POSIX_FADV_NORMAL`).
    Normal,
}

/// Uses kernel memory or blocks of contiguous pages. Needs a machine with physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelOp {
    /// Takes pages that cannot be moved (page tables, slab), for the task.
    Take {
        /// Counts the pages.
        pages: u32,
    },
    /// Gives the pages back that the task took last.
    Give {
        /// Counts the pages.
        pages: u32,
    },
    /// Makes inodes with their directory entries: slab objects that reclaim can free.
    Inodes {
        /// Counts the inodes.
        nr: u32,
    },
    /// Frees all inodes that nobody uses.
    DropSlab,
    /// Tries to get a block of movable pages, and keeps it.
    TryBlock {
        /// Holds log2 of its pages.
        order: u8,
        /// Says that it is tried again as long as reclaim makes progress, as hugetlb does.
        repeat: bool,
        /// Names the class of the attempt by its index into [`Layout::classes`].
        class: u8,
    },
    /// Frees all blocks.
    FreeBlocks,
    /// Sets `vm.min_free_kbytes`.
    MinFree {
        /// Holds the new value, KiB.
        kib: u64,
    },
}

/// Names commands that an administrator gives between phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Writes back everything and waits.
    Sync,
    /// Drops clean page cache of the whole machine.
    DropCaches,
    /// Writes `memory.reclaim` of a group (`None`: the root): bytes, optional swappiness.
    Reclaim {
        /// Names the target group, or the root.
        group: Option<GroupId>,
        /// Counts the bytes requested.
        bytes: u64,
        /// Overrides the swappiness; [`ANON_ONLY`]: anonymous memory alone.
        swappiness: Option<u8>,
    },
    /// Removes a group (`rmdir`). Its tasks have ended; what it holds stays until it is reclaimed,
    /// or becomes its parent's.
    Remove {
        /// Names the group.
        group: GroupId,
    },
    /// Sets a limit or knob of a group.
    Set {
        /// Names the target group.
        group: GroupId,
        /// Names the knob.
        knob: Knob,
        /// Holds the new value, bytes for limits (`u64::MAX` = max).
        value: u64,
    },
    /// Ages the group once, by the lru_gen debug command `+`.
    Age {
        /// Names the target group.
        group: GroupId,
        /// Says that anonymous memory may be aged too.
        can_swap: bool,
        /// Has all page tables walked, whatever the filters say.
        force: bool,
    },
    /// Evicts the generation `min_seq + offset`, by the lru_gen debug command `-`.
    Evict {
        /// Names the target group.
        group: GroupId,
        /// Holds the distance from the oldest generation.
        offset: u32,
        /// Holds the swappiness of this eviction.
        swappiness: u8,
        /// Bounds the pages to evict.
        nr: u64,
    },
}

/// Gives the swappiness that `memory.reclaim` calls `max`.
pub const ANON_ONLY: u8 = 201;

/// Names the knobs of a group as cgroup v2 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Knob {
    /// Names `memory.min`.
    MemoryMin,
    /// Names `memory.low`.
    MemoryLow,
    /// Names `memory.high`.
    MemoryHigh,
    /// Names `memory.max`.
    MemoryMax,
    /// Names `memory.swap.max`.
    MemorySwapMax,
    /// Names `memory.swappiness` / `vm.swappiness`.
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
