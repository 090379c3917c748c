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
        let message = workdir.refused(&["run", "booted.toml", "--until", moment]);
        assert!(message.contains("want accesses (64000), a time"), "{moment}: {message}");
    }
    let message = workdir.refused(&["run", "booted.toml", "--until", "5"]);
    assert!(
        message.contains("--until ends booted runs of a workload (--backend kernel)"),
        "{message}"
    );
    let message = workdir.refused(&["run", "all", "--until", "5"]);
    assert!(message.starts_with("mglru: error: --until: one plan's runs end there"), "{message}");
}

#[test]
fn a_run_ends_after_an_access_the_same_way_each_time() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let stdout = ended(&workdir, "3000", "a", &[]);
    assert!(stdout.starts_with("k6.12 seed 1: access 3000, "), "{stdout}");
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
    let stdout = ended(&workdir, "mm_vmscan_memcg_reclaim_begin", "a", &[]);
    let last = kept(&workdir, "a", "trace").lines().last().unwrap().to_string();
    assert!(last.contains("mm_vmscan_memcg_reclaim_begin"), "{last}\n{stdout}");
    let stdout = ended(&workdir, "20ms", "b", &[]);
    let ms = stdout.split(", ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let ms: f64 = ms.parse().unwrap();
    // The other process comes first in the report, and the guest has one processor's time for both.
    assert!((20.0..200.0).contains(&ms), "{stdout}");
    let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12", "--out", "c"];
    let message =
        workdir.refused(&[&run[..], &["--seeds", "1", "--until", "no_such_event"]].concat());
    assert!(message.contains("--until no_such_event: the kernel has no such event"), "{message}");
    let message = workdir.refused(&[&run[..], &["--seeds", "1", "--until", "9000000"]].concat());
    assert!(message.contains("the work was over before, after 40000 accesses"), "{message}");
}
