//! Booted kernels: what is refused before anything runs, what goes wrong in a guest, and one real
//! run. Tests that boot need QEMU and a kernel (`mglru doctor --install`) and say so where they are
//! missing.

use std::fs;
use std::process::Command;

use crate::workdir::Workdir;

/// True when guests can be booted here; else says why a test did nothing.
pub(crate) fn can_boot(workdir: &Workdir) -> bool {
    let doctor = workdir.run(&["doctor", "kernel", "--quick"]);
    let complete = doctor.status.code() == Some(0);
    if !complete {
        println!("skipped: needs what `mglru doctor --install` fetches");
    }
    complete
}

/// A plan of a few thousand accesses in a guest that is soon up.
pub(crate) fn plan(workdir: &Workdir) {
    let text = fs::read_to_string(workdir.path().join("small.toml")).unwrap();
    // Read pages of mappings are aged; pages read through descriptors need not be.
    let text = text.replace("operations = 4000", "operations = 40000").replace("pread", "mmap");
    let kernel = "\n[kernel]\nmemory = \"512MiB\"\ncpus = 1\nsample_ms = 50\naccel = \"tcg\"\n";
    fs::write(workdir.path().join("booted.toml"), text + kernel).unwrap();
}

fn error(workdir: &Workdir, args: &[&str]) -> String {
    let message = workdir.refused(args);
    assert_eq!(message.matches('\n').count(), 1, "{args:?}: {message}");
    message.strip_prefix("mglru: error: ").unwrap_or(&message).to_string()
}

/// Machines of this test's that still run: none may.
fn running(workdir: &Workdir) -> String {
    let marker = workdir.path().display().to_string();
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().filter(|line| line.contains("qemu") && line.contains(&marker)).collect()
}

#[test]
fn options_about_kernels_are_checked_before_anything_runs() {
    let workdir = Workdir::new();
    plan(&workdir);
    for (args, want) in [
        ("--kernel no/bzImage", "booted.toml: kernel.image: no/bzImage: No such file"),
        ("--kernel A=no/x", "booted.toml: kernel.image: no/x: No such file"),
        ("--kernel a --kernel b", "--kernel: several kernels need names"),
        (
            "--kernel a --backend sim",
            "--backend sim: --kernel, --modules, --append, --host-time and --profile go",
        ),
        ("--kernel =x", "invalid value '=x' for '--kernel"),
        ("--backend kernel --variant before", "booted.toml: variant = before: a booted kernel"),
        ("--backend kernel --set kernel.cpus=0", "booted.toml: "),
        ("--backend kernel,kernel", "--backend kernel,kernel: backend `kernel` given twice"),
        ("--kernel a --backend kernel,sim", "--backend kernel,sim: --kernel, --modules,"),
        ("--backend sim,nothing", "--backend nothing: unknown"),
        ("--backend kernel --set reclaim.floor=v5", "booted.toml: reclaim.floor: a booted kernel"),
    ] {
        let command = ["run", "booted.toml"].into_iter().chain(args.split(' '));
        let message = error(&workdir, &command.collect::<Vec<_>>());
        assert!(message.starts_with(want), "{args}: {message}");
    }
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
    let message = error(&workdir, &["control", "--measure", "--version", "5.4"]);
    assert!(
        message.starts_with("--version 5.4: no run was measured on it; known: 6.12"),
        "{message}"
    );
    let message = error(&workdir, &["control", "--step", "none.job"]);
    assert!(message.starts_with("none.job: No such file"), "{message}");
}

#[test]
fn a_workload_runs_on_the_real_kernel_and_its_counters_are_recorded() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let run = ["run", "booted.toml", "--backend", "kernel", "--out", "o", "--jobs", "1"];
    let stdout = workdir.out(&run, 0);
    let left_out = "left out on the kernel: after, before (a policy of the model)\n";
    assert!(stdout.contains(left_out), "{stdout}");
    assert!(workdir.out(&["report", "o", "--format", "table"], 0).contains(left_out));
    let records = workdir.read("o/records.jsonl");
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let variants: Vec<&str> = records.iter().map(|r| r["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["classic", "k6.12"]);
    for record in &records {
        assert_eq!(record["custom"]["left_out"]["after"], "a policy of the model");
        assert_eq!(
            (&record["metrics"]["ops"], &record["backend"]),
            (&40000.into(), &"kernel".into())
        );
        // 4096 pages do not fit in 4 MiB: the kernel must have reclaimed, and read.
        let counter = |name: &str| record["counters"][name].as_u64().unwrap();
        assert!(counter("pgsteal_direct") > 100, "{record}");
        assert!(counter("pgpgin") > 4096, "{record}");
        // A guest's read takes longer than a clock's tick.
        assert!(record["metrics"]["latency_us"]["max"].as_f64().unwrap() > 1.0, "{record}");
        let held = record["groups"]["/touch"]["memory.stat"]["memory.current"].as_u64().unwrap();
        assert!(held <= 4 << 20, "{record}");
        assert!(record["custom"]["lru_gen"].as_str().unwrap().contains("/touch"), "{record}");
        assert!(record["custom"]["series"]["rows"]["/touch"].is_array(), "{record}");
    }
    let passes = |at: usize| records[at]["counters"]["aging_passes"].as_u64().unwrap();
    assert_eq!(passes(0), 0, "without generations none is opened");
    assert!(passes(1) > 0);
    let logs = fs::read_dir(workdir.path().join("o/runs")).unwrap().count();
    assert_eq!((logs, running(&workdir)), (2, String::new()));
}

/// More anonymous memory than the guest has, in a group without a limit.
const TOO_MUCH: [&str; 8] = [
    "--set",
    "workload.engine=anon",
    "--set",
    "workload.pages=131072",
    "--set",
    "groups./touch.memory.max=max",
    "--set",
    "kernel.memory=256MiB",
];

#[test]
fn a_guest_without_memory_left_is_a_result() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12", "--out", "o"];
    let more = ["workload.operations=400000", "workload.write_per_mille=1000"];
    let more = more.into_iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    workdir.out(&[&run[..], &TOO_MUCH, &more].concat(), 0);
    let record: serde_json::Value = serde_json::from_str(&workdir.read("o/records.jsonl")).unwrap();
    let killed = &record["custom"]["oom_killed"];
    assert_eq!((&killed[0]["out_of_memory"], &killed[0]["tasks"]), (&"machine".into(), &2.into()));
    assert_eq!((&killed[0]["group"], killed.as_array().unwrap().len()), (&"/touch".into(), 1));
    assert_eq!(record["counters"]["oom_kill"], 1);
    assert!(record["metrics"]["ops"].as_u64().unwrap() < 400_000, "{record}");
    assert_eq!(running(&workdir), "");
}

