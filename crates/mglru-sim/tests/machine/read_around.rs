//! Mapped files read at random: how much a major fault reads (experiments §0.6).

use mglru_sim::Outcome;
use mglru_workload::{RegionKind, rng::Rng};

use crate::script::{Script, spec, touch};

/// So many uniform reads of a mapped file of 64 MiB in a group of this limit.
fn random_reads(n: u32, limit: &str, windows: &str, variant: &str) -> Outcome {
    let mut script = Script::default();
    let group = script.group("/job", None);
    let file = script.file(64 << 20);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 16_384);
    let mut rng = Rng::new(7, 0);
    let ops = (0..n).map(|_| touch(region, rng.below(16_384) as u32, false)).collect();
    script.task(0, Some(group), ops);
    let text = format!(
        "memory = \"256MiB\"\ncpus = 1\n{windows}\n\
         groups.\"/job\" = {{ \"memory.max\" = \"{limit}\" }}\n"
    );
    script.run(&spec(&text), variant)
}

/// KiB read per major fault of 4,000 reads in a group of 8 MiB.
fn kib_per_major_fault(windows: &str, variant: &str) -> f64 {
    let outcome = random_reads(4_000, "8MiB", windows, variant);
    let count = |name| outcome.counter(name).unwrap() as f64;
    count("dev_in") / count("pgmajfault")
}

/// A fault that had to read maps, when it is made again, what its read brought besides, and so
/// shows that reading around pays, also where windows are not larger than what is mapped around.
#[test]
fn random_faults_read_whole_windows_as_linux_6_12_does() {
    for (readahead_kb, kernel) in [(16, 15.2), (32, 30.0), (64, 59.0), (128, 115.0)] {
        let model = kib_per_major_fault(&format!("readahead_kb = {readahead_kb}"), "k6.12");
        let off = (model / kernel - 1.0).abs();
        assert!(off < 0.1, "readahead_kb = {readahead_kb}: {model:.2}, Linux {kernel}");
    }
}

/// The job sens.ra128 of `truth/`: 4.39 KiB on Linux 6.12, whichever LRU.
#[test]
fn where_nothing_is_mapped_around_random_faults_end_up_reading_alone() {
    let model = kib_per_major_fault("readahead_kb = 128\nfault_around_kb = 4", "k6.12");
    assert!(model < 8.0, "{model:.2}");
}

/// Stores map one page each: of 250, a hundred read a window, the others a page.
#[test]
fn stores_at_random_end_up_reading_alone() {
    let mut script = Script::default();
    let file = script.file(64 << 20);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 16_384);
    let ops = (0..250).map(|i| touch(region, i * 64, true)).collect();
    script.task(0, None, ops);
    let outcome = script.run(&spec("readahead_kb = 128"), "k6.12");
    assert_eq!(outcome.counter("dev_in"), Some(4 * (100 * 32 + 150)));
}

/// A window of twice the group: what it locked is read before the page that was asked for is waited
/// for, so that reclaim finds pages again. The same on 7.2.12: nobody is killed.
#[test]
fn a_window_larger_than_its_group_kills_nobody() {
    for variant in ["k6.12", "k7.2", "classic"] {
        let outcome = random_reads(500, "2MiB", "readahead_kb = 4096", variant);
        let of = |name| outcome.counter(name);
        assert_eq!(of("oom_kill"), Some(0), "{variant}");
        assert!(of("pgmajfault") > Some(400), "{variant}: {:?}", of("pgmajfault"));
    }
}
