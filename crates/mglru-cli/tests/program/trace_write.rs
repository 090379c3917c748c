//! Traces that the program writes: replays of them count what replays of the originals count.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use mglru_pager::launch::malloc;
use serde_json::Value;

use crate::steer::lacking;
use crate::workdir::Workdir;

/// Runs of pages, some of them again and again, every fifth a write.
fn rows() -> String {
    let row = |i: u64| {
        let kind = if i.is_multiple_of(5) { "Write" } else { "Read" };
        let page = i * i % 977 + i % 3 * 100_000;
        format!("{},hm,{},{kind},{},6000,7\n", 10_000_000 * i, i % 2, page << 12)
    };
    (0..3000).map(row).collect()
}

fn misses(workdir: &Workdir, name: &str, more: &[&str]) -> Value {
    let args = ["trace", "replay", name, "--policy", "lru,min,sieve", "--size", "1,10%,50%"];
    let text = workdir.out(&[&args[..], &["--format", "json"], more].concat(), 0);
    serde_json::from_str::<Value>(&text).unwrap()["results"].clone()
}

#[test]
fn converted_traces_replay_alike_in_both_forms() {
    let workdir = Workdir::new();
    let text: String = (0..5000u32).map(|i| format!("{} 3 0 0\n", i * i % 701)).collect();
    fs::write(workdir.path().join("t.lis"), text).unwrap();
    for view in [&[][..], &["--pages"]] {
        let expected = misses(&workdir, "t.lis", view);
        workdir.out(&[&["trace", "convert", "t.lis", "t.mtr"][..], view].concat(), 0);
        workdir.out(&["trace", "convert", "t.mtr", "t.csv"], 0);
        workdir.out(&["trace", "convert", "t.csv", "again.mtr"], 0);
        for name in ["t.mtr", "t.csv", "again.mtr"] {
            assert_eq!(misses(&workdir, name, &[]), expected, "{name} {view:?}");
        }
    }
    let info = workdir.out(&["trace", "info", "t.mtr", "--format", "json"], 0);
    assert!(info.contains("\"format\":\"compact\""), "{info}");
}

#[test]
fn imported_and_anonymized_traces_replay_alike() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("hm.csv"), rows()).unwrap();
    let stdout = workdir.out(&["trace", "import", "hm.csv", "a.mtr", "--from", "msr"], 0);
    assert!(stdout.starts_with("a.mtr: 3000 events, "), "{stdout}");
    let columns = "time=1,space=3,op=4,offset=5,size=6";
    let described = ["--columns", columns, "--time-unit", "100ns"];
    workdir.out(&[&["trace", "import", "hm.csv", "b.mtr"][..], &described].concat(), 0);
    let expected = misses(&workdir, "a.mtr", &[]);
    assert_eq!(misses(&workdir, "b.mtr", &[]), expected);
    workdir.out(&["trace", "anonymize", "a.mtr", "c.mtr"], 0);
    workdir.out(&["trace", "anonymize", "a.mtr", "d.mtr"], 0);
    assert_eq!(misses(&workdir, "c.mtr", &[]), expected);
    let bytes = |name: &str| fs::read(workdir.path().join(name)).unwrap();
    assert_ne!(bytes("c.mtr"), bytes("d.mtr"), "each has a key of its own");
}

#[test]
fn what_cannot_be_written_leaves_nothing_and_says_why() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("hm.csv"), rows() + "1,hm,0,Erase,0,1,1\n").unwrap();
    let message = workdir.refused(&["trace", "import", "hm.csv", "a.mtr", "--from", "msr"]);
    assert!(message.contains("hm.csv: line 3001: expected an operation"), "{message}");
    let message = workdir.refused(&["trace", "anonymize", "hm.csv", "a.mtr"]);
    assert!(message.contains("hm.csv: no compact trace: convert or import it first"), "{message}");
    workdir.refused(&["trace", "convert", "missing", "a.mtr"]);
    let message = workdir.refused(&["trace", "convert", "hm.csv", "no/a.mtr"]);
    assert!(message.contains("no/a.mtr: "), "{message}");
    let files = fs::read_dir(workdir.path()).unwrap().flatten();
    let names: Vec<_> = files.map(|file| file.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("mtr")), "{names:?}");
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(".tmp")), "{names:?}");
}

#[test]
fn a_recorded_program_keeps_its_output_and_status_and_its_trace_has_a_curve() {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        println!("skipped: needs qemu-x86_64 (mglru doctor --install)");
        return;
    }
    let workdir = Workdir::new();
    let command = "seq 20000 | sort -r | tail -n 1; exit 5";
    let output = workdir.run(&["trace", "record", "--", "sh", "-c", command]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(5), &b"1\n"[..]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("sh.mtr: ") && stderr.contains("\n4 processes, "), "{stderr}");
    let curve = workdir.out(&["trace", "mrc", "sh.mtr"], 0);
    assert!(curve.contains("sh: "), "{curve}");
    let message = workdir.refused(&["trace", "record", "--window", "5000", "--", "true"]);
    assert!(message.contains("--window") && message.contains("a power of two"), "{message}");
    workdir.refused(&["trace", "record", "--out", "no/t.mtr", "--", "true"]);
}

