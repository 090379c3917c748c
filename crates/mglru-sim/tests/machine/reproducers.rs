//! The throttling reproducer of the 2026 series (experiments §E5): a writer in a small group on a
//! device that takes a second per write must wait for it, and not be killed.

use mglru_sim::Outcome;
use mglru_workload::Op;

use crate::script::{Script, spec, write};

/// 192 MiB written in 128 MiB, with these settings of dirty limits.
fn dd(variant: &str, dirty: &str) -> Outcome {
    let mut script = Script::default();
    let group = script.group("/dd", None);
    let file = script.file(0);
    let mut ops: Vec<Op> = (0..192).map(|i| write(file, i * 256, 256)).collect();
    ops.push(Op::Fsync { file });
    script.task(0, Some(group), ops);
    let text = format!(
        "memory = \"2GiB\"\ncpus = 2\ndevice = \"delay\"\ndirty = {{ {dirty} }}\n\
         groups.\"/dd\" = {{ \"memory.max\" = \"128MiB\" }}"
    );
    script.run(&spec(&text), variant)
}

#[test]
fn before_the_series_the_writer_is_killed_at_once() {
    let outcome = dd("before", "per_group = false");
    assert_eq!(outcome.counter("oom_kill"), Some(1));
    assert_eq!(outcome.counter("throttle_congested"), Some(0));
    assert!(outcome.virtual_ns < 1_000_000_000);
}

#[test]
fn classic_and_after_wait_for_the_device() {
    for variant in ["classic", "after"] {
        let outcome = dd(variant, "per_group = false");
        assert_eq!(outcome.counter("oom_kill"), Some(0), "{variant}");
        assert_eq!(outcome.counter("nr_written"), Some(192 * 256), "{variant}");
        assert!(outcome.counter("throttle_congested") > Some(50), "{variant}");
        assert!(outcome.virtual_ns < 5_000_000_000, "{variant}");
    }
}

/// dd of 1 MiB blocks on ext4 in 32 MiB, writes taking 1 s, dirty ratios 95 and 90, statistics
/// summed up every 250 ms (8dd.dr90_delay1000_l32_c192): 6.12 and 7.1 kill, 7.2 and the classic LRU
/// do not.
#[test]
fn limits_that_see_old_statistics_let_the_group_fill_with_dirty_pages() {
    let kills = |variant: &str, summed: bool, mib: u32| {
        let mut script = Script::default();
        let group = script.group("/dd", None);
        let file = script.file(0);
        let blocks =
            (0..192).flat_map(|i| [write(file, i * 256, 256), Op::Compute { ns: 11_400_000 }]);
        script.task(0, Some(group), blocks.collect());
        let text = format!(
            "memory = \"2GiB\"\ncpus = 2\ndevice = \"delay\"\nfilesystem = \"ext4\"\n\
             charge_kernel = true\nstat_flush_ms = 250\n\
             dirty = {{ ratio = 95, background_ratio = 90, summed = {summed} }}\n\
             groups.\"/dd\" = {{ \"memory.max\" = \"{mib}MiB\" }}"
        );
        let outcome = script.run(&spec(&text), variant);
        (outcome.counter("oom_kill").unwrap(), outcome.counter("pgsteal_direct").unwrap())
    };
    for (variant, killed) in [("k6.12", 1), ("k7.1", 1), ("k7.2", 0), ("classic", 0)] {
        assert_eq!(kills(variant, true, 32).0, killed, "{variant}");
        assert_eq!(kills(variant, false, 32).0, 0, "{variant}: a limit that holds");
        assert_eq!(kills(variant, true, 128).0, 0, "{variant}: in 128 MiB");
    }
    // Booted: 41,472 and 17,664 pages. A hundredth of the cache is in buffers.
    assert_eq!((kills("k7.2", true, 32).1, kills("k7.2", true, 128).1), (41_216, 17_408));
}

#[test]
fn a_dirty_limit_that_sees_what_is_true_now_slows_the_writer_instead() {
    for variant in ["classic", "before", "after"] {
        let outcome = dd(variant, "summed = false");
        assert_eq!(outcome.counter("oom_kill"), Some(0), "{variant}");
        assert_eq!(outcome.counter("throttle_congested"), Some(0), "{variant}");
        assert!(outcome.counter("dirty_paused_us") > Some(5_000_000), "{variant}");
    }
}

/// Statistics are summed up every 2 s, and the group is full before that: `vm-throttle-oom` with
/// `machine.dirty.per_group` on a booted 6.12.117, which nobody watches, is killed after 6.3 s.
#[test]
fn a_dirty_limit_of_linux_comes_too_late_for_a_group_that_fills_at_once() {
    for (variant, killed) in [("classic", 0), ("before", 1), ("after", 0)] {
        let outcome = dd(variant, "summed = true");
        assert_eq!(outcome.counter("oom_kill"), Some(killed), "{variant}");
    }
}
