//! Equal plan, seed and version give equal bytes: whatever the number of jobs, however often, and
//! with or without the optimizer. Runs the program itself, debug and release.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lists the runs: small, but all of machine, core and a database workload.
const RUNS: [&[&str]; 2] = [
    &["run", "quickstart", "--seeds", "2"],
    &["run", "mongodb", "--scale", "1/256", "--seeds", "1"],
];

/// Profiles of cargo and the folders they build into.
const PROFILES: [(&str, &str); 2] = [("dev", "debug"), ("release", "release")];

/// Runs at a time; the first number twice, so that a repetition is among them.
const JOBS: [&str; 3] = ["1", "2", "1"];

/// Runs `cargo xtask determinism`: true when all records agree.
pub fn run(root: &Path) -> bool {
    println!("== determinism");
    match check(root) {
        Ok(()) => true,
        Err(problem) => {
            println!("error: {problem}");
            false
        }
    }
}

fn check(root: &Path) -> Result<(), String> {
    let target = super::target(root);
    PROFILES.iter().try_for_each(|(profile, _)| build(root, profile))?;
    let scratch = target.join("determinism");
    for args in RUNS {
        let mut first: Option<(String, Vec<u8>)> = None;
        for (profile, folder) in PROFILES {
            let program = target.join(folder).join("mglru");
            for (at, jobs) in JOBS.iter().enumerate() {
                let name = format!("{profile}, --jobs {jobs}, time {}", at + 1);
                let records = records(&program, args, jobs, &scratch)?;
                match &first {
                    None => first = Some((name, records)),
                    Some((_, known)) if *known == records => {}
                    Some((known, _)) => {
                        return Err(format!("{}: {name} differs from {known}", args.join(" ")));
                    }
                }
            }
        }
        let bytes = first.map_or(0, |(_, records)| records.len());
        println!("{}: {bytes} bytes, {} times", args.join(" "), PROFILES.len() * JOBS.len());
    }
    Ok(())
}

fn build(root: &Path, profile: &str) -> Result<(), String> {
    let args = ["build", "--quiet", "--package", "mglru-cli", "--bin", "mglru"];
    let mut cargo = Command::new(env!("CARGO"));
    let status = cargo.current_dir(root).args(args).args(["--profile", profile]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo build --profile {profile}: {status}")),
        Err(e) => Err(format!("cargo build: {e}")),
    }
}

/// Bytes of the records of one run into an empty folder. A missed expectation (status 1) is not the
/// question here.
fn records(program: &Path, args: &[&str], jobs: &str, dir: &Path) -> Result<Vec<u8>, String> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {e}", dir.display()));
        }
        _ => {}
    }
    let mut run = Command::new(program);
    run.args(args).args(["--jobs", jobs]).arg("--out").arg(dir).stdout(Stdio::null());
    let status = run.status().map_err(|e| format!("{}: {e}", program.display()))?;
    if !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("{} {}: {status}", program.display(), args.join(" ")));
    }
    let file = dir.join("records.jsonl");
    let records = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    match records.is_empty() {
        true => Err(format!("{}: empty", file.display())),
        false => Ok(records),
    }
}
