//! `mglru validate`: a few measured jobs, kept in the repository, against stated bounds; refusals.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::workdir::Workdir;

/// Twenty-one runs of Linux 6.12.117, both LRUs, every kind of access.
const SUBSET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth/subset.jsonl");

fn control(workdir: &Workdir, args: &[&str]) -> Json {
    let args = [&["control", "--truth", SUBSET, "--out", "out", "--format", "json"], args].concat();
    let output = workdir.run(&args);
    assert!(output.status.code() < Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn measured_jobs_are_met_within_bounds() {
    let workdir = Workdir::new();
    let found = control(&workdir, &["--jobs", "2"]);
    assert_eq!(found["runs"][0]["version"], "6.12.117");
    assert!(found["versions"]["6.12.117"]["on"]["reads"]["n"].as_u64() > Some(8));
    let all = &found["summary"]["all"];
    assert!(all["median_abs_rel_error"].as_f64() < Some(0.02), "{all}");
    assert!(all["p90_abs_rel_error"].as_f64() < Some(0.15), "{all}");
    assert!(all["n"].as_u64() > Some(25), "{all}");
    let runs = found["runs"].as_array().unwrap();
    let on = runs.iter().filter(|r| r["id"].as_str().unwrap().contains(".on."));
    for run in on {
        let is_full = run["id"].as_str().unwrap().starts_with("6mix.noswap");
        let most = if is_full { 0.02 } else { 0.10 };
        assert!(run["rel_error"].as_f64().unwrap().abs() < most, "{run}");
    }
    let again = control(&workdir, &[]);
    assert_eq!(again, found, "resumed from its records");
}

#[test]
fn the_program_holds_its_truth_and_replays_each_version_by_its_rules() {
    let workdir = Workdir::new();
    let args = ["--version", "7.1", "--version", "7.2.12", "--only", "2pread.z0.99_n20480"];
    let args = [&["validate", "--format", "json"], &args[..]].concat();
    let found = workdir.run(&args);
    assert!(found.status.code() < Some(2), "{}", String::from_utf8_lossy(&found.stderr));
    let found: Json = serde_json::from_slice(&found.stdout).unwrap();
    let versions: Vec<&String> = found["versions"].as_object().unwrap().keys().collect();
    assert_eq!(versions, ["7.1.13", "7.2.12"]);
    for lru in ["on", "off"] {
        let reads = found["versions"]["7.1.13"][lru]["reads"]["median_abs_rel_error"].as_f64();
        assert!(reads < Some(0.02), "{lru}: {reads:?}");
    }
    let folder = fs::read_dir(workdir.path().join("mglru-runs")).unwrap().flatten().next().unwrap();
    let records = fs::read_to_string(folder.path().join("records.jsonl")).unwrap();
    let variants = records.lines().map(|line| {
        let record: Json = serde_json::from_str(line).unwrap();
        record["variant"].as_str().unwrap().to_string()
    });
    let variants: std::collections::BTreeSet<String> = variants.collect();
    let want = ["k7.1", "k7.1+lru=classic", "k7.2", "k7.2+lru=classic"];
    assert_eq!(variants.iter().map(String::as_str).collect::<Vec<_>>(), want);
}

#[test]
fn what_was_not_measured_is_refused_by_name() {
    let workdir = Workdir::new();
    for (args, want) in [
        (
            "--version 7.1.1",
            "--version 7.1.1: no run was measured on it; known: 6.12.117, 7.1.13, 7.2.12, 7.3.4\n",
        ),
        ("--only nothing", "--only nothing: no run's id has it\n"),
    ] {
        let command: Vec<&str> = ["control"].into_iter().chain(args.split(' ')).collect();
        assert_eq!(workdir.refused(&command), format!("mglru: error: {want}"));
    }
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
}

#[test]
fn bad_truth_is_one_line_that_names_file_and_line() {
    let workdir = Workdir::new();
    let good = fs::read_to_string(SUBSET).unwrap();
    let first = good.lines().next().unwrap();
    let cases = [
        (String::new(), "t.jsonl: holds no record"),
        (format!("{first}\nnonsense\n"), "t.jsonl:2: no record of a run: expected "),
        (format!("{first}\n{}", &first[..90]), "t.jsonl:2: the line is cut short"),
        (first.replace("\"mglru\":1", "\"mglru\":7"), "t.jsonl:1: mglru = 7: must be 0 or 1"),
        (
            first.replace("region kind=", "region kinds="),
            "t.jsonl: no job can be replayed; the first its job: ",
        ),
    ];
    for (text, want) in cases {
        fs::write(workdir.path().join("t.jsonl"), &text).unwrap();
        let message = workdir.refused(&["control", "--truth", "t.jsonl"]);
        assert!(message.starts_with(&format!("mglru: error: {want}")), "{message}{want}");
        assert_eq!(message.matches('\n').count(), 1, "{message}");
    }
    let message = workdir.refused(&["control", "--truth", "missing.jsonl"]);
    assert!(message.starts_with("mglru: error: missing.jsonl: No such file"), "{message}");
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
    assert!(Path::new(SUBSET).exists());
}
