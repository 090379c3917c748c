//! Traces through the program: every format, every kind of compression, pipes, and damaged input,
//! which is answered right or with one line and status 2.

use std::fs;
use std::io::Write;
use std::process::{Command, Output};

use serde_json::Value;

use crate::workdir::Workdir;

const REPLAY: &str = "--policy lru,min,after --size 10% --format json";

/// 2000 requests for 200 pages.
fn pages() -> Vec<u32> {
    (0..2000u32).map(|i| (i + i / 200 * i % 17) % 200).collect()
}

/// The same trace in every format.
fn every_format() -> Vec<(&'static str, Vec<u8>)> {
    let text = |head: &str, line: fn(u32) -> String| {
        pages().into_iter().fold(head.to_string(), |text, page| text + &line(page)).into_bytes()
    };
    let oracle = |page: u32| [&[0; 4], &u64::from(page).to_le_bytes()[..], &[0; 12]].concat();
    vec![
        ("a.trc", text("*\n", |page| format!("{page}\n"))),
        ("a.lis", text("", |page| format!("{page} 1 0 0\n"))),
        ("a.u32", pages().into_iter().flat_map(u32::to_le_bytes).collect()),
        ("lcs.csv", text("version,time,op,size,lbn\n", |page| format!("1,0,28,512,{page}\n"))),
        ("a.addr", text("", |page| format!("l {:#x} 1\n", u64::from(page) << 12))),
        ("a.plain", text("# by hand\r\n", |page| format!("{page:#x}\r\n"))),
        ("a.csv", text("\u{feff}time,page\r", |page| format!("0,{page}\r"))),
        ("a.oracleGeneral", pages().into_iter().flat_map(oracle).collect()),
    ]
}

fn write(workdir: &Workdir, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(workdir.path().join(name), bytes).unwrap();
}

fn replay(workdir: &Workdir, name: &str, options: &str) -> Value {
    let args: Vec<&str> = ["trace", "replay", name].into_iter().chain(options.split(' ')).collect();
    serde_json::from_str(&workdir.out(&args, 0)).unwrap()
}

/// Runs a script in `sh`, in which `$M` is the program.
fn shell(workdir: &Workdir, script: &str) -> Output {
    let mut bash = Command::new("bash");
    bash.env("M", env!("CARGO_BIN_EXE_mglru")).current_dir(workdir.path());
    bash.args(["-c", script]).output().unwrap()
}

/// The line that a script ends with, refused with status 2.
fn refused(workdir: &Workdir, script: &str) -> String {
    let output = shell(workdir, script);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{script}: {stderr}");
    assert!(output.stdout.is_empty() && stderr.matches('\n').count() == 1, "{script}: {stderr}");
    stderr
}

type Pack = fn(&[u8]) -> Vec<u8>;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// As pzstd writes: each frame behind one that says how long it is.
fn pzstd(bytes: &[u8]) -> Vec<u8> {
    let frame = |part: &[u8]| {
        let frame = zstd(part);
        let length = (frame.len() as u32).to_le_bytes();
        [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0], &length[..], &frame].concat()
    };
    bytes.chunks(bytes.len().div_ceil(3)).flat_map(frame).collect()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const PACKS: [Pack; 6] = [gzip, zstd, pzstd, xz, bzip2, lz4];

#[test]
fn every_format_and_compression_is_one_trace() {
    let workdir = Workdir::new();
    let mut expected = None;
    for (name, bytes) in every_format() {
        write(&workdir, name, &bytes);
        let report = replay(&workdir, name, REPLAY);
        assert_eq!((&report["requests"], &report["unique"]), (&2000.into(), &200.into()), "{name}");
        let expected = expected.get_or_insert_with(|| report["results"].clone());
        assert_eq!(report["results"], *expected, "{name}");
        for pack in PACKS {
            write(&workdir, name, pack(&bytes));
            let report = replay(&workdir, name, "--policy lru,min --size 10% --format json");
            let flat = expected.as_array().unwrap()[..2].to_vec();
            assert_eq!(report["results"], Value::from(flat), "{name}");
        }
    }
}

