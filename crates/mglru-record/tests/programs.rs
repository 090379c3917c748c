//! Records real programs. Without the translator each test says that it is skipped.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mglru_record::{Recorded, Request, record};
use mglru_workload::trace::{Event, EventReader, Operation};
use tempfile::TempDir;

/// A folder with a file of ten pages to read, and what was recorded there.
struct Folder {
    folder: TempDir,
}

/// A trace that was read again.
struct Trace {
    events: Vec<Event>,
    names: Vec<(u32, String)>,
}

impl Folder {
    /// `None`: there is no translator.
    fn new() -> Option<Self> {
        if Command::new("qemu-x86_64").arg("--version").output().is_err() {
            println!("skipped: needs qemu-x86_64 (mglru doctor --install)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let lines: String = (0..10 * 512).rev().map(|n| format!("{n:07}\n")).collect();
        std::fs::write(folder.path().join("in"), lines).unwrap();
        Some(Folder { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn record(&self, out: &str, command: &[&str]) -> Recorded {
        let input = self.path("in").display().to_string();
        let command: Vec<OsString> =
            command.iter().map(|word| word.replace("IN", &input).into()).collect();
        record(&Request { command: &command, window: 16, out: &self.path(out) }).unwrap()
    }

    fn read(&self, name: &str) -> Trace {
        let mut reader = EventReader::open(&self.path(name)).unwrap();
        let mut events = Vec::new();
        while let Some(event) = reader.event().unwrap() {
            events.push(event);
        }
        Trace { events, names: reader.names().unwrap() }
    }
}

impl Trace {
    fn space(&self, end: &str) -> u32 {
        let found = self.names.iter().find(|(_, name)| name.ends_with(end));
        found.unwrap_or_else(|| panic!("{end} in {:?}", self.names)).0
    }

    fn pages(&self, space: u32, operation: Operation) -> Vec<(u64, u64)> {
        let of = |event: &&Event| event.space == space && event.operation == operation;
        self.events.iter().filter(of).map(|event| (event.page, event.nr)).collect()
    }
}

#[test]
fn reads_of_a_file_are_its_pages_in_order() {
    let Some(place) = Folder::new() else { return };
    let done = place.record("t", &["dd", "if=IN", "of=/dev/null", "bs=8192", "status=none"]);
    assert!(done.status.success());
    let trace = place.read("t");
    let pairs: Vec<_> = (0..5).map(|at| (2 * at, 2)).collect();
    assert_eq!(trace.pages(trace.space("/in"), Operation::Read), pairs);
    let library = trace.space("libc.so.6");
    assert!(!trace.pages(library, Operation::Load).is_empty(), "mapped by the loader");
    assert!(trace.pages(library, Operation::Store).is_empty(), "a private page is copied");
}

#[test]
fn children_and_their_programs_are_recorded_and_the_status_is_the_program_s() {
    let Some(place) = Folder::new() else { return };
    let done = place.record("t", &["sh", "-c", "cat IN | wc -l > IN.lines; exit 3"]);
    assert_eq!(done.status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(place.path("in.lines")).unwrap().trim(), "5120");
    assert_eq!((done.counts.processes, done.counts.open, done.counts.lost), (3, 0, 0));
    assert_eq!(done.counts.outside, [""; 0]);
    let trace = place.read("t");
    let shell = trace.space("process 1");
    let forks: Vec<u64> = trace.pages(shell, Operation::Fork).iter().map(|fork| fork.0).collect();
    assert_eq!(forks, [2, 3]);
    trace.space(": /usr/bin/cat");
    trace.space(": /usr/bin/wc");
}

#[test]
fn a_program_of_one_thread_leaves_the_same_trace_again() {
    let Some(place) = Folder::new() else { return };
    for out in ["a", "b"] {
        let done = place.record(out, &["sort", "-o", "IN.sorted", "IN"]);
        assert!(done.status.success());
        assert!(done.counts.instructions > 100_000, "{:?}", done.counts);
    }
    let bytes = |name| std::fs::read(place.path(name)).unwrap();
    assert!(bytes("in.sorted").starts_with(b"0000000\n0000001\n"));
    assert_eq!(bytes("a"), bytes("b"));
    let trace = place.read("a");
    assert_eq!(trace.pages(trace.space("/in.sorted"), Operation::Write).last().unwrap().0, 9);
}

#[test]
fn a_killed_program_is_said_to_be() {
    let Some(place) = Folder::new() else { return };
    let done = place.record("t", &["sh", "-c", "kill -9 $$"]);
    assert_eq!((done.status.signal(), done.counts.open), (Some(9), 1));
}

#[test]
fn what_cannot_be_recorded_is_refused_and_leaves_no_file() {
    let Some(place) = Folder::new() else { return };
    let refused = |name: &str| {
        let command = [OsString::from(name)];
        let request = Request { command: &command, window: 16, out: &place.path("t") };
        record(&request).unwrap_err().to_string()
    };
    std::fs::write(place.path("script"), "#!/bin/sh\n").unwrap();
    let script = place.path("script").display().to_string();
    assert!(refused("no-such-program").contains("no such program"));
    assert!(refused(&script).contains("no such program"), "it may not be run");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    assert!(refused(&script).contains("name its interpreter"));
    assert!(!Path::new(&place.path("t")).exists());
}
