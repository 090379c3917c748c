//! Small traces made by hand, whole and damaged, through the whole reader.

use std::fs;
use std::path::{Path, PathBuf};

use super::packed_tests::{PACKS, gzip, zstd};
use super::*;
use crate::op::{Op, Workload};

/// A trace file that is gone when the test ends.
pub(super) struct File(pub(super) PathBuf);

impl File {
    pub(super) fn new(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mglru-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

pub(super) fn read(file: &File, view: View) -> Result<Vec<(u64, bool)>, TraceError> {
    let mut reader = TraceReader::open(&file.0, None, view)?;
    let (mut block, mut all) = (Vec::new(), Vec::new());
    while reader.read_block(&mut block)? {
        all.extend(block.iter().map(|r| (r.page, r.write)));
    }
    Ok(all)
}

pub(super) fn pages(file: &File) -> Vec<u64> {
    read(file, View::Requests).unwrap().iter().map(|&(page, _)| page).collect()
}

pub(super) fn message(file: &File) -> String {
    let text = read(file, View::Requests).unwrap_err().to_string();
    assert!(!text.contains('\n') && text.contains(file.0.to_str().unwrap()), "{text:?}");
    text
}

/// Numbers of many lengths, enough of them for several buffers.
fn many_lines() -> (Vec<u64>, String) {
    let numbers: Vec<u64> = (0..200_000u64).map(|i| (i * i % 1_000_003) >> (i % 20)).collect();
    let text = numbers.iter().map(|n| format!("{n}\n")).collect();
    (numbers, text)
}

#[test]
fn every_text_format() {
    assert_eq!(pages(&File::new("a.trc", "5\r\n*\r\n\r\n7\r\n5")), [5, 7, 5]);
    assert_eq!(pages(&File::new("a.lis", "10 3 0 0\n4 1 0 1\n9 0 0 2\n")), [10, 11, 12, 4]);
    assert_eq!(pages(&File::new("a", "# x\n0x10\n3\n")), [16, 3]);
    let ucsd = File::new("a.addr", "s 0x1fff 1\nl 0x2000 22\n");
    assert_eq!(read(&ucsd, View::Requests).unwrap(), [(1, true), (2, false)]);
    let lcs = File::new("a.csv", "version,time,op,size,lbn\n1,0,2a,8192,12\n1,9,28,512,8");
    assert_eq!(read(&lcs, View::Requests).unwrap(), [(12, true), (8, false)]);
    let by_page = [(1, true), (2, true), (3, true), (1, false)];
    assert_eq!(read(&lcs, View::Pages).unwrap(), by_page);
    let csv = File::new("a.csv", "op,page\nread,1\n\nwrite,0x2\n");
    assert_eq!(read(&csv, View::Pages).unwrap(), [(1, false), (2, true)]);
}

#[test]
fn every_binary_format() {
    assert_eq!(pages(&File::new("a.u32", [1, 0, 0, 0, 0, 1, 0, 0])), [1, 256]);
    let mut record = vec![9; 4];
    record.extend(77u64.to_le_bytes());
    record.extend([1, 0, 0, 0]);
    record.extend((-1i64).to_le_bytes());
    assert_eq!(pages(&File::new("a.oracleGeneral", record.repeat(2))), [77, 77]);
}

#[test]
fn compression_is_recognised_by_content_and_blocks_join_seamlessly() {
    let (numbers, text) = many_lines();
    assert_eq!(pages(&File::new("a.trc", &text)), numbers);
    assert_eq!(pages(&File::new("a.trc", zstd(text.as_bytes()))), numbers);
    for (name, pack) in PACKS {
        assert_eq!(pages(&File::new("a.trc.zst", pack(text.as_bytes()))), numbers, "{name}");
    }
    let csv = format!("page\n{text}");
    assert_eq!(pages(&File::new("a.csv.gz", gzip(csv.as_bytes()))), numbers);
    let raw: Vec<u8> = numbers.iter().flat_map(|&n| (n as u32).to_le_bytes()).collect();
    assert_eq!(pages(&File::new("a.u32.zst", zstd(&raw))), numbers);
    let records: Vec<u8> =
        numbers.iter().flat_map(|n| [&[0; 4][..], &n.to_le_bytes(), &[0; 12]].concat()).collect();
    assert_eq!(pages(&File::new("a.oraclegeneral", records)), numbers);
}

/// The same three requests in every text format.
const LINES: [(&str, &[&str]); 6] = [
    ("a.trc", &["5", "7", "5"]),
    ("a.lis", &["5 1 0 0", "7 1 0 1", "5 1 0 2"]),
    ("a.addr", &["l 0x5000 1", "s 0x7000 1", "l 0x5008 1"]),
    ("a", &["5", "0x7", "5"]),
    ("a.csv", &["page,op", "5,r", "7,w", "5,r"]),
    ("b.csv", &["version,time,op,size,lbn", "1,0,28,512,5", "1,0,2a,512,7", "1,0,28,512,5"]),
];

#[test]
fn comments_marks_blank_lines_and_all_line_ends_are_read() {
    for (name, lines) in LINES {
        for end in ["\n", "\r\n", "\r"] {
            let heads = ["", "\u{feff}", "\u{feff}# a, b\r", "\n\r\n", "# 1 2 3 4\n  # x,y\n\n"];
            for head in heads {
                let between = format!("{end}# 9{end}{end} {end}");
                for text in [lines.join(end), lines.join(&between), lines.join(end) + end] {
                    let file = File::new(name, format!("{head}{text}"));
                    assert_eq!(pages(&file), [5, 7, 5], "{name} {head:?} {text:?}");
                }
            }
        }
    }
}

#[test]
fn lines_are_counted_whatever_ends_them() {
    for end in ["\n", "\r\n", "\r"] {
        let good = format!("1{end}").repeat(300_000);
        let text = message(&File::new("a.trc", format!("\u{feff}{good}# 9{end}{end}x{end}2")));
        assert!(text.contains("line 300003: expected one") && text.contains("\"x\""), "{text}");
    }
    let comments = "# a\n".repeat(100_000);
    let text = message(&File::new("a.csv", format!("{comments}page\n1\n\nx\n")));
    assert!(text.contains("line 100004"), "{text}");
}

#[test]
fn the_largest_page_counts_on_every_path() {
    const MOST: u64 = u64::MAX;
    let files = [
        File::new("a.trc", "18446744073709551615\n1\n18446744073709551614\n"),
        File::new("a", "0xffffffffffffffff\n1\n18446744073709551614\n"),
        File::new("a.lis", "18446744073709551615 1 0 0\n1 1 0 1\n18446744073709551614 1 0 2\n"),
        File::new("a.csv", "page\n18446744073709551615\n1\n18446744073709551614\n"),
        File::new("b.csv", "block\n0xffffffffffffffff\n1\n18446744073709551614\n"),
        File::new("a.oracleGeneral", [MOST, 1, MOST - 1].map(oracle).concat()),
    ];
    for file in &files {
        assert_eq!(pages(file), [MOST, 1, MOST - 1], "{:?}", file.0);
        assert_eq!(operations(&mut workload(file, Access::Pread, true)).len(), 6, "{:?}", file.0);
        let summary = Summary::of(TraceReader::open(&file.0, None, View::Requests).unwrap());
        let expected = Summary { requests: 3, writes: 0, unique: 3, highest: MOST };
        assert_eq!(summary.unwrap(), expected);
    }
    for file in &files[3..] {
        let by_page = read(file, View::Pages).unwrap();
        assert_eq!(by_page, [(MOST, false), (1, false), (MOST - 1, false)]);
    }
    let run = File::new("a.lis", "18446744073709551606 10 0 0\n");
    assert_eq!(pages(&run), (MOST - 9..=MOST).collect::<Vec<_>>());
}

fn oracle(id: u64) -> Vec<u8> {
    [&[0; 4][..], &id.to_le_bytes(), &[0; 12]].concat()
}

#[test]
fn a_pipe_is_read_more_than_once() {
    let folder = File::new("a.trc", "1\n2\n1\n");
    let pipe = folder.0.with_file_name("pipe.trc");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(is_pipe(&pipe) && !is_pipe(&folder.0));
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, "7\n8\n7\n".repeat(50_000)).unwrap()
    });
    let file = TraceFile::open(&pipe).unwrap();
    writer.join().unwrap();
    for _ in 0..2 {
        let summary = Summary::of(file.reader(None, View::Requests).unwrap()).unwrap();
        assert_eq!((summary.requests, summary.unique), (150_000, 2));
    }
}

