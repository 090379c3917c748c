//! `mglru run --trace-events`: trace events of the model in a file.

use std::collections::BTreeMap;

use crate::desk::Desk;

/// Events of a file by name, and the sum of one field of one event.
fn counts(text: &str) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(": ").nth(1).unwrap_or_else(|| panic!("no event: {line}"));
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn sum(text: &str, name: &str, field: &str) -> u64 {
    let name = format!(": {name}: ");
    let of = |line: &str| {
        let mut fields = line.split_once(&name)?.1.split(' ');
        fields.find_map(|word| word.strip_prefix(field)?.strip_prefix('=')?.parse::<u64>().ok())
    };
    text.lines().filter_map(of).sum()
}

fn counter(desk: &Desk, out: &str, name: &str) -> u64 {
    let record: serde_json::Value =
        serde_json::from_str(desk.read(&format!("{out}/records.jsonl")).lines().next().unwrap())
            .unwrap();
    record["counters"][name].as_u64().unwrap()
}

#[test]
fn a_small_run_tells_its_events_as_ftrace_does() {
    let desk = Desk::new();
    let run = ["run", "small.toml", "--variant", "after", "--out"];
    desk.out(&[&run[..], &["a"]].concat(), 0);
    let told = desk.out(&[&run[..], &["b", "--trace-events", "t.txt"]].concat(), 0);
    assert!(told.ends_with("\ntrace events: t.txt\n"), "{told}");
    assert_eq!(desk.read("a/records.jsonl"), desk.read("b/records.jsonl"));
    let text = desk.read("t.txt");
    assert!(text.starts_with("# tracer: nop\n#\n"));
    let (first, rest) = text.split_once("memcg_reclaim_begin").unwrap();
    let before = first.lines().rev().take(2).collect::<Vec<_>>();
    let after = rest.lines().skip(1).take(5).collect::<Vec<_>>();
    insta::assert_snapshot!([before, after].concat().join("\n"));
    let stolen = ["kswapd", "direct"].map(|by| counter(&desk, "a", &format!("pgsteal_{by}")));
    let shrunk = sum(&text, "mm_vmscan_lru_shrink_inactive", "nr_reclaimed");
    assert_eq!(shrunk, stolen.iter().sum::<u64>());
    let counts = counts(&text);
    assert_eq!(counts["mm_vmscan_memcg_reclaim_begin"], counter(&desk, "a", "reclaim_calls"));
    assert_eq!(counts["mglru_new_generation"], counter(&desk, "a", "aging_passes"));
}

/// Runs that have their records are made again for their events, and the records stay.
#[test]
fn each_run_has_a_file_and_records_stay() {
    let desk = Desk::new();
    let run = ["run", "small.toml", "--out", "a"];
    desk.out(&run, 0);
    let records = desk.read("a/records.jsonl");
    let told = desk.out(&[&run[..], &["--trace-events", "t.pftrace"]].concat(), 0);
    assert_eq!(desk.read("a/records.jsonl"), records);
    for variant in ["before", "after"] {
        let file = format!("t-sim-{variant}-1.pftrace");
        assert!(told.contains(&format!("trace events: {file}\n")), "{told}");
        let trace = std::fs::read(desk.path().join(file)).unwrap();
        assert!(trace.len() > 10_000 && trace[0] == 0x0a);
    }
}

#[test]
fn what_cannot_be_had_is_refused_in_one_line() {
    let desk = Desk::new();
    let refused = |plan: &str, more: &[&str]| {
        let told = desk.refused(&[&["run", plan, "--trace-events"][..], more].concat());
        assert_eq!(told.lines().count(), 1, "{told}");
        told
    };
    let told = refused("small.toml", &["no/t.txt", "--variant", "after", "--out", "o"]);
    assert!(told.contains("no/t.txt: No such file"), "{told}");
    let told = refused("small.toml", &["/dev/full", "--variant", "after", "--out", "o"]);
    assert!(told.contains("--trace-events: /dev/full: No space left on device"), "{told}");
    let told = refused("mock.toml", &["t.txt"]);
    assert!(told.contains("the backend mock has none"), "{told}");
    assert!(refused("all", &["t.txt"]).contains("--trace-events: name one plan"));
}