/// Links are followed, and pipes and devices are written to: none is replaced.
#[test]
fn only_a_file_is_replaced_by_a_trace() {
    let workdir = Workdir::new();
    let at = |name: &str| workdir.path().join(name);
    fs::write(at("hm.csv"), rows()).unwrap();
    let import = |to: &str| workdir.out(&["trace", "import", "hm.csv", to, "--from", "msr"], 0);
    import("a.mtr");
    std::os::unix::fs::symlink("b.mtr", at("link")).unwrap();
    fs::write(at("b.mtr"), "").unwrap();
    import("link");
    assert!(at("link").is_symlink());
    assert_eq!(fs::read(at("b.mtr")).unwrap(), fs::read(at("a.mtr")).unwrap());
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let pipe = at("pipe");
    let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
    import("pipe");
    assert_eq!(reader.join().unwrap(), fs::read(at("a.mtr")).unwrap());
    assert!(!at("pipe").is_file());
    // What a shell's `>>` opened keeps what it has.
    fs::write(at("log"), "first").unwrap();
    for to in ["-", "/dev/stdout"] {
        let log = fs::File::options().append(true).open(at("log")).unwrap();
        let mut import = workdir.command(&["trace", "import", "hm.csv", to, "--from", "msr"]);
        assert!(import.stdout(log).status().unwrap().success());
    }
    let trace = fs::read(at("a.mtr")).unwrap();
    assert_eq!(fs::read(at("log")).unwrap(), [b"first", &trace[..], &trace].concat());
}

/// A signal to the recording process ends the program, and what it did is kept.
#[test]
fn a_recording_that_is_asked_to_end_keeps_its_trace() {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        return println!("skipped: needs qemu-x86_64 (mglru doctor --install)");
    }
    let workdir = Workdir::new();
    // What a killed process did last is lost; the first `sleep` has ended by itself.
    let script = "sleep 0; echo on; exec sleep 600";
    let args = ["trace", "record", "--out", "t.mtr", "--", "sh", "-c", script];
    let mut child = workdir.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "on\n");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let names = fs::read_dir(workdir.path()).unwrap().flatten().map(|file| file.file_name());
    let names: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(names.is_empty(), "{names:?}");
    workdir.out(&["trace", "info", "t.mtr"], 0);
}

#[test]
fn a_signal_leaves_no_unfinished_file() {
    let workdir = Workdir::new();
    let args = ["trace", "import", "-", "t.mtr", "--from", "blkparse"];
    let mut child = workdir.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let files = || fs::read_dir(workdir.path()).unwrap().flatten().map(|file| file.file_name());
    let is_hidden = |name: &std::ffi::OsString| name.to_string_lossy().starts_with('.');
    while !files().any(|name| is_hidden(&name)) {
        assert!(child.try_wait().unwrap().is_none(), "it waits for its input");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(2));
    assert!(!files().any(|name| is_hidden(&name)), "{:?}", files().collect::<Vec<_>>());
}

/// Stores to 24 MiB twice over, then loads them twice.
const TOUCHES: &str = "m = bytearray(24 << 20)
for n in range(2):
    for at in range(0, len(m), 4096): m[at] = n
for n in range(2):
    for at in range(0, len(m), 4096): m[at]
raise SystemExit(7)";

#[test]
fn the_help_and_the_refusal_of_an_import_name_every_recording() {
    let workdir = Workdir::new();
    let help = workdir.out(&["trace", "import", "--help"], 0);
    let refusal = workdir.refused(&["trace", "import", "io.txt", "io.mtr"]);
    assert!(refusal.starts_with("mglru: error: io.txt: --from NAME says what it is (damon, "));
    for name in mglru_workload::trace::Source::known() {
        assert!(help.contains(name) && refusal.contains(name), "{name}: {help}{refusal}");
    }
    assert!(!workdir.path().join("io.mtr").exists());
}

#[test]
fn the_pager_sees_pages_that_come_back_to_a_program_under_a_budget() {
    if lacking(&["UFFDIO_MOVE and fork events"]) || malloc().is_none() {
        return println!("skipped: needs the pager and libjemalloc2");
    }
    let workdir = Workdir::new();
    let record = ["trace", "record", "--by", "pager"];
    let under = ["--memory.max", "16M", "--out", "t.mtr", "--", "python3", "-c", TOUCHES];
    let output = workdir.run(&[&record[..], &under].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(stderr.contains("t.mtr: "), "{stderr}");
    let info = workdir.out(&["trace", "info", "t.mtr", "--format", "json"], 0);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let number = |name: &str| info[name].as_u64().unwrap();
    assert!(number("unique") > 6000, "{info}");
    assert!(number("requests") > number("unique") * 3 / 2, "{info}");
    // A page that comes back from the compressed pool is loaded, not stored.
    assert!(number("reads") > number("unique") && number("writes") > number("unique"), "{info}");
    let left = fs::read_dir(workdir.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.filter(|name| name.to_string_lossy().contains("events")).count(), 0);
    for (options, problem) in [
        (&["--by", "pager"][..], "--memory.max <SIZE>"),
        (&["--by", "pager", "--memory.max", "1G", "--window", "4096"], "--window: only"),
        (&["--memory.max", "1G"], "--memory.max: only --by pager"),
    ] {
        let message = workdir.refused(&[&["trace", "record"], options, &["--", "true"]].concat());
        assert!(message.contains(problem), "{options:?}: {message}");
    }
}
