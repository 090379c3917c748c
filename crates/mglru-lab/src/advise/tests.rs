use std::fs;

use mglru_traces::tools::Point;

use super::*;

const BOUNDS: Bounds = Bounds { pressure_percent: 0.1, cold_ms: 60_000.0 };

/// Two samples, a hundred seconds apart, of a group with 256 MiB.
fn capture(stalled_us: u64, refaults: u64, lru_gen: &str) -> Capture {
    let sample = |at, stalled, refaults| {
        format!(
            "time: {at}\n==> /g/memory.current <==\n268435456\n\
             ==> /g/memory.stat <==\nworkingset_refault_file {refaults}\n\
             ==> /g/memory.pressure <==\n\
             some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled}\n\
             ==> /sys/kernel/debug/lru_gen <==\n{lru_gen}\n"
        )
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c");
    fs::write(&path, sample(0, 0, 0) + &sample(100, stalled_us, refaults)).unwrap();
    Capture::load(&path).unwrap()
}

/// The oldest generation was in use until the next one was born.
fn generations(unused_ms: u64) -> String {
    let born = unused_ms + 400_000;
    format!(
        "memcg     5 /job\n node     0\n  7  {born}  1024  2048\n  8  {unused_ms}  256  512\n  \
         9  70000  30  400\n  10  1000  5  6\n"
    )
}

#[test]
fn cold_memory_goes_where_there_is_no_pressure() {
    let advice =
        from_capture("c", &capture(50_000, 0, &generations(90_000)), None, BOUNDS).unwrap();
    let mib = |n: u64| Some(n << 20);
    assert_eq!((advice.current, advice.high, advice.reclaim), (mib(256), mib(241), mib(15)));
    assert_eq!(advice.max, Some((241 << 20) + (241 << 17)));
    let wanted = [
        "Tasks wait for memory for 0.05 % of the time.",
        "15.0 MiB were not used for 70 s at least.",
        "5.0 MiB of it are anonymous and need swap.",
    ];
    assert_eq!(advice.because, wanted);
    let colder = Bounds { cold_ms: 80_000.0, ..BOUNDS };
    let advice =
        from_capture("c", &capture(50_000, 0, &generations(90_000)), None, colder).unwrap();
    assert_eq!(advice.reclaim, mib(12), "the oldest alone");
}

#[test]
fn young_memory_stays_and_a_trial_is_advised() {
    let advice = from_capture("c", &capture(0, 0, &generations(9_000)), None, BOUNDS).unwrap();
    assert_eq!((advice.high, advice.reclaim), (None, None));
    assert!(advice.because[1].contains("generation is unused for 9 s at least"), "{advice:?}");
    let advice = from_capture("c", &capture(0, 0, ""), None, BOUNDS).unwrap();
    assert!(advice.because[1].starts_with("It has no lru_gen"), "{advice:?}");
}

#[test]
fn pressure_asks_for_what_came_back() {
    let short = capture(500_000, 1000, &generations(90_000));
    let advice = from_capture("c", &short, None, BOUNDS).unwrap();
    assert_eq!(advice.high, Some((256 << 20) + 1000 * PAGE));
    assert_eq!(advice.reclaim, None);
    let long = capture(500_000, 10_000_000, "");
    let advice = from_capture("c", &long, None, BOUNDS).unwrap();
    assert_eq!(advice.high, Some(320 << 20), "a quarter at a time");
    assert_eq!(advice.because[2], "Give a quarter more, and capture again.");
    let none = from_capture("c", &capture(500_000, 0, ""), None, BOUNDS).unwrap();
    assert_eq!(none.high, None);
    assert!(none.because[1].contains("more memory would not help"), "{none:?}");
}

#[test]
fn a_group_that_is_not_there_and_a_machine_s_capture_are_refused() {
    let message =
        from_capture("c", &capture(0, 0, &generations(1)), Some("/x"), BOUNDS).unwrap_err();
    assert_eq!(message, "group /x is not in its lru_gen");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("v"), "pgscan 5\n").unwrap();
    let machine = Capture::load(&dir.path().join("v")).unwrap();
    let message = from_capture("v", &machine, None, BOUNDS).unwrap_err();
    assert!(message.contains("--group"), "{message}");
}

#[test]
fn a_curve_gives_the_size_that_is_enough() {
    let point =
        |&(size_pages, miss_ratio): &(u64, f64)| Point { size_pages, miss_ratio, band: None };
    let points = [(10, 0.23), (20, 0.15), (50, 0.105), (100, 0.1)];
    let curve = Curve {
        trace: "t".into(),
        requests: 1000,
        unique: 100,
        sampled: None,
        asked: Vec::new(),
        lru: points.iter().map(point).collect(),
        others: Vec::new(),
    };
    let advice = from_curve(&curve, BOUNDS);
    assert_eq!((advice.high, advice.max), (Some(50 * PAGE), Some(57 * PAGE)));
    assert!(advice.because[1].starts_with("With 200 KiB"), "{advice:?}");
    assert_eq!(advice.because[2], "With 40.0 KiB there are twice as many misses.");
}

#[test]
fn distances_give_what_spares_most_faults() {
    let distances = Distances {
        resident: 64 << 20,
        major: 2000,
        classes: vec![(1 << 20, 500), (2 << 20, 400), (64 << 20, 100)],
    };
    let advice = from_distances("/", &distances, BOUNDS);
    assert_eq!(advice.high, Some(66 << 20));
    let none = from_distances("/", &Distances { classes: Vec::new(), ..distances }, BOUNDS);
    assert_eq!(none.high, None);
}

#[test]
fn sizes_are_said_in_their_unit() {
    let said = [0, 1023, 1 << 10, 150 << 10, 3 << 29].map(size);
    assert_eq!(said, ["0 bytes", "1023 bytes", "1.0 KiB", "150 KiB", "1.5 GiB"]);
}
