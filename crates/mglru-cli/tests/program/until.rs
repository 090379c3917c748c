//! `mglru run --until`: booted runs that end at a moment.

use std::fs;

use crate::booted::{can_boot, plan};
use crate::workdir::Workdir;

/// Ends a small booted run at a moment and returns what was said.
fn ended(workdir: &Workdir, moment: &str, out: &str, more: &[&str]) -> String {
    let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12", "--out", out];
    workdir.out(&[&run[..], &["--seeds", "1", "--until", moment], more].concat(), 0)
}

/// Reads a file of the only run that ended in a folder.
fn kept(workdir: &Workdir, out: &str, file: &str) -> String {
    let folder = fs::read_dir(workdir.path().join(out).join("until")).unwrap().flatten().next();
    fs::read_to_string(folder.unwrap().path().join(file)).unwrap()
}

#[test]
fn moments_that_are_none_are_refused() {
    let workdir = Workdir::new();
    plan(&workdir);
    for moment in ["", "0", "5m", "1.5", "a/b"] {
        let told = workdir.refused(&["run", "booted.toml", "--until", moment]);
        assert!(told.contains("want accesses (64000), a time"), "{moment}: {told}");
    }
    let told = workdir.refused(&["run", "booted.toml", "--until", "5"]);
    assert!(told.contains("--until ends booted runs of a workload (--backend kernel)"), "{told}");
    let told = workdir.refused(&["run", "all", "--until", "5"]);
    assert!(told.starts_with("mglru: error: --until: one plan's runs end there"), "{told}");
}

#[test]
fn a_run_ends_after_an_access_the_same_way_each_time() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let told = ended(&workdir, "3000", "a", &[]);
    assert!(told.starts_with("k6.12 seed 1: access 3000, "), "{told}");
    ended(&workdir, "3000", "b", &[]);
    for file in ["vmstat", "lru_gen", "touch.memory.stat", "f0.pages"] {
        let (a, b) = (kept(&workdir, "a", file), kept(&workdir, "b", file));
        assert!(a == b && !a.is_empty(), "{file}:\n{a}\n{b}");
    }
}

#[test]
fn a_run_ends_at_an_event_or_a_time() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    // The group's limit is reached: the first reclaim is the last thing traced.
    let told = ended(&workdir, "mm_vmscan_memcg_reclaim_begin", "a", &[]);
    let last = kept(&workdir, "a", "trace").lines().last().unwrap().to_string();
    assert!(last.contains("mm_vmscan_memcg_reclaim_begin"), "{last}\n{told}");
    let told = ended(&workdir, "20ms", "b", &[]);
    let ms = told.split(", ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let ms: f64 = ms.parse().unwrap();
    // The other process is told first, and the guest has one processor's time for both.
    assert!((20.0..200.0).contains(&ms), "{told}");
    let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12", "--out", "c"];
    let told = workdir.refused(&[&run[..], &["--seeds", "1", "--until", "no_such_event"]].concat());
    assert!(told.contains("--until no_such_event: the kernel has no such event"), "{told}");
    let told = workdir.refused(&[&run[..], &["--seeds", "1", "--until", "9000000"]].concat());
    assert!(told.contains("the work was over before, after 40000 accesses"), "{told}");
}