#[test]
fn devices_have_no_end() {
    let open = |path| TraceReader::open(Path::new(path), Some(Format::U32le), View::Requests);
    assert!(open("/dev/zero").err().unwrap().to_string().contains("a device"));
    assert!(open("/dev/null").err().unwrap().to_string().contains("no requests"));
}

#[test]
fn a_range_longer_than_a_block_streams() {
    let file = File::new("a.lis", "5 1000000 0 0\n1 1 0 1\n");
    let expected: Vec<u64> = (5..1_000_005).chain([1]).collect();
    assert_eq!(pages(&file), expected);
}

#[test]
fn truncated_and_corrupt_streams_are_refused() {
    let (_, text) = many_lines();
    for (stream, pack) in PACKS {
        let packed = pack(text.as_bytes());
        for cut in [packed.len() / 2, packed.len() - 1] {
            let text = message(&File::new("a.trc", &packed[..cut]));
            assert!(text.contains("truncated") && text.contains(stream), "{text}");
        }
        let mut corrupt = packed;
        let middle = corrupt.len() / 2;
        corrupt[middle..middle + 64].fill(0x55);
        message(&File::new("a.trc", corrupt));
    }
}

#[test]
fn bad_lines_name_line_and_expectation() {
    let text = message(&File::new("a.trc", "1\n2\nx\u{1b}[0m\n"));
    assert!(text.contains("line 3: expected one decimal") && text.contains(r"x\x1b[0m"), "{text}");
    let (_, good) = many_lines();
    let text = message(&File::new("a.trc", good + "oops"));
    assert!(text.contains("line 200001") && text.contains("\"oops\""), "{text}");
    let text = message(&File::new("a.lis", "1 2 0 0\n3 4 0"));
    assert!(text.contains("line 2: expected four decimal numbers"), "{text}");
    let text = message(&File::new("a.csv", "time,page\n1,2\n3\n"));
    assert!(text.contains("line 3: expected 2 fields"), "{text}");
    let text = message(&File::new("a.csv", "time,size\n1,2\n"));
    assert!(text.contains("line 1: expected a header with exactly one"), "{text}");
    let text = message(&File::new("a.trc", "7".repeat(1 << 20)));
    assert!(text.contains("a line of at most") && text.len() < 300, "{text}");
}

