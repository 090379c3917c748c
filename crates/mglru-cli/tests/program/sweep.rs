//! `mglru sweep`: the same records wherever runs are made.

use std::fs;

use super::workdir::Workdir;

const SWEEP: [&str; 6] =
    ["sweep", "small.toml", "--seeds", "2", "--set", "groups./touch.memory.max=4MiB,6MiB"];

/// The small plan's sweep with further options.
fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&SWEEP[..], options].concat()
}

fn records(workdir: &Workdir, folder: &str) -> String {
    fs::read_to_string(workdir.path().join(folder).join("records.jsonl")).unwrap()
}

#[test]
fn tasks_made_one_by_one_and_merged_give_the_records_of_a_run() {
    let workdir = Workdir::new();
    let list = "groups./touch.memory.max=[\"4MiB\", \"6MiB\"]";
    workdir.out(&["run", "small.toml", "--seeds", "2", "--set", list, "--out", "run"], 0);
    let stdout = workdir.out(&with(&["--out", "m", "--tasks", "tasks"]), 0);
    assert_eq!(stdout, "8 tasks: tasks\n");
    let tasks = fs::read_to_string(workdir.path().join("tasks")).unwrap();
    let mut made = Vec::new();
    for line in tasks.lines().rev() {
        fs::write(workdir.path().join("task"), line).unwrap();
        made.push(workdir.out(&["sweep", "--task", "task"], 0));
    }
    fs::write(workdir.path().join("late"), made[..3].concat()).unwrap();
    fs::write(workdir.path().join("early"), made[2..].concat()).unwrap();
    let merged = workdir.run(&with(&["--out", "m", "--merge", "late", "--merge", "early"]));
    assert_eq!(
        String::from_utf8_lossy(&merged.stderr),
        "mglru: 8 records kept from earlier runs\n"
    );
    assert_eq!(records(&workdir, "m"), records(&workdir, "run"));
    let none = workdir.run(&with(&["--out", "m", "--tasks", "-"]));
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0));
}

#[test]
fn a_command_that_makes_runs_gives_the_same_folder_as_this_process() {
    let workdir = Workdir::new();
    let here = workdir.out(&with(&["--out", "here"]), 0);
    let command = format!("{} sweep --task -", env!("CARGO_BIN_EXE_mglru"));
    let there = workdir.run(&with(&["--out", "there", "--through", &command]));
    let error = String::from_utf8_lossy(&there.stderr);
    assert_eq!((there.status.code(), &*error), (Some(0), ""));
    assert_eq!(records(&workdir, "there"), records(&workdir, "here"));
    let said = String::from_utf8_lossy(&there.stdout).replace("there", "here");
    assert_eq!(said, here);
}

#[test]
fn what_cannot_be_done_is_one_line() {
    let workdir = Workdir::new();
    let refused = |args: &[&str]| {
        let ran = workdir.run(args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}");
        String::from_utf8(ran.stderr).unwrap()
    };
    fs::write(workdir.path().join("task"), "{}").unwrap();
    let error = refused(&["sweep", "--task", "task"]);
    assert!(error.starts_with("mglru: error: task: missing field `schema`"), "{error}");
    fs::write(workdir.path().join("task"), "").unwrap();
    assert_eq!(refused(&["sweep", "--task", "task"]), "mglru: error: task: holds no task\n");
    fs::write(workdir.path().join("records"), "x\n").unwrap();
    let error = refused(&with(&["--merge", "records"]));
    assert!(error.starts_with("mglru: error: records:1: no record: expected value"), "{error}");
    let error = refused(&with(&["--through", "exit 3"]));
    assert!(error.contains("exit 3: ended (exit status: 3), 8 of 8 runs have"), "{error}");
    let kernel = ["sweep", "small.toml", "--backend", "pager", "--tasks", "-"];
    assert!(refused(&kernel).contains("backend pager: only runs of the model"));
}

/// A python3 that knows neither package.
#[test]
fn ray_without_its_packages_is_one_line() {
    let workdir = Workdir::new();
    let found = std::process::Command::new("python3").arg("-c").arg("").status();
    if found.is_err() {
        return println!("skipped: needs python3");
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mglru"));
    command.current_dir(workdir.path()).args(with(&["--ray", "auto"]));
    let hidden = workdir.path().join("mglru");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("__init__.py"), "").unwrap();
    let ran = command.env("PYTHONPATH", workdir.path()).output().unwrap();
    let error = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{error}");
    let message = "mglru: error: --ray: needs the Python packages mglru and ray (pip install";
    assert!(error.starts_with(message) && error.lines().count() == 1, "{error}");
}
