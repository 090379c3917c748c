//! Project automation: `cargo xtask ci [quick|full]`, `determinism`, `mutants`, `booted`, `python`,
//! `keys`, `deb` and `tidy`.

mod booted;
mod ci;
mod deb;
mod determinism;
mod keys;
mod mutants;
mod python;
mod tally;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask ci [quick|full] | determinism | mutants [CRATE] | \
    booted | python | keys | deb | tidy";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["ci"] | ["ci", "full"] => ci::run(&root(), ci::Depth::Full),
        ["ci", "quick"] => ci::run(&root(), ci::Depth::Quick),
        ["determinism"] => status(determinism::run(&root())),
        ["booted"] => status(booted::run(&root())),
        ["python"] => status(python::run(&root()).0),
        ["mutants"] => status(mutants::passes(&root(), "")),
        ["mutants", name] => status(mutants::passes(&root(), name)),
        ["keys"] => status(keys::write(&root())),
        ["deb"] => status(deb::build(&root())),
        ["tidy"] => status(tidy::run(&root())),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn status(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Where cargo builds.
fn target(root: &Path) -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR");
    set.map_or_else(|| root.join("target"), |dir| root.join(dir))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_path_buf()
}
