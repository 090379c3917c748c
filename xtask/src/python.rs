//! The Python package: built, installed into an environment of its own below cargo's folder, and
//! tested there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tally::Tally;

/// Fails where Python is older than the extension's interface, or cannot make environments.
const USABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))";
/// Lists what builds and tests the package; the extra `test` of `python/pyproject.toml`.
const NEEDED: [&str; 8] =
    ["maturin>=1.8,<2", "numpy", "pytest", "mypy", "nbformat", "nbclient", "ipykernel", "pandas"];
/// Lists what some tests need, each of which does without: not every Python has a build of them.
const WANTED: [&str; 2] = ["polars", "ray"];

/// Runs `cargo xtask python`: whether the tests passed, and their sums.
pub fn run(root: &Path) -> (bool, Tally) {
    println!("== python");
    match tested(root) {
        Ok(tally) => (tally.failed == 0, tally),
        Err(Stop::Skipped(why)) => {
            println!("skipped: {why}");
            (true, Tally { skipped: 1, ..Tally::default() })
        }
        Err(Stop::Failed(why)) => {
            println!("error: {why}");
            (false, Tally { failed: 1, ..Tally::default() })
        }
    }
}

/// Why there are no sums.
enum Stop {
    Skipped(String),
    Failed(String),
}

fn tested(root: &Path) -> Result<Tally, Stop> {
    let folder = crate::target(root).join("python-tests");
    fs::create_dir_all(&folder).map_err(|e| Stop::Failed(format!("{}: {e}", folder.display())))?;
    let bin = environment(&folder)?;
    let wheel = wheel(root, &folder, &bin)?;
    let install = ["install", "--quiet", "--force-reinstall", "--no-deps"];
    let installed = pip(&bin).args(install).arg(&wheel).status();
    if !installed.is_ok_and(|status| status.success()) {
        return Err(Stop::Failed(format!("pip install {}", wheel.display())));
    }
    // Elsewhere than beside the sources: what is installed is tested.
    let mut tests = Command::new(bin.join("pytest"));
    tests.current_dir(&folder).args(["-q", "-rs", "--tb=short", "-p", "no:cacheprovider"]);
    tests.arg(root.join("python")).env("MGLRU", crate::target(root).join("debug/mglru"));
    let ran = tests.stdout(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
    let ran = ran.map_err(|e| Stop::Failed(format!("pytest: {e}")))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    println!("{text}");
    let tally = sums(&text).ok_or_else(|| Stop::Failed("pytest gave no sums".to_string()))?;
    match ran.status.success() == (tally.failed == 0) {
        true => Ok(tally),
        false => Err(Stop::Failed(format!("pytest: {}", ran.status))),
    }
}

/// An environment with what the tests need; its folder of programs.
fn environment(folder: &Path) -> Result<PathBuf, Stop> {
    let usable = Command::new("python3").args(["-c", USABLE]).stderr(Stdio::null()).status();
    if !usable.is_ok_and(|status| status.success()) {
        let needs = "needs python3, 3.9 or newer, with venv and pip (apt install python3-venv)";
        return Err(Stop::Skipped(needs.to_string()));
    }
    let (made, bin) = (folder.join("venv"), folder.join("venv/bin"));
    if !bin.join("pip").is_file() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&made).status();
        if !made.is_ok_and(|status| status.success()) {
            return Err(Stop::Failed("python3 -m venv".to_string()));
        }
    }
    let has = |names: &[&str]| {
        let status = pip(&bin).args(["install", "--quiet"]).args(names).status();
        status.is_ok_and(|status| status.success())
    };
    if !has(&NEEDED) {
        return Err(Stop::Skipped("pip cannot fetch what builds and tests it".to_string()));
    }
    for name in WANTED.iter().filter(|name| !has(&[name])) {
        println!("pip cannot fetch {name}: its tests are skipped");
    }
    Ok(bin)
}

fn pip(bin: &Path) -> Command {
    let mut pip = Command::new(bin.join("python"));
    pip.args(["-m", "pip", "--disable-pip-version-check"]);
    pip
}

/// Builds the package as tests are built, so that what they have compiled is used.
fn wheel(root: &Path, folder: &Path, bin: &Path) -> Result<PathBuf, Stop> {
    let out = folder.join("wheels");
    let _ = fs::remove_dir_all(&out);
    let mut maturin = Command::new(bin.join("maturin"));
    maturin.current_dir(root.join("python")).args(["build", "--quiet", "--profile", "dev"]);
    let built = maturin.arg("--out").arg(&out).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(Stop::Failed("maturin build".to_string()));
    }
    let files = fs::read_dir(&out).into_iter().flatten().flatten();
    let wheel = files.map(|file| file.path()).find(|path| path.extension().is_some());
    wheel.ok_or_else(|| Stop::Failed(format!("no wheel in {}", out.display())))
}

/// Reads pytest's closing line: `2 failed, 20 passed, 1 skipped in 61.02s (0:01:01)`.
fn sums(text: &str) -> Option<Tally> {
    text.lines().rev().find_map(|line| sum(line.trim_matches(['=', ' '])))
}

fn sum(line: &str) -> Option<Tally> {
    let (counts, time) = line.split_once(" in ")?;
    time.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    let mut tally = Tally::default();
    for part in counts.split(',') {
        let (number, what) = part.trim().split_once(' ')?;
        let number = number.parse::<u64>().ok()?;
        match what {
            "passed" => tally.passed += number,
            "failed" | "error" | "errors" => tally.failed += number,
            "skipped" => tally.skipped += number,
            _ => {}
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed() {
        let sums = |line: &str| sums(&format!("x in 3s\n{line}\n")).unwrap();
        let tally = |passed, failed, skipped| Tally { passed, failed, skipped };
        assert_eq!(sums("20 passed in 31.02s"), tally(20, 0, 0));
        let all = "2 failed, 20 passed, 1 skipped, 3 warnings, 1 error in 1.00s";
        assert_eq!(sums(all), tally(20, 3, 1));
        assert_eq!(sums("==== 1 passed in 78.15s (0:01:18) ===="), tally(1, 0, 0));
        assert!(super::sums("Fatal Python error\n").is_none());
    }
}
