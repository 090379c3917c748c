//! The crates whose rules are broken, and how their copies are made and tested.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::edits::{EDITS, Edit};
use super::pager_edits;

/// The copy of the core has no dependencies, so it needs no registry and no lock file.
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

/// Describes a crate.
pub struct Subject {
    /// Names the crate.
    pub name: &'static str,
    /// Names the edits that break it.
    pub edits: &'static [Edit],
    /// Names the folder of its source.
    pub source: PathBuf,
    /// Names the folder of its copy's source.
    pub copied: PathBuf,
    /// Copied: from, to.
    parts: Vec<(PathBuf, PathBuf)>,
    /// Where cargo is run, what it tests, and where it builds.
    folder: PathBuf,
    targets: &'static [&'static str],
    builds: PathBuf,
}

impl Subject {
    /// Lists all of them.
    pub fn all(root: &Path) -> [Self; 2] {
        [Self::core(root), Self::pager(root)]
    }

    /// The policy core, alone.
    fn core(root: &Path) -> Self {
        let (from, to) = (root.join("crates/mglru"), root.join("target/mutants/mglru"));
        // With what its tests need.
        let parts = ["src", "tests/model.rs", "tests/model", "tests/rules", "tests/toy"];
        Self {
            name: "mglru",
            edits: EDITS,
            source: from.join("src"),
            copied: to.join("src"),
            parts: parts.map(|part| (from.join(part), to.join(part))).into(),
            targets: &["--lib", "--test", "rules", "--test", "model"],
            builds: root.join("target/mutants/target"),
            folder: to,
        }
    }

    /// The pager, in a copy of the workspace. Cargo names what it builds by the path within a
    /// workspace: in the same folder the copy would be taken for the original.
    fn pager(root: &Path) -> Self {
        let (to, within) = (root.join("target/mutants/workspace"), "crates/mglru-pager/src");
        let parts = ["Cargo.toml", "Cargo.lock", "crates", "xtask", "plans", "truth"];
        Self {
            name: "mglru-pager",
            edits: pager_edits::EDITS,
            source: root.join(within),
            copied: to.join(within),
            parts: parts.map(|part| (root.join(part), to.join(part))).into(),
            targets: &["--package", "mglru-pager", "--lib", "--test", "live"],
            builds: root.join("target/mutants/target"),
            folder: to,
        }
    }

    /// The tests that must notice; none named: all.
    fn tests(&self) -> impl Iterator<Item = &'static str> {
        self.edits.iter().flat_map(|edit| edit.by.iter().copied())
    }

    /// Makes the copy.
    pub fn copy(&self) -> Result<(), String> {
        let _ = fs::remove_dir_all(&self.folder);
        for (from, to) in &self.parts {
            copy_tree(from, to)?;
        }
        let manifest = self.folder.join("Cargo.toml");
        if manifest.exists() { Ok(()) } else { write(&manifest, MANIFEST) }
    }

    /// Runs the tests of the copy.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .current_dir(&self.folder)
            .args(["test", "--offline", "--quiet"])
            .args(self.targets)
            .env("CARGO_TARGET_DIR", &self.builds)
            .env("CARGO_INCREMENTAL", "1")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs the tests that must notice, unchanged. False: as many say that they cannot run here.
    pub fn runs(&self) -> Result<bool, String> {
        let mut tests = self.cargo();
        tests.args(["--", "--nocapture"]).args(self.tests()).stdout(Stdio::piped());
        let output = tests.output().map_err(|e| format!("cargo: {e}"))?;
        if !output.status.success() {
            return Err(format!("{}: unchanged, it fails its tests", self.name));
        }
        let said = String::from_utf8_lossy(&output.stdout).matches("skipped: ").count();
        let tests = self.tests().collect::<BTreeSet<_>>().len();
        Ok(said < tests.max(1))
    }
}

/// Replaces a file.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
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
