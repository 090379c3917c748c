//! Traces that the program writes: replays of them count what replays of the originals count.

use std::fs;

use serde_json::Value;

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
    let told = workdir.out(&["trace", "import", "hm.csv", "a.mtr", "--from", "msr"], 0);
    assert!(told.starts_with("a.mtr: 3000 events, "), "{told}");
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
    let told = workdir.refused(&["trace", "import", "hm.csv", "a.mtr", "--from", "msr"]);
    assert!(told.contains("hm.csv: line 3001: expected an operation"), "{told}");
    let told = workdir.refused(&["trace", "anonymize", "hm.csv", "a.mtr"]);
    assert!(told.contains("hm.csv: no compact trace: convert or import it first"), "{told}");
    workdir.refused(&["trace", "convert", "missing", "a.mtr"]);
    let told = workdir.refused(&["trace", "convert", "hm.csv", "no/a.mtr"]);
    assert!(told.contains("no/a.mtr: "), "{told}");
    let files = fs::read_dir(workdir.path()).unwrap().flatten();
    let names: Vec<_> = files.map(|file| file.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("mtr")), "{names:?}");
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(".tmp")), "{names:?}");
}

#[test]
fn a_recorded_program_keeps_its_output_and_status_and_its_trace_has_a_curve() {
    if std::process::Command::new("qemu-x86_64").arg("--version").output().is_err() {
        println!("skipped: needs qemu-x86_64 (mglru doctor --install)");
        return;
    }
    let workdir = Workdir::new();
    let command = "seq 20000 | sort -r | tail -n 1; exit 5";
    let output = workdir.run(&["trace", "record", "--", "sh", "-c", command]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(5), &b"1\n"[..]));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("sh.mtr: ") && told.contains("\n4 processes, "), "{told}");
    let curve = workdir.out(&["trace", "mrc", "sh.mtr"], 0);
    assert!(curve.contains("sh: "), "{curve}");
    let told = workdir.refused(&["trace", "record", "--window", "5000", "--", "true"]);
    assert!(told.contains("--window") && told.contains("a power of two"), "{told}");
    workdir.refused(&["trace", "record", "--out", "no/t.mtr", "--", "true"]);
}