#[test]
fn other_bad_input_is_named() {
    let text = message(&File::new("a.u32", [1, 0, 0, 0, 2, 0, 0]));
    assert!(text.contains("byte 4 of the trace: truncated: 3 bytes left over"), "{text}");
    assert!(message(&File::new("a", [0, 1, 2, 3])).contains("cannot tell the format"));
    assert!(message(&File::new("a.trc", "")).contains("no requests"));
    let none = File::new("a.trc", "\n*\n");
    let reader = || TraceReader::open(&none.0, None, View::Requests).unwrap();
    let wanted = "no requests; read as lirs (guessed from the name; others: arc-lis, ";
    assert!(Summary::of(reader()).unwrap_err().to_string().contains(wanted));
    assert!(Dense::load(reader()).unwrap_err().to_string().contains(wanted));
    let missing = TraceReader::open(Path::new("no/such.trc"), None, View::Requests);
    assert!(missing.err().unwrap().to_string().starts_with("no/such.trc: "));
    let folder = TraceReader::open(&std::env::temp_dir(), None, View::Requests);
    assert!(folder.is_err());
    let text = message(&File::new("a.csv", "time,size\n1,2\n"));
    let guess = "; read as csv (guessed from the content; others: lirs, arc-lis, u32le, lcs-csv,";
    assert!(text.contains(guess), "{text}");
    let named = TraceReader::open(&none.0, Some(Format::Csv), View::Requests).err().unwrap();
    assert!(!named.to_string().contains("guessed") && !named.doubts_format(), "{named}");
    let lcs = File::new("a.csv", "page\n1\n");
    let reader = TraceReader::open(&lcs.0, Some(Format::LcsCsv), View::Requests);
    assert!(reader.err().unwrap().to_string().contains("version,time,op,size,lbn"));
}

