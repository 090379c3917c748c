//! The pager's tests of heaps on a booted kernel that keeps accessed bits, which this host's need
//! not: the test program itself, packed into a guest by `mglru run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As the plan of the guest; `PROGRAM` is the tests'. A run in which accessed bits were not kept
/// lacks the figure, which is an error.
const PLAN: &str = r#"
name = "heaps"
title = "Tests of heaps on a booted kernel"
about = "Heaps where the kernel keeps accessed bits."
backend = "kernel"
base = "classic"
variants = ["classic"]
seeds = 1
metrics = ["custom.majors"]

[machine]
memory = "2GiB"
cpus = 2

[kernel]
clock = "host"
programs = ["PROGRAM"]
disk_room = "1GiB"
timeout_s = 900

[workload]
kind = "program"
at_most_s = 800
figures = { majors = 'accessed bits were kept: (\d+) majors' }
script = """
cd /mnt
export TMPDIR=/mnt MGLRU_PAGER_STORES=500
PROGRAM heap:: migration:: --test-threads=2 --nocapture 2>&1
"""
"#;

/// Marks a guest that died of a breakpoint which its kernel had already removed: a kernel guards
/// code that it patches by one, and QEMU's translator of several processors may run it late.
const LOST_PATCH: &str = "Oops: int3";

/// Runs `cargo xtask booted`: true when the tests passed, or cannot run here, which is said.
pub fn run(root: &Path) -> bool {
    println!("== heaps on a booted kernel");
    match check(root) {
        Ok(result) => {
            println!("{result}");
            true
        }
        Err(problem) => {
            println!("error: {problem}");
            false
        }
    }
}

/// Returns the result of the tests.
fn check(root: &Path) -> Result<String, String> {
    let doctor = mglru(root, &["doctor", "--quick"])?;
    if let Some(lacking) = lacking(&doctor) {
        return Ok(format!("skipped: needs {lacking} (mglru doctor --install)"));
    }
    let folder = super::target(root).join("booted");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let plan = folder.join("heaps.toml");
    let text = PLAN.replace("PROGRAM", &program(root)?.display().to_string());
    fs::write(&plan, text).map_err(|e| format!("{}: {e}", plan.display()))?;
    let (plan, out) = (plan.display().to_string(), folder.join("out"));
    let keep = out.display().to_string();
    let boot = || {
        let ran = mglru(root, &["run", &plan, "--kernel", "newest", "--out", &keep]);
        ran.map_err(|error| error + &logs(&out.join("runs")))
    };
    boot().or_else(|problem| match problem.contains(LOST_PATCH) {
        true => {
            println!("the guest met its own breakpoint ({LOST_PATCH}): booted once more");
            boot()
        }
        false => Err(problem),
    })?;
    let records = out.join("records.jsonl");
    let records =
        fs::read_to_string(&records).map_err(|e| format!("{}: {e}", records.display()))?;
    let result = records.split("test result: ").nth(1).and_then(|rest| rest.split(';').next());
    // What the pager says of a test that passes is worth a look.
    let said = records.split("\\n").filter(|line| line.starts_with("mglru-pager: "));
    let result = result.ok_or("the tests printed no result")?;
    Ok(said.fold(result.to_string(), |result, line| result + "\n" + line))
}

/// All that a guest said, which is gone with the machine that this runs on.
fn logs(runs: &Path) -> String {
    let files = fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let text = |path: &Path| fs::read(path).ok().map(|b| String::from_utf8_lossy(&b).into_owned());
    files.filter_map(|file| Some(format!("\n{}:\n{}", file.display(), text(&file)?))).collect()
}

/// Names what a doctor's table lacks and no guest with the newest kernel starts without.
fn lacking(doctor: &str) -> Option<&str> {
    // What the live pager lacks on this host the guest's kernel has.
    let ours = doctor.split("live pager").next().unwrap_or_default();
    let mut rows = ours.lines().map(str::trim_start);
    let (needed, newest) = (|row: &&str| row.starts_with("NO "), "newest kernel");
    let missing = |row: &&str| row.starts_with("no ") && row.contains(newest);
    rows.find(|row| needed(row) || missing(row)).map(|row| row[2..].trim())
}

/// Returns what `mglru` printed, or its last line if it failed.
fn mglru(root: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = cargo(root, &["run", "--quiet", "--package", "mglru-cli", "--"]);
    let ran = command.args(args).output().map_err(|e| format!("cargo: {e}"))?;
    match ran.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        _ => Err(String::from_utf8_lossy(&ran.stderr).trim().to_string()),
    }
}

/// Builds the tests: cargo prints where.
fn program(root: &Path) -> Result<PathBuf, String> {
    let args = ["test", "--package", "mglru-pager", "--test", "live", "--no-run"];
    let built = cargo(root, &args).output().map_err(|e| format!("cargo: {e}"))?;
    let stderr = String::from_utf8_lossy(&built.stderr);
    let named = |line: &str| Some(line.rsplit_once('(')?.1.strip_suffix(')')?.to_string());
    let mut lines = stderr.lines().filter(|line| line.trim_start().starts_with("Executable"));
    let path = lines.next().and_then(named).ok_or_else(|| stderr.trim().to_string())?;
    Ok(root.join(path))
}

fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args(args);
    command
}
