//! Why the model is off where it is, as data beside the code: each cause was found by an
//! experiment that is named.

use mglru_lab::backend::kernel::version;

/// Explains why some jobs are off.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Names the versions it was found on: those that begin so.
    pub kernel: &'static str,
    /// Names the jobs it is about: those whose name begins so.
    pub jobs: &'static [&'static str],
    /// Limits the cause to runs with the multi-gen LRU on, or off; `None`: both.
    pub mglru: Option<bool>,
    /// States the cause.
    pub says: &'static str,
}

/// Lists causes; the first that fits counts.
pub const CAUSES: &[Cause] = &[
    Cause {
        kernel: "6.12",
        jobs: &[
            "4scan.pread",
            "6mix.mmap_a12288_f24576_sw150",
            "6mix.mmap_a12288_f24576_sw200",
            "6mix.pread",
        ],
        mglru: Some(false),
        says: "when the kernel sums up its statistics within the job is not recorded, and the \
               classic LRU decides by the last sum. With `stat_flush_ms` 1800, 2000 and 2200 the \
               model gives 5245, 2698 and 5245 refaults for `4scan.pread_uni_alone` seed 1, 4785, \
               6001 and 1664 for seed 2 (kernel 139 and 6497), and 20.0, 24.1 and 20.7 thousand \
               anon refaults for `6mix.mmap … sw200` (kernel 18.8 thousand)",
    },
    Cause {
        kernel: "6.12",
        jobs: &["6mix.mmap_a12288_f24576_sw60", "6mix.mmap_a12288_f24576_sw1_"],
        mglru: Some(false),
        says: "unexplained: swappiness weighs less in the kernel than in the model (1 swaps more, \
               60 less), whatever the period of the statistics (1800 to 2200 ms tried)",
    },
    Cause {
        kernel: "6.12",
        jobs: &["3loop.mmap_n16384"],
        mglru: Some(true),
        says: "the loop is 70 pages longer than what fits: with three pages more in the group the \
               error is −16 % instead of −27 %, and the kernel's own repetitions differ by 5 %",
    },
    Cause {
        kernel: "6.12",
        jobs: &["4scan.mmap_uni"],
        mglru: None,
        says: "the kernel itself has two outcomes (seeds 1 and 2 differ by a third, which no \
               difference of two uniform sequences explains); the model has the larger one with \
               the multi-gen LRU on. What tips the kernel is unexplained",
    },
    Cause {
        kernel: "6.12",
        jobs: &["10dbg.memory_reclaim_sw"],
        mglru: Some(true),
        says: "by the tables of generations: in the request with swappiness 200 both find 6144 \
               anonymous pages young, age, and come to the last 2048. The kernel's walk has \
               moved those to the same generation as the others, though no look-around had \
               come to their page tables; the model's Bloom filter passes these over, and they \
               end one generation younger (14 % of the pages elsewhere, same windows)",
    },
    Cause {
        kernel: "7",
        jobs: &["11ra"],
        mglru: Some(true),
        says: "the model drops more shadow nodes, so that fewer refaults are counted: on 7.2 768 \
               in place of 512 (`rw`), on 7.1 and 7.2 640 where the kernel drops none (`seqhot` \
               on XFS). Reads are within 2 %. Why is unexplained",
    },
    Cause {
        kernel: "",
        jobs: &["12global"],
        mglru: None,
        says: "no group has a limit, and the kernel's own memory takes its share of the 512 MiB: \
               93,197 pages are left for the file at the end (`ref_cap`). The model's machine has \
               no kernel image, page array or module in its memory, so that more fits: with 380 \
               MiB reads are 0.1 % and refaults 0.4 % off, in place of −5.3 and −31.5 %; at 4 GiB \
               reads are 0.9 % off",
    },
    Cause {
        kernel: "7",
        jobs: &["3loop.mmap_n16384", "3loop.pread_n16384"],
        mglru: Some(true),
        says: "the loop is within 100 pages of what fits, and kernel memory of the group decides \
               whether it does",
    },
    Cause {
        kernel: "7.2",
        jobs: &["3loop.mmap", "4scan.mmap"],
        mglru: Some(true),
        says: "the model also frees the last nodes of shadows, fewer than a batch of 128, which by \
               the rule takes a priority of 2 or less; the kernel does not come to it. What makes \
               the model go so low is unexplained; reads agree",
    },
    Cause {
        kernel: "7",
        jobs: &["2pread.z1.2", "4scan.pread", "6mix"],
        mglru: Some(false),
        says: "the classic LRU decides by statistics as of their last sum, and when that was is \
               not recorded: the kernel's own versions, whose rules are the same, differ as much",
    },
];

