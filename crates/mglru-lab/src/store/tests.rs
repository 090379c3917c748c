use std::io;

use super::*;
use crate::backend::mock::Mock;
use crate::plan::Plan;
use crate::runner::{Progress, run_all};
use crate::spec::Selection;

const PLAN: &str = r#"
name = "t"
title = "t"
backend = "mock"
variants = ["before", "after"]
seeds = 3
[workload]
kind = "mock"
ops = 10
ops_per_s = 10.0
noise = [0.0, 0.1, 0.2]
"#;

fn experiment() -> Experiment {
    Experiment::new(Plan::parse("t", PLAN, &[]).unwrap(), &Selection::default(), &Mock).unwrap()
}

fn run(dir: &Path, jobs: usize) -> (Vec<Record>, Found) {
    let experiment = experiment();
    let (mut store, found) = Store::open(dir, &experiment).unwrap();
    (run_all(&experiment, &mut store, jobs, &Progress::hidden()).unwrap(), found)
}

fn text(dir: &Path) -> String {
    fs::read_to_string(dir.join(RECORDS)).unwrap()
}

#[test]
fn any_number_of_jobs_gives_the_same_text() {
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(one.path(), 1);
    run(four.path(), 4);
    assert_eq!(text(one.path()), text(four.path()));
    assert_eq!(text(one.path()).matches('\n').count(), 6);
}

#[test]
fn resume_keeps_whole_records_and_repeats_the_torn_one() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), 1);
    let whole = text(dir.path());
    for cut in [whole.len() - 1, whole.len() - 10, whole.len() / 2, 3, 0] {
        fs::write(dir.path().join(RECORDS), &whole[..cut]).unwrap();
        let lines = whole[..cut].matches('\n').count();
        let (_, found) = run(dir.path(), 2);
        assert_eq!((found.kept, found.torn), (lines, usize::from(cut > 0)), "cut at {cut}");
        assert_eq!(text(dir.path()), whole, "cut at {cut}");
    }
}

#[test]
fn kept_records_are_not_run_again() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), 1);
    let marked = text(dir.path()).replacen("10.0,", "10.25,", 1);
    fs::write(dir.path().join(RECORDS), &marked).unwrap();
    run(dir.path(), 1);
    assert_eq!(text(dir.path()), marked);
}

#[test]
fn records_of_other_plans_are_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = crate::record::example("before", 1, 1.0).line();
    fs::write(dir.path().join(RECORDS), &foreign).unwrap();
    let (_, found) = run(dir.path(), 1);
    assert_eq!(found, Found { kept: 0, torn: 0, other: 1 });
    assert_eq!(fs::read_to_string(dir.path().join(OTHER)).unwrap(), foreign);
}

/// A real file on a disk with room for `left` more bytes.
struct FullDisk {
    file: File,
    left: usize,
    can_cut: bool,
}

impl Write for FullDisk {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let take = buf.len().min(self.left);
        self.left -= take;
        self.file.write(&buf[..take])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Disk for FullDisk {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        match self.can_cut {
            true => self.file.set_len(len),
            false => Err(io::ErrorKind::Other.into()),
        }
    }
}

#[test]
fn a_full_disk_is_one_error_and_resume_loses_nothing() {
    let want = tempfile::tempdir().unwrap();
    run(want.path(), 1);
    let one_line = text(want.path()).find('\n').unwrap() + 1;
    for (left, can_cut) in [(0, true), (10, true), (10, false), (one_line + 10, false)] {
        let dir = tempfile::tempdir().unwrap();
        let experiment = experiment();
        let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
        let path = dir.path().join(RECORDS);
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        store.file = Box::new(FullDisk { file, left, can_cut });
        let error = run_all(&experiment, &mut store, 2, &Progress::hidden()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
        drop(store);
        let (_, found) = run(dir.path(), 2);
        assert_eq!(found.kept, left / one_line);
        assert_eq!(text(dir.path()), text(want.path()));
    }
}

#[test]
fn a_folder_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let held = Store::open(dir.path(), &experiment()).unwrap();
    let error = Store::open(dir.path(), &experiment()).err().unwrap().to_string();
    let want = "another mglru is writing this folder; wait for it or take another --out";
    assert_eq!(error, format!("{}: {want}", dir.path().display()));
    // A child that is being started has the descriptor as well.
    let copy = held.0.lock.0.try_clone().unwrap();
    drop(held);
    Store::open(dir.path(), &experiment()).unwrap();
    drop(copy);
}

#[test]
fn load_names_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(RECORDS);
    let good = crate::record::example("before", 1, 1.0).line();
    fs::write(&path, format!("{good}{{}}\n{good}")).unwrap();
    let error = load(dir.path()).unwrap_err().to_string();
    assert_eq!(error, format!("{}:2: missing field `schema` at line 1 column 2", path.display()));
    fs::write(&path, format!("{good}{{\"torn")).unwrap();
    assert_eq!(load(&path).unwrap().len(), 1);
    fs::write(&path, "").unwrap();
    assert!(load(&path).unwrap_err().to_string().ends_with("holds no record"));
}