#[test]
fn counts_and_dense_numbers() {
    let file = File::new("a.addr", "s 0x9000 1\nl 0x5000 1\nl 0x9008 1\n");
    let reader = || TraceReader::open(&file.0, None, View::Requests).unwrap();
    let expected = Summary { requests: 3, writes: 1, unique: 2, highest: 9 };
    assert_eq!(Summary::of(reader()).unwrap(), expected);
    let dense = Dense { ids: vec![0, 1, 0], unique: 2 };
    assert_eq!(Dense::load(reader()).unwrap(), dense);
    let mut stream = DenseReader::new(reader());
    let mut pages = Vec::new();
    assert!(stream.read(1, &mut pages).unwrap());
    assert_eq!((&pages, stream.unique()), (&dense.ids, 2));
    assert!(!stream.read(1, &mut pages).unwrap());
}

fn workload(file: &File, access: Access, dense: bool) -> TraceWorkload {
    TraceWorkload::open(TraceSpec {
        file: TraceFile::open(&file.0).unwrap(),
        format: None,
        view: View::Pages,
        access,
        dense,
        group: "/trace".into(),
    })
    .unwrap()
}

fn operations(workload: &mut TraceWorkload) -> Vec<Op> {
    std::iter::from_fn(|| Some(workload.next(0)).filter(|op| *op != Op::Done)).collect()
}

#[test]
fn a_trace_is_a_workload() {
    let file = File::new("job.addr", "s 0x9000 1\nl 0x5000 1\n");
    let mut by_number = workload(&file, Access::Pread, false);
    assert_eq!(by_number.layout().files[0].bytes, 10 * 4096);
    let (end_read, end_write) = (Op::End { class: 0 }, Op::End { class: 1 });
    let (write, read) = (
        Op::Write { file: 0, off: 9 * 4096, len: 4096 },
        Op::Read { file: 0, off: 5 * 4096, len: 4096 },
    );
    assert_eq!(operations(&mut by_number), [write, end_write, read, end_read]);
    let mut dense = workload(&file, Access::Mmap, true);
    assert_eq!(dense.layout().regions[0].pages, 2);
    let touch = |page, write| Op::Touch { region: 0, page, write };
    assert_eq!(operations(&mut dense), [touch(0, true), end_write, touch(1, false), end_read]);
    assert_eq!(dense.total_ops(), Some(2));
    assert_ne!(dense.string_hash(), by_number.string_hash());
    assert!(dense.failure().is_none());
}

#[test]
fn a_trace_that_changes_during_the_run_is_reported() {
    let short = |request: u32, nr: usize| request.to_le_bytes().repeat(nr);
    let file = File::new("job.u32", short(7, 1 << 20));
    for changed in [short(7, 1 << 19), [short(7, 1 << 19), short(8, 1 << 19)].concat()] {
        fs::write(&file.0, short(7, 1 << 20)).unwrap();
        let mut workload = workload(&file, Access::Pread, true);
        fs::write(&file.0, changed).unwrap();
        assert_eq!(operations(&mut workload).len(), 2 << 19);
        let failure = workload.failure().unwrap().to_string();
        assert!(failure.contains("request 524288 of 1048576"), "{failure}");
    }
}
