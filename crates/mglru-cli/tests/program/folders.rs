//! Run folders: where they cannot be written, who may write them, and what a full disk leaves.

use std::fs;
use std::process::{Command, Stdio};

use crate::workdir::Workdir;

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("file"), "x").unwrap();
    for out in ["file", "file/below"] {
        let message = workdir.refused(&["run", "mock.toml", "--out", out]);
        assert!(message.starts_with(&format!("mglru: error: {out}: ")), "{message}");
        assert_eq!(message.matches('\n').count(), 1, "{message}");
    }
    assert_eq!(workdir.read("file"), "x");
}

#[test]
fn two_processes_cannot_write_one_folder() {
    let workdir = Workdir::new();
    fs::create_dir(workdir.path().join("o")).unwrap();
    let held = fs::File::create(workdir.path().join("o/lock")).unwrap();
    held.lock().unwrap();
    let want = "another mglru is writing this folder; wait for it or take another --out";
    let message = workdir.refused(&["run", "mock.toml", "--out", "o"]);
    assert_eq!(message, format!("mglru: error: o: {want}\n"));
    assert!(!workdir.path().join("o/records.jsonl").exists());
    drop(held);
    workdir.out(&["run", "mock.toml", "--out", "o"], 0);
}

/// The shell bounds the size of files, and a write past it fails as on a full disk.
#[test]
fn a_full_disk_is_one_line_and_the_next_run_takes_up_where_it_stopped() {
    let workdir = Workdir::new();
    let seeds = ["run", "mock.toml", "--seeds", "20", "--jobs", "1"];
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_mglru")])
        .args(seeds)
        .args(["--out", "full"])
        .current_dir(workdir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("mglru: error: full/records.jsonl: File too large"), "{stderr}");
    assert_eq!((stderr.matches('\n').count(), output.stdout.len()), (1, 0), "{stderr}");
    let kept = workdir.read("full/records.jsonl");
    assert!(kept.ends_with('\n') && (1..40).contains(&kept.lines().count()), "{kept}");

    let again = workdir.run(&[&seeds[..], &["--out", "full"]].concat());
    let stderr = String::from_utf8(again.stderr).unwrap();
    let want = format!("mglru: {} records kept from earlier runs\n", kept.lines().count());
    assert_eq!((stderr, again.status.code()), (want, Some(0)));
    workdir.out(&[&seeds[..], &["--out", "whole"]].concat(), 0);
    assert_eq!(workdir.read("full/records.jsonl"), workdir.read("whole/records.jsonl"));
}

#[test]
fn a_narrower_run_into_a_folder_leaves_its_page_and_its_command() {
    let workdir = Workdir::new();
    let run = ["run", "mock.toml", "--out", "o"];
    workdir.out(&run, 0);
    let command = workdir.read("o/command");
    let narrow = workdir.run(&[&run[..], &["--variant", "after", "--seeds", "1"]].concat());
    assert_eq!(narrow.status.code(), Some(0));
    assert_eq!(workdir.read("o/command"), command);
    let page = workdir.read("o/report.html");
    assert!(page.contains("<p>6 runs.") && page.contains("25.0 % higher than under before"));
    let once = ["run", "mock.toml", "--out", "p", "--variant", "after", "--variant", "after"];
    assert!(workdir.out(&once, 0).starts_with("mock on mock: 3 records"));
}

#[test]
fn records_of_the_machine_are_the_same_bytes_whatever_the_jobs() {
    let workdir = Workdir::new();
    let run = ["run", "small.toml", "--seeds", "2", "--variant", "after", "--variant", "lru"];
    for (jobs, out) in [("1", "a"), ("2", "b"), ("1", "c")] {
        workdir.out(&[&run[..], &["--jobs", jobs, "--out", out]].concat(), 0);
    }
    let first = workdir.read("a/records.jsonl");
    assert_eq!(first.lines().count(), 4);
    assert_eq!(
        (&workdir.read("b/records.jsonl"), &workdir.read("c/records.jsonl")),
        (&first, &first)
    );
}
