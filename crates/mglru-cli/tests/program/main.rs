//! The program from outside: what it prints, where, and with which exit status.

mod all_plans;
mod book;
mod booted;
mod captures;
mod check;
mod contrib;
mod control;
mod diverge;
mod exec;
mod exec_events;
mod folders;
mod gdb;
mod installed;
mod jobs;
mod measure;
mod page;
mod profile;
mod pty;
mod quick;
mod refusals;
mod repeat;
mod steer;
mod sweep;
mod teaching;
mod trace_events;
mod trace_plan;
mod trace_write;
mod traces;
mod until;
mod watch;
mod workdir;

use std::process::{Command, Stdio};

use workdir::Workdir;

#[test]
fn a_run_prints_comparison_verdict_and_how_to_repeat_it() {
    insta::assert_snapshot!(Workdir::new().out(&["run", "mock.toml", "--out", "o"], 0), @r#"
    mock on mock: 6 records
    | metric    | base   | variant | base mean | mean | ratio | 95 % interval  | n | verdict    |
    |-----------|--------|---------|-----------|------|-------|----------------|---|------------|
    | ops_per_s | before | after   |       100 |  125 | 1.250 | [1.250, 1.250] | 3 | reproduced |
    | pgpgin    | before | after   |      4000 | 3200 | 0.800 | [0.800, 0.800] | 3 | not-judged |

    published figures
    | metric    | document | before | after | ratio | band           |  ours | verdict    |
    |-----------|----------|--------|-------|-------|----------------|-------|------------|
    | ops_per_s | 000      |    100 | 120   | 1.200 | [1.100, 1.320] | 1.250 | reproduced |

    verdict: reproduced
    records: o
    page: o/report.html
    repeat: mglru run mock.toml
    "#);
}

#[test]
fn json_is_one_document_in_the_published_shape() {
    let workdir = Workdir::new();
    let text = workdir.out(&["run", "mock.toml", "--out", "o", "--format", "json"], 0);
    assert_eq!(text.matches('\n').count(), 1);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["records"].as_array().unwrap().len(), 6);
    assert_eq!(json["verdict"], "reproduced");
    let keys = |value: &serde_json::Value| {
        let keys = value.as_object().unwrap().keys().cloned();
        keys.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&json), "backend comparisons controls neutral plan published records verdict");
    assert_eq!(
        json["comparisons"][1],
        serde_json::json!({
            "metric": "pgpgin", "base": "before", "variant": "after", "base_mean": 4000.0,
            "mean": 3200.0, "ratio": 0.8, "ci95": [0.8, 0.8], "n": 3, "verdict": "not-judged",
        })
    );
    let published = &json["published"][0];
    assert_eq!(keys(published), "after band before metric n ours ratio seed_document verdict");
    assert_eq!((&published["ratio"], &published["ours"]), (&1.2.into(), &1.25.into()));
}

#[test]
fn a_record_keeps_its_published_layout() {
    let workdir = Workdir::new();
    workdir.out(&["run", "mock.toml", "--out", "o", "--set", "workload.noise=[]"], 0);
    let records = workdir.read("o/records.jsonl");
    let first = records.lines().next().unwrap().replace(",\"", ",\n\"");
    insta::assert_snapshot!(first, @r#"
    {"schema":1,
    "plan":"mock",
    "plan_hash":"88bfb02e87bda157",
    "mglru":"0.1.0",
    "backend":"mock",
    "variant":"before",
    "switches":{},
    "seed":1,
    "scale":1.0,
    "metrics":{"ops":1000,
    "ops_per_s":100.0,
    "latency_us":{"mean":10000.0,
    "p50":10000.0,
    "p90":10000.0,
    "p95":10000.0,
    "p99":10000.0,
    "max":10000.0},
    "virtual_s":10.0},
    "counters":{"pgpgin":4000},
    "groups":{"/a":{"memory.stat":{}}},
    "custom":{"load":1.0}}
    "#);
}

#[test]
fn a_missed_expectation_exits_1() {
    let workdir = Workdir::new();
    let text = workdir.out(&["run", "mock.toml", "--set", "workload.factor.after=1.01"], 1);
    assert!(text.contains("verdict: missed"), "{text}");
}

#[test]
fn jobs_do_not_show_in_records_and_a_second_run_keeps_them() {
    let workdir = Workdir::new();
    let sweep = ["run", "mock.toml", "--set", "workload.load=[1.0, 2.0, 3.0]"];
    for (jobs, out) in [("1", "a"), ("2", "b")] {
        workdir.out(&[&sweep[..], &["--jobs", jobs, "--out", out]].concat(), 0);
    }
    assert_eq!(workdir.read("a/records.jsonl"), workdir.read("b/records.jsonl"));
    let again = workdir.run(&[&sweep[..], &["--out", "a"]].concat());
    let stderr = String::from_utf8(again.stderr).unwrap();
    assert_eq!(stderr, "mglru: 18 records kept from earlier runs\n");
    assert_eq!(workdir.read("a/records.jsonl"), workdir.read("b/records.jsonl"));
}

#[test]
fn a_folder_can_be_reported_and_compared_again() {
    let workdir = Workdir::new();
    let table = workdir.out(&["run", "mock.toml", "--out", "o"], 0);
    let again = workdir.out(&["report", "o", "--format", "table"], 0);
    assert!(table.starts_with(&again), "{again}");
    workdir.out(&["run", "mock.toml", "--out", "p", "--set", "workload.ops_per_s=110.0"], 0);
    let compared = workdir.out(&["compare", "o", "p", "--metric", "ops_per_s"], 0);
    assert!(compared.contains("1.100"), "{compared}");
}

#[test]
fn a_full_output_is_an_error_and_a_closed_one_is_not() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mglru"));
    if let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") {
        let output = program.args(["list", "counters"]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("mglru: error: stdout: "), "{stderr}");
    }
    let mut gone = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let writer = gone.stdin.take().unwrap();
    gone.wait().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_mglru"));
    let output = program.args(["list", "counters"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
