//! The statements of the job language: what `mglru help keys job-language` lists.

/// Lists each statement's name, what it takes, and what it says. `[…]` may be left out.
pub const STATEMENTS: &[(&str, &str, &str)] = &[
    (
        "seed",
        "NUMBER",
        "Seed of all that is drawn; `reseed` of the plan puts the run's in its place.",
    ),
    ("group", "PATH", "A group without tasks of its own; those above it are made too."),
    (
        "task",
        "NAME [group=PATH] [shares=TASK] [background=1]",
        "What follows is this task's, up to the next `task`: regions, streams, steps. \
         `group=/` is the root; without it `/job`. `shares`: it is a thread of another \
         task. `background`: the run does not wait for it. A job without `task` has one, \
         in `/job`.",
    ),
    (
        "set",
        "FILE V [group=PATH]",
        "A limit before the start: memory.min, memory.low, memory.high, memory.max, \
         memory.swap.max, memory.swappiness; bytes (64M) or `max`. A plan's `[groups]` go \
         first.",
    ),
    ("pin", "CPU", "Tasks of a booted kernel stay on this processor."),
    ("tlbflush", "K", "A booted kernel flushes its TLB every K operations."),
    (
        "region",
        "[NAME] kind=mmap|pread|anon|shmem [path=FILE] pages=N \
         [advice=normal|random|sequential] [exec=1] [mapped=0]",
        "Memory or a file (regions of one path show the same file). `exec`: mapped \
         executable. `mapped=0`: not mapped before `map`.",
    ),
    (
        "stream",
        "[NAME] region=R gen=uniform|seq|loop|zipf n=N base=B [theta=T] [scatter=C] [start=S] wr=W",
        "Draws pages of a region, by its number or name. `wr`: writes per thousand.",
    ),
    (
        "phase",
        "NAME ops=K mix=S:WEIGHT,…",
        "A step: K accesses drawn from streams, by their numbers or names.",
    ),
    ("sleep", "MS", "A step: the task sleeps."),
    (
        "barrier",
        "NUMBER",
        "A step: the task waits until every task that has not ended stands at a barrier \
         of this number.",
    ),
    ("map", "REGION", "A step: the region is mapped."),
    ("unmap", "REGION", "A step: the region is unmapped; its memory is given back."),
    ("mlock", "REGION", "A step: the region is brought in and locked in memory."),
    ("munlock", "REGION", "A step: takes that back."),
    (
        "madvise",
        "REGION cold|pageout|populate-read|populate-write|dontneed [base=B] [n=N]",
        "A step: advice about mapped pages, all or some. `dontneed` is for memory.",
    ),
    (
        "fadvise",
        "REGION dontneed|noreuse|normal [base=B] [n=N]",
        "A step: advice about the file behind a region, all of it or some pages. \
         `noreuse` holds for the task's mappings of it.",
    ),
    ("fsync", "REGION", "A step: the file behind the region is written and waited for."),
    ("sync", "", "A step: everything dirty is written and waited for."),
    ("drop", "", "A step: clean page cache of the machine is dropped."),
    (
        "reclaim",
        "BYTES [swappiness=N|max] [group=PATH]",
        "A step: `memory.reclaim` of the task's group or another; `max`: anonymous memory \
         alone (from 7.1; 6.12 refuses it).",
    ),
    ("cgset", "FILE V [group=PATH]", "A step: as `set`, while the job runs."),
    ("sysset", "vm.swappiness V", "A step: the machine's swappiness."),
    ("age", "CAN_SWAP FORCE [group=PATH]", "A step: lru_gen's debug command `+`, 0 or 1 each."),
    (
        "evict",
        "K SWAPPINESS [NR] [group=PATH]",
        "A step: lru_gen's debug command `-` on the generation K after the oldest, NR \
         pages at most.",
    ),
    ("rmdir", "PATH", "A step: the group is removed. Its tasks have ended."),
];
