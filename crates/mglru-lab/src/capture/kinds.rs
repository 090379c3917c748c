//! Which figures are gauges (a state at a moment) and which are counters (events since the start).

/// Counters of /proc/vmstat whose names begin like those of gauges.
const COUNTING: [&str; 10] = [
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_tlb_remote_flush",
    "nr_tlb_remote_flush_received",
    "nr_tlb_local_flush_all",
];

/// Gauges of memory.stat, bytes; the others are counters.
const STATES: [&str; 37] = [
    "anon",
    "file",
    "kernel",
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "percpu",
    "sock",
    "vmalloc",
    "shmem",
    "zswap",
    "zswapped",
    "hugetlb",
    "balloon",
    "file_mapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "anon_thp",
    "file_thp",
    "shmem_thp",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "slab",
    "workingset_nodes",
    "cache",
    "rss",
    "rss_huge",
    "mapped_file",
    "dirty",
    "writeback",
    "swap",
];

/// Tells whether a figure is a state at a moment rather than a count since the start.
pub fn is_gauge(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("memory.stat.") {
        return STATES.contains(&rest);
    }
    if name.starts_with("pressure.") || name.contains(".pressure.") {
        return !name.ends_with(".total");
    }
    if name.starts_with("lru_gen.") {
        return !name.ends_with(".max_seq");
    }
    if name.starts_with("memory.") {
        return !name.starts_with("memory.events.");
    }
    let is_state = name == "workingset_nodes" || name.starts_with("meminfo.");
    is_state || name.starts_with("nr_") && !COUNTING.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::is_gauge;

    #[test]
    fn states_are_distinguished_from_counts() {
        let states = ["nr_free_pages", "memory.stat.anon", "pressure.memory.some.avg10"];
        let counts = ["pgscan_direct", "nr_vmscan_write", "memory.stat.pgscan", "oom_kill"];
        assert!(states.into_iter().all(is_gauge));
        assert!(!counts.into_iter().any(is_gauge));
        assert!(is_gauge("lru_gen./.anon.youngest") && !is_gauge("lru_gen./.max_seq"));
        assert!(is_gauge("memory.current") && !is_gauge("memory.events.high"));
    }
}
