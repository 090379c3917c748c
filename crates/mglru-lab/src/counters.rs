//! Counters a record may carry, with the kernel's names and units.

/// Name and meaning of each; pages unless it says otherwise.
pub const COUNTERS: [(&str, &str); 28] = [
    ("pgpgin", "KiB read from devices"),
    ("pgpgout", "KiB written to devices"),
    ("pswpin", "pages swapped in"),
    ("pswpout", "pages swapped out"),
    ("pgfault", "page faults"),
    ("pgmajfault", "faults that needed I/O"),
    ("pgscan_kswapd", "pages scanned by kswapd"),
    ("pgscan_direct", "pages scanned by direct and cgroup reclaim"),
    ("pgsteal_kswapd", "pages reclaimed by kswapd"),
    ("pgsteal_direct", "pages reclaimed by direct and cgroup reclaim"),
    ("pgrefill", "pages scanned on the active list"),
    ("pgactivate", "pages activated"),
    ("pgrotated", "pages moved to the tail when their writeback ended"),
    ("workingset_refault_anon", "anonymous pages that came back"),
    ("workingset_refault_file", "file pages that came back"),
    ("workingset_activate_anon", "refaulted anonymous pages activated at once"),
    ("workingset_activate_file", "refaulted file pages activated at once"),
    ("workingset_restore_anon", "refaulted anonymous pages known as working set"),
    ("workingset_restore_file", "refaulted file pages known as working set"),
    ("nr_vmscan_immediate_reclaim", "folios under writeback marked for reclaim when it ends"),
    ("flusher_wakeups", "times reclaim woke the flushers"),
    ("throttle_congested", "times a reclaimer slept because of congestion"),
    ("system_us", "processor time spent in the kernel, µs"),
    ("reclaim_us", "time tasks spent in reclaim, µs"),
    ("kswapd_us", "processor time of kswapd, µs"),
    ("oom_kill", "tasks killed for want of memory"),
    ("aging_passes", "generations opened"),
    ("zero_progress_reclaims", "reclaim calls that freed nothing"),
];

/// The list as rows.
pub fn all() -> Vec<(String, String)> {
    COUNTERS.iter().map(|(name, about)| (name.to_string(), about.to_string())).collect()
}