/// Bounds how far a classic-LRU count of a job moves with the moment of the statistics' last sum,
/// which is not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Swing {
    /// Names the job.
    pub job: &'static str,
    /// Holds largest less smallest count, as a share of their mean: anonymous memory (refaults,
    /// major faults), refaults of files.
    pub shares: [f64; 2],
}

/// Lists counts of the model over `stat_flush_ms` 200, 500, 1000, 1500, 1800 to 2200, 2500 and
/// 3000, seed 1, with 22 µs an access, as in the guest (`resident_access_ps`). Refaults of
/// anonymous memory and of files, and the count of 7.2.12: swappiness 1: 0 to 729 (0), 5174 to 6999
/// (6920); 60: 201 to 1145 (326), 5105 to 6144 (6243); 100: 656 to 1945 (1151), 3923 to 5172
/// (5077); 200: 2142 to 5058 (4723), 1644 to 3323 (1970). So the kernel lies within, or 2 % off.
/// 500 ms fits best (0, 557, 1081 and 4258; 6868, 6065, 5172 and 2212), why is open: summing up
/// each time that 128 pages have changed lists moves refaults of files of all measured jobs from
/// 0.7 to 3.2 % off (6.12.117, median).
pub const SWINGS: &[Swing] = &[
    Swing { job: "6mix.pread_a12288_f24576_sw1_l64_short", shares: [2.0, 0.30] },
    Swing { job: "6mix.pread_a12288_f24576_sw60_l64_short", shares: [1.40, 0.18] },
    Swing { job: "6mix.pread_a12288_f24576_sw100_l64_short", shares: [0.99, 0.27] },
    Swing { job: "6mix.pread_a12288_f24576_sw200_l64_short", shares: [0.81, 0.68] },
];

/// Returns the share by which the classic LRU's count of a job moves by chance; 0 where nobody has
/// measured it.
pub fn swing(job: &str, counter: &str) -> f64 {
    let found = SWINGS.iter().find(|swing| swing.job == job);
    let file = usize::from(counter == "workingset_refault_file");
    found.map_or(0.0, |swing| swing.shares[file])
}

/// Lists rules of the kernel that the comparison taught the model, each with what it does to the
/// error.
pub const RULES: &[&str] = &[
    "Look-around marks neighbours that are isolated themselves, and reclaim keeps those (spec \
     §3.4, K612): without it refaults of mapped and anonymous memory were 2 to 45 % off.",
    "Heuristics of the classic LRU (inactive too low, refaults seen, room for a refault, fading of \
     costs) read the group's statistics as of the last flush, up to two seconds ago, or as \
     somebody read `memory.stat`; the \
     specification does not say so. Without it a third of the classic jobs was off by more than \
     20 %, some by a factor of 40.",
    "Whether the next walk comes back to a page table is decided by its young entries among all \
     its entries, empty ones included (spec §4.3 has it by the cache line). Counting only what was \
     mapped, walks of a file larger than memory harvested what reclaim itself should have met: \
     activations of `6mix.mmap` were 11 % off (median; then 1.2 %), in a group full of memory that \
     cannot be swapped 1,558 in place of 26,933.",
    "Pages that reclaim puts on the active list push those that are away further, as evictions do \
     (spec §K72.14): without it activated refaults of `1mmap` with the classic LRU were 23 % off, \
     with it 4 %.",
    "A write to a page that is not cached is no refault, even where a shadow stands: half of the \
     refaults of `5rw.pread` with 50 % writes. The specification does not say so.",
    "A task that keeps its processor is switched in again by the kernel's own threads: a walk of \
     page tables finds that its address space ran. Without it aging harvests nothing after the \
     first pass.",
    "The debug interface refuses a fifth generation unless forced (ERANGE in the records).",
    "The tree nodes above the lowest ones, and three pages of the process's own slab objects, are \
     charged to the group.",
];

