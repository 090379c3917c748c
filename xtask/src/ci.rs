//! One command for CI and people. Every step runs even when an earlier one failed, so one run
//! prints everything; the last line is the sum over all test binaries.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::booted;
use crate::determinism;
use crate::mutants;
use crate::python;
use crate::tally::{Reader, Tally};
use crate::tidy;

/// Says how much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Checks formatting, lints, tidy, unit tests.
    Quick,
    /// Also checks integration and documentation tests, the documentation itself, the Python
    /// package, heaps on a booted kernel, whether equal runs give equal bytes, and whether a test
    /// fails for each rule broken on purpose.
    Full,
}

/// Runs all steps. Succeeds when each of them did.
pub fn run(root: &Path, depth: Depth) -> ExitCode {
    let mut failed: Vec<&str> = Vec::new();
    let mut step = |name: &'static str, passed: bool| {
        if !passed {
            failed.push(name);
        }
    };
    step("fmt", cargo(root, &["fmt", "--all", "--check"], &[]));
    let lints = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    step("clippy", cargo(root, &lints, &[]));
    step("tidy", tidy::run(root));
    if depth == Depth::Full {
        let doc = ["doc", "--workspace", "--no-deps", "--quiet"];
        step("doc", cargo(root, &doc, &[("RUSTDOCFLAGS", "-D warnings")]));
    }
    if depth == Depth::Full {
        // Without a network the tests that boot a kernel say that they did nothing.
        let doctor = ["run", "--quiet", "-p", "mglru-cli", "--", "doctor", "--install", "--quick"];
        cargo(root, &doctor, &[]);
    }
    let (passed, mut tally) = test(root, depth);
    step("test", passed);
    if depth == Depth::Full {
        let (passed, of_python) = python::run(root);
        step("python", passed);
        tally = tally.and(of_python);
        step("booted", booted::run(root));
        step("determinism", determinism::run(root));
        // The pager's take ten minutes: `cargo xtask mutants mglru-pager`.
        step("mutants", mutants::passes(root, "mglru"));
    }
    if !failed.is_empty() {
        println!("failed steps: {}", failed.join(", "));
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn cargo(root: &Path, args: &[&str], env: &[(&str, &str)]) -> bool {
    println!("== cargo {}", args.join(" "));
    let mut command = Command::new(env!("CARGO"));
    let status = command.current_dir(root).args(args).envs(env.iter().copied()).status();
    match status {
        Ok(status) => status.success(),
        Err(e) => {
            eprintln!("cargo {}: {e}", args.join(" "));
            false
        }
    }
}

/// Shows test output as it comes and counts the result lines.
fn test(root: &Path, depth: Depth) -> (bool, Tally) {
    let mut args = vec!["test", "--workspace", "--no-fail-fast"];
    if depth == Depth::Quick {
        args.extend(["--lib", "--bins"]);
    }
    args.extend(["--", "--show-output"]);
    println!("== cargo {}", args.join(" "));
    let mut command = Command::new(env!("CARGO"));
    let child = command.current_dir(root).args(&args).stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) => {
            eprintln!("cargo test: {e}");
            return (false, Tally::default());
        }
    };
    let mut reader = Reader::default();
    let out = child.stdout.take().expect("stdout is piped");
    for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if reader.read(&line) && !line.ends_with("... ok") {
            println!("{line}");
        }
    }
    let done = child.wait().is_ok_and(|status| status.success());
    let tally = reader.done();
    (done && tally.failed == 0, tally)
}