#[test]
fn a_guest_that_panics_for_want_of_memory_is_a_result() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "classic", "--out", "o"];
    let more = [
        "workload.operations=400000",
        "workload.write_per_mille=1000",
        "kernel.prepare='echo 1 > /proc/sys/vm/panic_on_oom'",
    ];
    let more = more.into_iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    workdir.out(&[&run[..], &TOO_MUCH, &more].concat(), 0);
    let record: serde_json::Value = serde_json::from_str(&workdir.read("o/records.jsonl")).unwrap();
    let stopped = record["custom"]["stopped"].as_str().unwrap();
    assert!(stopped.starts_with("Kernel panic - not syncing: Out of memory"), "{stopped}");
    let log = fs::read_dir(workdir.path().join("o/runs")).unwrap().flatten().next().unwrap();
    assert!(fs::read_to_string(log.path()).unwrap().contains(stopped), "the console is kept");
}

#[test]
fn a_guest_whose_kernel_panics_says_so() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let panic = "kernel.prepare='echo c > /proc/sysrq-trigger'";
    let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12", "--out", "o"];
    let message = error(&workdir, &[&run[..], &["--set", panic]].concat());
    let want = "booted.toml: k6.12 seed 1: the guest panicked: Kernel panic - not syncing: sysrq";
    assert!(message.starts_with(want), "{message}");
    assert!(message.contains("console.log"), "{message}");
    assert_eq!(running(&workdir), "");
}

#[test]
fn the_booted_kernel_and_its_model_stand_side_by_side() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let run = ["run", "booted.toml", "--backend", "kernel,sim", "--out", "o", "--jobs", "1"];
    let output = workdir.run(&[&run[..], &["--format", "json"]].concat());
    assert!(output.status.code() < Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let sides: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sides["backends"], serde_json::json!(["kernel", "sim"]));
    let rows: Vec<&str> =
        sides["rows"].as_array().unwrap().iter().map(|r| r["row"].as_str().unwrap()).collect();
    assert!(rows.contains(&"ops_per_s, k6.12 against classic"), "{rows:?}");
    let switches = &sides["reports"][1]["records"][0];
    assert_eq!(switches["variant"], "classic", "the model's classic is that of 6.12");
    assert!(workdir.path().join("o/kernel/records.jsonl").exists());
    assert!(workdir.path().join("o/sim/records.jsonl").exists());
}

#[test]
fn a_guest_that_fails_is_one_line_and_its_console_is_kept() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    for (args, want) in [
        (&["--append", "rdinit=/none root=/dev/none"][..], "the guest panicked: Kernel panic"),
        (&["--set", "kernel.timeout_s=1"], "not over after 1 s (kernel.timeout_s)"),
        (&["--set", "kernel.load=[\"no_such\"]"], "module no_such: not in "),
        (&["--set", "kernel.prepare='false; exit 3'"], "the guest: prepare: failed"),
    ] {
        let run = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12"];
        let message = error(&workdir, &[&run[..], args, &["--out", "o"]].concat());
        assert!(message.starts_with("booted.toml: k6.12 seed 1: "), "{args:?}: {message}");
        assert!(message.contains(want), "{args:?}: {message}");
        assert_eq!(running(&workdir), "", "{args:?}");
    }
    assert!(workdir.path().join("o/runs").read_dir().unwrap().count() > 0);
}

#[test]
fn all_that_a_failed_program_said_is_kept() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    let plan = r#"
name = "failing"
title = "A program that fails"
about = "It says more than an error shows."
backend = "kernel"
base = "classic"
variants = ["classic"]
seeds = 1
metrics = ["ops_per_s"]
[machine]
memory = "512MiB"
[kernel]
accel = "tcg"
[workload]
kind = "program"
script = "for i in one two three four five; do echo $i; done; exit 3"
"#;
    fs::write(workdir.path().join("failing.toml"), plan).unwrap();
    let message = error(&workdir, &["run", "failing.toml", "--out", "o"]);
    assert!(message.contains("failed with status 3: three; four; five (output: "), "{message}");
    let named = |what: &str| {
        let (_, rest) = message.split_once(what).expect("it is named");
        fs::read_to_string(workdir.path().join(rest.split_once(')').unwrap().0)).unwrap()
    };
    assert_eq!(named("(output: "), "one\ntwo\nthree\nfour\nfive\n");
    named("(console: ");
}