/// Explains why outcomes of programs are off where they are.
pub const PROGRAMS: &[&str] = &[
    "refaults of shared memory under reclaim of the root (`shmem_root`): the kernel has \
     fewer, up to half, where reclaim of the parent gives as many as the model. Reclaim of \
     the root also shrinks nodes of shadows that belong to no group, and those of the swap \
     cache do. Inferred from these two targets; not modelled.",
    "Refaults under reclaim of the root in virtual time, 7 to 16 % fewer than in the model: 5 to \
     13 % of the pages stolen lay in none of the groups (the guest's own programs and files), as \
     its counters say; under reclaim of the parent none did, and refaults agree within 0.6 %.",
    "`9mixoom`: the measuring guest was cut off after 100 s; a round took it 3 to 20 s, in \
     which readers pass over the file many times. The model's rounds take a tenth of that, so \
     that fewer pages come back in one. Kills are the same: none.",
    "`8dd`: who is killed, and how long dd takes, depends on the statistics that a group's dirty \
     limits see: the last sum, here as old as the watcher's last look (250 ms). By the group's \
     true counts (`dirty.summed = false`) the writer is held long before the group is full, and \
     nobody is killed on 7.1; the kernel's writers had 25 to 39 MB dirty by the first look, up to \
     three times the limit.",
    "`spread of pgsteal` under reclaim of the parent, rows without `_virtual`: a request took \
     guests translated by several threads 0.5 to 2 s of the host's time (`reclaim_s`), in which \
     16 or 32 programs shared the processors with it and took pages back. The same programs in \
     virtual time (`_virtual`), where a request takes 50 to 100 ms, lie within 0.1 of the model \
     on 7.1 and 7.2, and so does 6.12 either way (its guests were quicker). One kernel in host \
     time is 0.30 (7.1) and 0.22 (7.2) away from itself in virtual time.",
    "`spread of pgsteal` of shared memory with the classic LRU lies 0.1 to 0.2 above the kernel's \
     in virtual time: chance. What is deactivated goes by statistics of up to two seconds ago, so \
     the spread depends on how requests fall between two sums. With one each 500, 520 … 660 ms \
     (16 groups, reclaim of the parent) the model's is 0.82, 0.74, 0.68, 0.69, 1.01, 0.91, 0.86, \
     0.80 and 0.93 (means of three seeds; 0.70 with exact statistics); the kernel's one is 0.73.",
    "How often groups are used counts as much: at 3,000 accesses a second asked for, a guest makes \
     2,710 to 2,790, which rows with `accesses` give the model; without, it goes by what was asked \
     for, and the spread on 7.1 is 0.67 in place of 0.61 (16 groups of a file, six seeds).",
    "`scanned per page stolen` with the multi-gen LRU on is 9 % above the kernel's at 3,000 \
     accesses a second and 3 % off at 300; unexplained. In virtual time it agrees for shared \
     memory (7.1, 7.2) and files on 7.1, and is 8 to 17 % above for files on 6.12 and 7.2.",
];

/// Tells what is known of a job's error on a version.
pub fn cause(version: &str, job: &str, mglru: bool) -> &'static str {
    let fits = |c: &&Cause| {
        let kernel = version::is_of(version, c.kernel);
        kernel
            && c.jobs.iter().any(|name| job.starts_with(name))
            && c.mglru.is_none_or(|m| m == mglru)
    };
    CAUSES.iter().find(fits).map_or("unexplained", |c| c.says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_says_so() {
        assert_eq!(cause("6.12.117", "1mmap.x", true), "unexplained");
        assert!(cause("6.12.117", "6mix.pread_x", false).starts_with("when the kernel sums up"));
        assert_eq!(cause("6.12.117", "6mix.pread_x", true), "unexplained");
        assert!(cause("7.1.13", "6mix.pread_x", false).starts_with("the classic LRU decides"));
        assert_eq!(cause("7.1.13", "6anon.x", false), "unexplained");
    }

    #[test]
    fn a_swing_is_of_one_job_and_kind_of_memory() {
        let [job, other] = ["sw60_l64_short", "sw60_l64"].map(|sw| {
            ["workingset_refault_file", "pgmajfault"]
                .map(|counter| swing(&format!("6mix.pread_a12288_f24576_{sw}"), counter))
        });
        assert_eq!((job, other), ([0.18, 1.40], [0.0, 0.0]));
    }
}
