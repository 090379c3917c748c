use std::fs;
use std::path::Path;

use super::*;
use crate::backend::mock::Mock;
use crate::plan::Plan;
use crate::runner;
use crate::spec::Selection;

const PLAN: &str = "name=\"t\"\ntitle=\"t\"\nbackend=\"mock\"\nvariants=[\"before\", \"after\"]\n\
    seeds=3\n[workload]\nkind=\"mock\"\nops=10\nops_per_s=10.0\nload=[1, 2]\nnoise=[0.0, 0.1]\n";

fn experiment() -> Experiment {
    Experiment::new(Plan::parse("t", PLAN, &[]).unwrap(), &Selection::default(), &Mock).unwrap()
}

fn text(dir: &Path) -> String {
    fs::read_to_string(dir.join("records.jsonl")).unwrap()
}

/// The sweep run here.
fn local() -> String {
    let (dir, experiment) = (tempfile::tempdir().unwrap(), experiment());
    let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
    runner::run_all(&experiment, &mut store, 2, &Progress::hidden()).unwrap();
    text(dir.path())
}

/// The sweep run by a shell script, whose name follows the folder's.
fn by(dir: &Path, script: &str) -> Result<(), String> {
    let experiment = experiment();
    let (mut store, _) = Store::open(dir, &experiment).unwrap();
    let command = ["sh", "-c", script, "sh"].map(str::to_string);
    let command = [&command[..], &[dir.display().to_string()]].concat();
    let found = run_all(&experiment, &mut store, &command, &Progress::hidden());
    found.map(|_| ()).map_err(|e| e.to_string())
}

/// Puts the records to be answered where scripts find them.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("all"), local()).unwrap();
    dir
}

#[test]
fn records_in_any_order_and_more_than_once_give_the_same_file() {
    let dir = folder();
    by(dir.path(), "cat >$1/tasks; tac $1/all; head -3 $1/all").unwrap();
    assert_eq!(text(dir.path()), local());
    let tasks = fs::read_to_string(dir.path().join("tasks")).unwrap();
    let runs: Vec<String> = tasks.lines().map(|line| Task::parse(line).unwrap().run).collect();
    let all: Vec<String> = experiment().runs.into_iter().map(|run| run.id).collect();
    assert_eq!(runs, all);
}

#[test]
fn what_is_lost_is_run_again() {
    let dir = folder();
    let script = "cat >$1/tasks; n=$(wc -l <$1/tasks); echo $n >>$1/rounds; \
                  tail -$n $1/all | head -5; exit 1";
    by(dir.path(), script).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("rounds")).unwrap(), "12\n7\n2\n");
    assert_eq!(text(dir.path()), local());
    by(dir.path(), "exit 1").unwrap();
}

#[test]
fn a_command_that_answers_nothing_or_nonsense_is_named() {
    let dir = folder();
    let silent = by(dir.path(), "head -4 $1/all; exit 3").unwrap_err();
    let message = ": ended (exit status: 3), 8 of 12 runs have no record; the same command";
    assert!(silent.contains(message), "{silent}");
    assert_eq!(text(dir.path()).lines().count(), 4);
    let error = by(dir.path(), "echo '{\"error\": \"no node left\"}'; sleep 60").unwrap_err();
    assert_eq!(error, "no node left");
    let error = by(dir.path(), "echo x").unwrap_err();
    assert!(error.starts_with("no record: expected value"), "{error}");
    let error = by(dir.path(), "sed s/after/afer/ $1/all").unwrap_err();
    assert!(error.starts_with("a record of no run of this sweep: t "), "{error}");
    let none = run_all(
        &experiment(),
        &mut Store::open(&dir.path().join("x"), &experiment()).unwrap().0,
        &["no-such-program".to_string()],
        &Progress::hidden(),
    );
    assert!(none.unwrap_err().to_string().starts_with("no-such-program: No such file"));
}
