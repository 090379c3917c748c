//! Do the tests bite? Each named edit breaks one rule of the policy core in a copy of the crate;
//! the core's own tests must notice. An edit whose text is not found is an error: the source has
//! moved on and the table must follow.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

mod edits;

use edits::{EDITS, Edit};

/// A broken rule may make a test run for ever.
const LIMIT: Duration = Duration::from_secs(120);

/// The copy has no dependencies, so it needs no registry and no lock file.
const MANIFEST: &str = "\
[package]
name = \"mglru\"
version = \"0.0.0\"
edition = \"2024\"

[workspace]

[profile.dev]
opt-level = 1
debug = 0
incremental = true

[lints.rust]
warnings = \"allow\"
";

/// Test targets of the crate that the mutants are shown to, with what they need.
const TESTS: [&str; 4] = ["model.rs", "model", "rules", "toy"];

/// What the tests made of an edit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// A test failed.
    Caught,
    /// All tests passed.
    Survived,
    /// It does not compile.
    Broken,
    /// The tests did not end in time.
    Endless,
}

/// `cargo xtask mutants`.
pub fn run(root: &Path) -> ExitCode {
    if passes(root) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Did the unchanged crate pass, and was every edit caught?
pub fn passes(root: &Path) -> bool {
    match try_all(root) {
        Ok(failed) => failed == 0,
        Err(error) => {
            eprintln!("mutants: {error}");
            false
        }
    }
}

fn try_all(root: &Path) -> Result<usize, String> {
    let source = root.join("crates/mglru");
    for edit in EDITS {
        mutated(&source, edit)?;
    }
    let copy = copy_crate(root, &source)?;
    if test(&copy)? != Verdict::Survived {
        return Err("the unchanged crate fails its tests".to_string());
    }
    let mut failed = 0;
    println!("{:10} {:>6}  edit", "verdict", "s");
    for edit in EDITS {
        let start = Instant::now();
        let verdict = try_edit(&source, &copy, edit)?;
        let passed = matches!(verdict, Verdict::Caught | Verdict::Endless);
        failed += usize::from(!passed);
        println!("{:10} {:6.1}  {}", name(verdict), start.elapsed().as_secs_f32(), edit.says);
    }
    println!("{} passed, {failed} failed", EDITS.len() - failed);
    Ok(failed)
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Caught => "caught",
        Verdict::Survived => "SURVIVED",
        Verdict::Broken => "BROKEN",
        Verdict::Endless => "endless",
    }
}

/// The edited text of the file.
fn mutated(source: &Path, edit: &Edit) -> Result<String, String> {
    let path = source.join("src").join(edit.file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    match text.matches(edit.text).count() {
        1 => Ok(text.replace(edit.text, edit.replacement)),
        0 => Err(format!("{}: text of \"{}\" not found", path.display(), edit.says)),
        n => Err(format!("{}: text of \"{}\" found {n} times", path.display(), edit.says)),
    }
}

fn try_edit(source: &Path, copy: &Path, edit: &Edit) -> Result<Verdict, String> {
    let path = copy.join("src").join(edit.file);
    let original = fs::read_to_string(source.join("src").join(edit.file))
        .map_err(|e| format!("{}: {e}", edit.file))?;
    write(&path, &mutated(source, edit)?)?;
    let verdict = test(copy);
    write(&path, &original)?;
    verdict
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn copy_crate(root: &Path, source: &Path) -> Result<PathBuf, String> {
    let copy = root.join("target/mutants/mglru");
    let _ = fs::remove_dir_all(&copy);
    copy_tree(&source.join("src"), &copy.join("src"))?;
    for test in TESTS {
        copy_tree(&source.join("tests").join(test), &copy.join("tests").join(test))?;
    }
    write(&copy.join("Cargo.toml"), MANIFEST)?;
    Ok(copy)
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", from.display());
    if from.is_file() {
        fs::create_dir_all(to.parent().expect("a file lies in a directory")).map_err(fail)?;
        return fs::copy(from, to).map(drop).map_err(fail);
    }
    fs::create_dir_all(to).map_err(fail)?;
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        copy_tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn cargo(copy: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(copy)
        .args(["test", "--offline", "--quiet", "--lib", "--test", "rules", "--test", "model"])
        .args(args)
        .env("CARGO_TARGET_DIR", copy.with_file_name("target"))
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn test(copy: &Path) -> Result<Verdict, String> {
    let built = cargo(copy, &["--no-run"]).status().map_err(|e| format!("cargo: {e}"))?;
    if !built.success() {
        return Ok(Verdict::Broken);
    }
    let mut child = cargo(copy, &[]).spawn().map_err(|e| format!("cargo: {e}"))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| format!("cargo: {e}"))? {
            return Ok(if status.success() { Verdict::Survived } else { Verdict::Caught });
        }
        if start.elapsed() > LIMIT {
            child.kill().and_then(|()| child.wait()).map_err(|e| format!("cargo: {e}"))?;
            return Ok(Verdict::Endless);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
