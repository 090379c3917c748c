//! Plans of jobs and of several workloads: an error names section, line and word of a mistake; a
//! record reports each phase.

use std::fs;

use crate::workdir::Workdir;

const JOB: &str = r#"
name = "job"
title = "a job of two tasks"
variants = ["k7.1", "k6.12"]
seeds = 1
metrics = ["pgpgin@read", "accesses@read"]

[machine]
memory = "64MiB"
readahead_kb = 0

[workload]
kind = "job"
text = """
task reader group=/a/child
region file kind=pread path=/f pages=100
stream all region=file gen=seq n=100 base=0 wr=0
phase read ops=100 mix=all:1
fadvise file dontneed
task admin group=/a
barrier 1
rmdir /a/child
"""
"#;

const SEVERAL: &str = r#"
name = "several"
title = "two workloads"
variants = ["k7.1", { name = "tight", base = "k7.1", with = { groups."/b".memory.max = "1MiB" } }]
seeds = 1
metrics = ["/b:memory.peak", "pgpgin@one.read"]

[machine]
memory = "64MiB"
readahead_kb = 0

[groups."/a"]
memory.max = "8MiB"

[workload]
kind = "several"

[workload.parts.one]
kind = "job"
text = """
task reader group=/a
region kind=pread path=/f pages=100
stream region=0 gen=seq n=100 base=0 wr=0
phase read ops=100 mix=0:1
"""

[workload.parts.two]
kind = "touch"
engine = "pread"
pages = 1024
operations = 3000
group = "/b"
"#;

const MISTAKES: &[(&str, &str, &str)] = &[
    ("phase read", "phse read", "workload: job: line 4: phse: no such statement (known: seed, "),
    ("fadvise file", "fadvise fiel", "workload: job: line 5: fiel: region fiel is not declared"),
    ("file dontneed", "file gone", "workload: job: line 5: gone: no such advice about a file (kn"),
    ("kind=pread", "kind=pipe", "workload: job: line 2: kind: `pipe` is no kind of region (mmap,"),
    ("group=/a/child", "group=a", "workload: job: line 1: a: a group's path is such as /web or"),
    ("rmdir /a/child", "rmdir /a/c", "workload: job: line 8: /a/c: no such group declared above"),
    ("barrier 1", "reclaim 1M swappiness=most", "workload: job: line 7: swappiness: `most` is not"),
    ("kind = \"touch\"", "kind = \"tuch\"", "workload.parts.two.kind = \"tuch\": unknown (did you"),
    ("pages = 1024", "pagse = 1024", "workload.parts.two.pagse: unknown key (did you mean pages"),
    ("pages = 1024", "pages = 0", "workload.parts.two.pages = 0: must be from 1 to"),
    ("pages = 1024", "delay_ms = -1", "workload"),
    ("mix=0:1", "mix=9:1", "workload.parts.one: job: line 4: mix: stream 9 is not declared above"),
    ("memory.max = \"1MiB\"", "memory.maxx = \"1MiB\"", "groups./b.memory.maxx: unknown key (did"),
    (
        "groups.\"/b\"",
        "groups.\"/c\"",
        "groups./c: the workload has no such group (it has: /a, /b)",
    ),
];

#[test]
fn mistakes_name_section_line_and_word() {
    let workdir = Workdir::new();
    for (from, to, want) in MISTAKES {
        let text = if JOB.contains(from) { JOB } else { SEVERAL };
        assert!(text.contains(from), "{from}");
        fs::write(workdir.path().join("p.toml"), text.replace(from, to)).unwrap();
        let message = workdir.refused(&["run", "p.toml"]);
        assert!(message.starts_with(&format!("mglru: error: p.toml: {want}")), "{message}{want}");
        assert_eq!(message.matches('\n').count(), 1, "{message}");
    }
}

#[test]
fn phases_of_the_model_have_counters() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("p.toml"), JOB).unwrap();
    let table = workdir.out(&["run", "p.toml", "--out", "o"], 0);
    let row = table.lines().find(|line| line.starts_with("| pgpgin@read")).unwrap();
    assert_eq!(row.matches(" 400 ").count(), 2, "{table}");
    let records = fs::read_to_string(workdir.path().join("o/records.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    let phases = first["custom"]["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["read", "barrier", "fadvise", "end", "rmdir", "end"],
        "in the order they began"
    );
    assert_eq!((&phases[0]["accesses"], &phases[2]["accesses"]), (&100.into(), &0.into()));
}

#[test]
fn several_workloads_run_side_by_side_and_a_variant_adds_a_limit() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("p.toml"), SEVERAL).unwrap();
    let table = workdir.out(&["run", "p.toml", "--format", "json"], 0);
    let report: serde_json::Value = serde_json::from_str(&table).unwrap();
    let text = report.to_string();
    assert!(text.contains("pgpgin@one.read"), "{text}");
    let table = workdir.out(&["run", "p.toml", "--out", "q"], 0);
    let row = table.lines().find(|line| line.starts_with("| pgpgin@one.read")).unwrap();
    let read: u64 = row.split('|').nth(4).unwrap().trim().parse().unwrap();
    assert!((400..1500).contains(&read), "the phase ends with its task, not with the run: {row}");
    let set = ["run", "p.toml", "--set", "workload.parts.two.pages=64", "--out", "o"];
    let table = workdir.out(&set, 0);
    let row = table.lines().find(|line| line.starts_with("| /b:memory.peak")).unwrap();
    assert!(row.contains("262144"), "64 pages: {row}");
    let records = fs::read_to_string(workdir.path().join("o/records.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 2);
    let set = ["run", "p.toml", "--out", "p"];
    workdir.out(&set, 0);
    let records = fs::read_to_string(workdir.path().join("p/records.jsonl")).unwrap();
    let peak = |line: &str| -> u64 {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["groups"]["/b"]["memory.stat"]["memory.peak"].as_u64().unwrap()
    };
    let peaks: Vec<u64> = records.lines().map(peak).collect();
    assert!(peaks[0] > 2 << 20 && peaks[1] <= 1 << 20, "the plan has no limit for /b: {peaks:?}");
}
