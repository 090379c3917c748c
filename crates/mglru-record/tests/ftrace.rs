//! A program recorded by the running kernel.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use mglru_record::ftrace::record;
use mglru_workload::trace::{EventReader, Operation};

const PAGES: u64 = 300;

#[test]
fn reads_faults_and_the_status_of_a_program_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("f"), folder.path().join("t.mtr"));
    fs::write(&file, vec![1; PAGES as usize * 4096]).unwrap();
    let script = format!("cat '{}' > /dev/null; exit 7", file.display());
    let command = ["sh", "-c", script.as_str()].map(OsString::from);
    let traced = match record(&command, &out) {
        Ok(traced) => traced,
        Err(error) => return println!("skipped: {error}"),
    };
    assert_eq!((traced.status.code(), traced.lost), (Some(7), 0));
    let mut reader = EventReader::open(&out).unwrap();
    let mut pages = std::collections::BTreeSet::new();
    let mut faults = 0;
    while let Some(event) = reader.event().unwrap() {
        faults += u32::from(matches!(event.operation, Operation::Load | Operation::Store));
        if event.operation == Operation::Read && !traced.misses_only {
            pages.extend((event.page..event.page + event.nr).map(|page| (event.space, page)));
        }
    }
    assert!(faults > 20, "{faults}");
    assert!(traced.misses_only || pages.len() as u64 >= PAGES, "{}", pages.len());
    let left = format!("/sys/kernel/tracing/instances/mglru-{}", std::process::id());
    assert!(!Path::new(&left).exists());
}

#[test]
fn a_program_that_is_not_there_is_one_line_and_no_trace() {
    let out = Path::new("none.mtr");
    let error = record(&["no-such-program".into()], out).unwrap_err().to_string();
    assert_eq!(error, "no-such-program: no such program");
    assert!(!out.exists());
}
