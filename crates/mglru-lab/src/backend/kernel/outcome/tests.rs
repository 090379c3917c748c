use super::*;

use mglru_guest::report::{Done, Measured};

fn snapshot(at_us: u64, ops: u64, vmstat: &str, root: &str, max_seq: u64) -> Snapshot {
    let state = |stat: &str| GroupState { stat: stat.to_string(), ..GroupState::default() };
    let lru_gen = format!("memcg 2 /g\n node 0\n {max_seq} 10 1 2 \n");
    Snapshot {
        at_us,
        vmstat: vmstat.to_string(),
        lru_gen,
        groups: [(ROOT.to_string(), state(root)), ("/g".to_string(), state("anon 4096\n"))].into(),
        done: Done { ops, ..Done::default() },
        ..Snapshot::default()
    }
}

fn report() -> (GuestReport, Layout) {
    let measured = Measured {
        latency: vec![vec![(1000, 2), (3000, 1)], vec![(9_000_000, 5)]],
        figures: vec![("cache_misses".to_string(), 4.0)],
        string_hash: 3,
    };
    let ended = Ended { measured: Some(measured), ..Ended::default() };
    let report = GuestReport {
        kernel: "6.12".to_string(),
        ready: snapshot(0, 0, "pgfault 1\nnr_dirty 9\n", "pgscan_direct 5\n", 3),
        marks: vec![
            (0, snapshot(500_000, 5, "pgfault 10\nnr_dirty 9\n", "pgscan_direct 10\n", 4)),
            (1, snapshot(1_000_000, 5, "pgfault 30\npgpgin 4\n", "pgscan_direct 11\n", 5)),
        ],
        over: Some(snapshot(3_000_000, 8, "pgfault 100\npgpgin 9\n", "pgscan_direct 31\n", 9)),
        workers: vec![ended],
        ..GuestReport::default()
    };
    let names = |names: [&str; 2]| names.map(str::to_string).to_vec();
    let layout = Layout {
        phases: names(["ramp", "run"]),
        classes: names(["read", "ramp"]),
        ..Layout::default()
    };
    (report, layout)
}

#[test]
fn processors_are_busy_for_a_share_of_the_measured_time() {
    let at = |stat: &str| Snapshot { stat: stat.to_string(), ..Snapshot::default() };
    let (from, to) = (at("cpu  10 0 5 100 20 0 0 0"), at("cpu  40 0 15 140 35 5 0 0"));
    assert_eq!(busy(&Span { from: &from, to: &to }), Some(0.45));
    assert_eq!(busy(&Span { from: &from, to: &from }), None);
    assert_eq!(busy(&Span { from: &at(""), to: &to }), None);
}

#[test]
fn the_run_phase_is_measured_without_what_prepares_it() {
    let (report, layout) = report();
    let found = outcome(&report, &layout).unwrap();
    assert_eq!((found.metrics.ops, found.metrics.virtual_s), (3, 2.0));
    assert_eq!(found.metrics.ops_per_s, 1.5);
    let latency = found.metrics.latency_us.unwrap();
    assert_eq!((latency.p50.round(), latency.max.round()), (1.0, 3.0));
    let counter = |name: &str| found.counters.get(name).copied();
    assert_eq!((counter("pgfault"), counter("pgpgin")), (Some(70), Some(5)));
    assert_eq!((counter("pgscan_direct"), counter("aging_passes")), (Some(20), Some(4)));
    // A counter that the kernel did not report is absent, and so are levels.
    assert_eq!((counter("pswpin"), counter("nr_dirty")), (None, None));
    assert_eq!(found.groups["/g"].memory_stat["anon"], 4096);
    assert!(!found.groups.contains_key(ROOT));
    assert_eq!(found.custom["string_hash"], "0000000000000003");
    assert_eq!(found.custom["phases"][0]["counters"]["pgfault"], 20);
}

#[test]
fn a_killed_worker_leaves_no_hash_and_an_early_end_no_outcome() {
    let (mut report, layout) = report();
    report.workers.push(Ended { signal: Some(9), ..Ended::default() });
    assert!(!outcome(&report, &layout).unwrap().custom.contains_key("string_hash"));
    report.over = None;
    let error = outcome(&report, &layout).unwrap_err();
    assert_eq!(error, "the guest stopped before the work was over");
}

#[test]
fn a_machine_that_stopped_for_want_of_memory_has_an_outcome() {
    let (mut report, layout) = report();
    (report.over, report.workers) = (None, Vec::new());
    report.samples = vec![(2_500_000, BTreeMap::new())];
    report.starved = Some("Kernel panic".to_string());
    let found = outcome(&report, &layout).unwrap();
    assert_eq!((found.metrics.ops, found.metrics.virtual_s), (0, 1.5));
    assert_eq!((&found.custom["stopped"], found.counters["oom_kill"]), (&"Kernel panic".into(), 0));
}