#[test]
fn the_largest_pages_count_in_caches_in_the_machine_and_in_plans() {
    let workdir = Workdir::new();
    write(
        &workdir,
        "a.csv",
        "page\n18446744073709551615\n4503599627370496\n18446744073709551615\n1\n",
    );
    write(&workdir, "b", "0xffffffffffffffff\n4503599627370496\n18446744073709551615\n1\n");
    for name in ["a.csv", "b"] {
        for view in ["", " --pages"] {
            let options = format!("--policy lru,min,after --size 64 --format json{view}");
            let report = replay(&workdir, name, &options);
            assert_eq!((&report["requests"], &report["unique"]), (&4.into(), &3.into()), "{name}");
            for result in report["results"].as_array().unwrap() {
                assert_eq!(result["misses"], 3, "{name} {result}");
            }
        }
        let path = format!("workload.path={name}");
        let sets = ["--set", &path, "--set", "workload.cache=64", "--format", "json"];
        let text = workdir.out(&[&["run", "trace", "--jobs", "1"], &sets[..]].concat(), 0);
        let report: Value = serde_json::from_str(&text).unwrap();
        for record in report["records"].as_array().unwrap() {
            assert_eq!(record["custom"]["misses"], 3, "{name} {}", record["variant"]);
        }
        let sparse = ["run", "trace", "--set", &path, "--set", "workload.dense=false"];
        let message = workdir.refused(&sparse);
        assert!(message.contains("pages in one file (dense = true leaves no holes)"), "{message}");
    }
}

#[test]
fn holes_that_no_machine_can_hold_are_refused() {
    let workdir = Workdir::new();
    write(&workdir, "t", "1\n2251799813685247\n5\n");
    let sets = ["--set", "workload.path=t", "--set", "workload.dense=false"];
    let output = workdir.run(&[&["run", "trace", "--variant", "after"], &sets[..]].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "file t: 2251799813685248 pages, at most 2147483648\n";
    assert!(output.status.code() == Some(2) && stderr.ends_with(expected), "{stderr}");
}

#[test]
fn a_pipe_is_read_as_often_as_policies_need() {
    let workdir = Workdir::new();
    for (name, bytes) in every_format() {
        write(&workdir, name, bytes);
    }
    let expected = replay(&workdir, "a.lis", REPLAY)["results"].clone();
    let scripts = [
        format!("cat a.lis | $M trace replay - {REPLAY}"),
        format!("cat a.lis | $M trace replay /dev/stdin {REPLAY}"),
        format!("gzip -c a.lis | $M trace replay /proc/self/fd/0 {REPLAY}"),
        format!("$M trace replay - {REPLAY} < a.lis"),
        format!("$M trace replay <(cat a.csv) {REPLAY}"),
        format!("mkfifo p; cat a.u32 > p & $M trace replay p --trace-format u32le {REPLAY}"),
    ];
    for script in scripts {
        let output = shell(&workdir, &script);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{script}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["results"], expected, "{script}");
    }
    let info = shell(&workdir, "cat a.lis | $M trace info - --format json");
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!((&info["requests"], &info["format"]), (&2000.into(), &"arc-lis".into()));
}

#[test]
fn a_pipe_that_cannot_be_kept_is_refused() {
    let workdir = Workdir::new();
    // A limit of the file's size stands for a full disk: writes fail at the same place.
    let full = "trap '' XFSZ; ulimit -f 8; yes 5 | head -100000 | TMPDIR=. $M trace replay -";
    let message = refused(&workdir, &format!("{full} --policy lru,min --size 1"));
    assert!(
        message.starts_with("mglru: error: /dev/stdin: cannot keep what this pipe holds in .: ")
    );
    let nowhere = "echo 5 | TMPDIR=./nowhere $M trace replay - --policy lru --size 1";
    assert!(refused(&workdir, nowhere).contains("cannot keep what this pipe holds in ./nowhere"));
    let plan = refused(&workdir, "echo 5 | $M run trace --set workload.path=/dev/stdin");
    assert!(plan.contains("workload.path = /dev/stdin: can be read once"), "{plan}");
    let empty = refused(&workdir, ": | $M trace replay - --policy lru,after --size 1");
    assert_eq!(empty, "mglru: error: /dev/stdin: the trace holds no requests\n");
}

