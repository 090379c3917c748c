//! The plan `trace`: variants in the machine beside exact LRU and the optimum, on one string.

use std::fs;

use rayon::prelude::*;
use serde_json::Value;

use crate::workdir::Workdir;

#[path = "../../../mglru-traces/tests/support/folder.rs"]
mod traces;

fn report(workdir: &Workdir, path: &str, sets: &[&str]) -> Value {
    let path = format!("workload.path={path}");
    let mut args = vec!["run", "trace", "--format", "json", "--jobs", "1", "--set", &path];
    sets.iter().for_each(|set| args.extend(["--set", set]));
    serde_json::from_str(&workdir.out(&args, 0)).unwrap()
}

fn figure(report: &Value, variant: &str, name: &str) -> u64 {
    let records = report["records"].as_array().unwrap();
    let record = records.iter().find(|r| r["variant"] == variant).unwrap();
    record["custom"][name].as_u64().unwrap()
}

/// Misses of `lru` and `min` as the flat caches count them.
fn flat(workdir: &Workdir, path: &str, size: &str) -> Vec<u64> {
    let args = ["trace", "replay", path, "--pages", "--policy", "lru,min", "--size", size];
    let text = workdir.out(&[&args[..], &["--format", "json"]].concat(), 0);
    let report: Value = serde_json::from_str(&text).unwrap();
    let results = report["results"].as_array().unwrap();
    results.iter().map(|r| r["misses"].as_u64().unwrap()).collect()
}

#[test]
fn bounds_are_the_flat_caches_and_no_variant_beats_the_optimum() {
    let Some(folder) = traces::folder() else { return };
    let text = fs::read_to_string(folder.join("manifest.json")).unwrap();
    let traces: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!traces.is_empty());
    traces.par_iter().for_each(|trace| {
        let workdir = Workdir::new();
        let path = folder.join(trace["file"].as_str().unwrap()).display().to_string();
        let report = report(&workdir, &path, &[]);
        let bounds = flat(&workdir, &path, "10%");
        let misses = |variant| figure(&report, variant, "misses");
        assert_eq!([misses("lru"), misses("min")], bounds[..], "{path}");
        for variant in ["before", "after", "classic"] {
            assert!(misses(variant) >= misses("min"), "{path} {variant}");
            assert!(misses(variant) <= figure(&report, variant, "accesses"), "{path} {variant}");
        }
        assert_eq!(report["verdict"], "reproduced", "{path}");
        assert_eq!(report["controls"].as_array().unwrap().len(), 4, "{path}");
    });
}

/// 30 passes over 400 pages, of which every fifth request is a write.
fn passes(workdir: &Workdir) {
    let kind = |i: u64| if i.is_multiple_of(5) { 's' } else { 'l' };
    let line = |i: u64| format!("{} {:#x} 1\n", kind(i), (i % 400) << 12);
    let text: String = (0..12_000).map(line).collect();
    fs::write(workdir.path().join("t.addr"), text).unwrap();
}

#[test]
fn with_room_for_all_everyone_misses_once_a_page() {
    let workdir = Workdir::new();
    passes(&workdir);
    let report = report(&workdir, "t.addr", &["workload.cache=100%"]);
    for variant in ["before", "after", "classic", "lru", "min"] {
        assert_eq!(figure(&report, variant, "misses"), 400, "{variant}");
    }
}

#[test]
fn sizes_are_shares_pages_or_bytes_and_a_list_is_a_sweep() {
    let workdir = Workdir::new();
    passes(&workdir);
    let report = report(&workdir, "t.addr", &["workload.cache=[\"50%\", 200, \"800KiB\"]"]);
    let records = report["records"].as_array().unwrap();
    let of = |variant: &str| {
        let mine = records.iter().filter(|r| r["variant"] == variant);
        mine.map(|r| r["custom"]["misses"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    for variant in ["after", "lru", "min"] {
        let misses = of(variant);
        assert_eq!((misses.len(), misses[0], misses[0]), (3, misses[1], misses[2]), "{variant}");
    }
    assert_eq!(of("lru")[0], 12_000, "a loop larger than the cache never hits");
}

#[test]
fn a_bound_refuses_what_it_cannot_answer() {
    let workdir = Workdir::new();
    passes(&workdir);
    let set = ["--set", "workload.path=t.addr", "--set", "workload.writes=true"];
    let message = workdir.refused(&[&["run", "trace", "--variant", "lru"], &set[..]].concat());
    assert!(message.contains("lru seed 1: a flat cache only reads pages of files"), "{message}");
}

#[test]
fn a_group_too_small_to_run_is_reported() {
    let workdir = Workdir::new();
    passes(&workdir);
    let set = ["--set", "workload.path=t.addr", "--set", "workload.cache=1"];
    let output = workdir.run(&[&["run", "trace", "--variant", "after"], &set[..]].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    // One page is enough for one task, unless its reads need more at a time.
    match output.status.code() {
        Some(0) => assert_eq!(stderr, ""),
        status => {
            assert_eq!(status, Some(2), "{stderr}");
            assert!(stderr.contains("too small"), "{stderr}");
        }
    }
}
