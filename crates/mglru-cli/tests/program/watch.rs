//! `mglru run --watch` at a terminal: what it shows, what keys do, and that records stay the same.

use std::process::Command;

use super::pty::Terminal;
use super::workdir::Workdir;

/// Half a second of virtual time of a file that does not fit.
const PLAN: &str = "name = \"w\"\ntitle = \"w\"\nvariants = [\"after\", \"classic\"]\nseeds = 1\n\
    [machine]\nmemory = \"256MiB\"\ncpus = 2\nreadahead_kb = 0\nswap = { kind = \"zram\" }\n\
    [groups.\"/fio\"]\n\"memory.max\" = \"8MiB\"\n\
    [workload]\nkind = \"fio\"\njobs = 2\nblocks = 4096\nengine = \"mmap-random\"\n\
    distribution = \"uniform\"\nramp_operations = 0\noperations = 60000\ngroup = \"/fio\"\n";

fn workdir() -> Workdir {
    let workdir = Workdir::new();
    std::fs::write(workdir.path().join("w.toml"), PLAN).unwrap();
    workdir
}

fn watch(workdir: &Workdir, args: &[&str]) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mglru"));
    command.current_dir(workdir.path()).args(["run", "w.toml", "--watch"]).args(args);
    Terminal::start(command)
}

#[test]
fn a_watched_run_stops_steps_and_ends_in_the_same_records() {
    let workdir = workdir();
    let mut terminal =
        watch(&workdir, &["--out", "o", "--break", "/fio:pgsteal_file>=100", "--variant", "after"]);
    let text = terminal.wait_for("stopped at /fio:pgsteal_file>=100: pgsteal_file is 1");
    for part in
        ["after seed 1", "Lists of /fio,", "major faults", "fio-0", "stops at: /fio:pgsteal"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    terminal.press("\x1b[A");
    terminal.wait_for("Lists of /,");
    terminal.press("s");
    terminal.wait_for("paused");
    // A condition that is no counter's is refused where it is typed, then mended.
    terminal.press("xboom_kil>0\r");
    terminal.wait_for("oom_kil: no such counter (did you mean oom_kill");
    terminal.press("\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7fpgmajfault>30000\r");
    terminal.wait_for("stops at: pgmajfault>30000");
    terminal.press("f ");
    terminal.wait_for("stopped at pgmajfault>30000: pgmajfault is 300");
    terminal.press("n");
    let (status, text) = terminal.end();
    assert!(status.success() && text.contains("records: o"), "{text}");
    workdir.out(&["run", "w.toml", "--out", "plain", "--variant", "after"], 0);
    assert_eq!(workdir.read("o/records.jsonl"), workdir.read("plain/records.jsonl"));
    let report = workdir.read("o/report.html");
    assert!(report.contains("vega"), "curves are drawn from the looks of a watched run");
}

#[test]
fn each_run_is_shown_and_whoever_leaves_finds_the_finished_ones() {
    let workdir = workdir();
    let mut terminal = watch(&workdir, &["--out", "o"]);
    terminal.wait_for("after seed 1, 1 of 2");
    terminal.press("n");
    let text = terminal.wait_for("classic seed 1, 2 of 2");
    assert!(text.contains("running, at most 100 ms a second"), "{text}");
    terminal.press(" ");
    let text = terminal.wait_for("paused");
    assert!(text.contains("inactive"), "the classic lists:\n{text}");
    terminal.press("q");
    let (status, text) = terminal.end();
    assert!(status.success() && text.contains("finished runs are kept in o"), "{text}");
    assert_eq!(workdir.read("o/records.jsonl").lines().count(), 1);
}

#[test]
fn what_cannot_be_watched_is_one_line() {
    let workdir = workdir();
    for (args, problem) in [
        (&["w.toml"][..], "--watch: needs a terminal for the picture and the keys"),
        (&["w.toml", "--format", "json"], "--watch: the result is a table; drop --format"),
        (&["w.toml", "--backend", "kernel"], "only runs of the model can be watched"),
        (&["w.toml", "--backend", "sim,kernel"], "--watch: one backend at a time"),
        (&["all"], "--watch: name one plan"),
        (&["w.toml", "--break", "oom_kil>0"], "oom_kil: no such counter (did you mean oom_kill"),
    ] {
        let args: Vec<&str> =
            ["run"].into_iter().chain(args.iter().copied()).chain(["--watch"]).collect();
        let text = workdir.refused(&args);
        assert!(text.contains(problem), "{args:?}: {text}");
    }
    let bound = PLAN.replace("\"classic\"]", "\"lru\"]");
    std::fs::write(workdir.path().join("bound.toml"), bound).unwrap();
    let text = workdir.refused(&["run", "bound.toml", "--watch"]);
    assert!(text.contains("lru seed 1: only runs of the model"), "{text}");
    let mut terminal = watch(&workdir, &["--out", "o", "--break", "/x:anon>0"]);
    terminal.press("");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(2), "{text}");
    assert!(text.contains("--break /x: the workload has no such group"), "{text}");
}