#[test]
fn a_guessed_format_is_named_with_the_others_and_the_option() {
    let workdir = Workdir::new();
    write(&workdir, "t", "time,page\n1,x\n");
    let message = workdir.refused(&["trace", "info", "t"]);
    let expected = "mglru: error: t: line 2: expected a number in column 2, found \"1,x\"; \
        read as csv (guessed from the content; others: lirs, arc-lis, u32le, lcs-csv, \
        ucsd-address, plain, oracle-general, compact); --trace-format NAME chooses\n";
    assert_eq!(message, expected);
    let message = workdir.refused(&["run", "trace", "--set", "workload.path=t"]);
    assert!(message.ends_with("; workload.format = NAME chooses\n"), "{message}");
    let message = workdir.refused(&["trace", "info", "t", "--trace-format", "csv"]);
    assert!(!message.contains("guessed") && !message.contains("chooses"), "{message}");
    write(&workdir, "t", "hello world\n");
    let message = workdir.refused(&["trace", "info", "t"]);
    assert!(
        message.contains("name it (lirs, ") && message.ends_with("NAME chooses\n"),
        "{message}"
    );
}

#[test]
fn what_is_no_trace_is_named() {
    let workdir = Workdir::new();
    let cases: [(&[u8], &str); 6] = [
        (b"PK\x03\x04\x14\0\0\0", "a zip archive"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"),
        (b"LZIP\x01\x0c\0\0", "an lzip stream"),
        (b"\x1f\x9d\x90\x31\x14\0\0\0", "a compress (.Z) stream"),
        (b"\x93NUMPY\x01\0", "a numpy file"),
        (b"1\n2\n3\n4\n", "text, where u32le has binary records"),
    ];
    for (bytes, what) in cases {
        write(&workdir, "t", bytes);
        let message = workdir.refused(&["trace", "info", "t", "--trace-format", "u32le"]);
        assert!(message.starts_with(&format!("mglru: error: t: {what}")), "{message}");
        write(&workdir, "t", gzip(bytes));
        workdir.refused(&["trace", "info", "t", "--trace-format", "u32le"]);
    }
}

/// One of many ways to damage a trace.
fn mutant(original: &[u8], seed: usize) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let at = seed * 7919 % bytes.len();
    let huge: &[u8] = [&b"18446744073709551615"[..], b"18446744073709551616", b"-1"][seed % 3];
    match seed % 6 {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << (seed % 8),
        2 => drop(bytes.splice(at..at, b"junk \xff\0".iter().copied())),
        3 => drop(bytes.splice(at..at, huge.iter().copied())),
        4 => drop(bytes.splice(at..at, *b"\r\n")),
        _ => drop(bytes.drain(at..(at + 9).min(original.len()))),
    }
    bytes
}

#[test]
fn every_mutant_is_answered_or_refused_in_one_line() {
    let workdir = Workdir::new();
    let command = ["trace", "replay", "t", "--policy", "lru,min", "--size", "10%", "--pages"];
    for (name, bytes) in every_format() {
        let format = format_in(&workdir, name, &bytes);
        for (at, pack) in [None, Some(gzip as Pack), Some(pzstd)].into_iter().enumerate() {
            let original = pack.map_or_else(|| bytes.clone(), |pack| pack(&bytes));
            for seed in 0..30 {
                write(&workdir, "t", mutant(&original, seed * 3 + at));
                let output = workdir.run(&[&command[..], &["--trace-format", &format]].concat());
                let stderr = String::from_utf8(output.stderr).unwrap();
                let lines = stderr.matches('\n').count();
                match output.status.code() {
                    Some(0) => assert_eq!(stderr, "", "{name} {at} {seed}"),
                    status => {
                        assert_eq!((status, lines), (Some(2), 1), "{name} {at} {seed}: {stderr}");
                        assert!(output.stdout.is_empty() && stderr.contains("t: "), "{stderr}");
                    }
                }
            }
        }
    }
}

/// Name of the format that a whole trace is expected to have.
fn format_in(workdir: &Workdir, name: &str, bytes: &[u8]) -> String {
    write(workdir, name, bytes);
    let info: Value =
        serde_json::from_str(&workdir.out(&["trace", "info", name, "--format", "json"], 0))
            .unwrap();
    info["format"].as_str().unwrap().to_string()
}
