//! Finds the program for the guest, linked statically: installed beside this program, carried in
//! it, or, for a debug build, built from the workspace this program was built from.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, elf};

/// Names the guest program's file instead of looking for it.
const VARIABLE: &str = "MGLRU_GUEST";
const NAME: &str = "mglru-guest";
const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "guest";

/// Returns the bytes of the guest program. It is looked for, or built, once.
///
/// # Errors
/// When it can be neither found nor built.
pub fn program() -> Result<&'static [u8], String> {
    static PROGRAM: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| match installed()? {
        Some(path) => read(&path),
        None => mglru_carried::guest().map_or_else(|| read(&build()?), Ok),
    });
    program.as_deref().map_err(Clone::clone)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Finds the file that is named or installed; there need not be one.
fn installed() -> Result<Option<PathBuf>, String> {
    if let Some(path) = env::var_os(VARIABLE).map(PathBuf::from) {
        let problem = "named by MGLRU_GUEST, is no static program";
        return is_static(&path)
            .then(|| Some(path.clone()))
            .ok_or_else(|| format!("{}: {problem}", path.display()));
    }
    Ok(mglru_carried::places(NAME).into_iter().find(|path| is_static(path)))
}

/// A static program asks for no loader. An ordinary build leaves a dynamic one beside this program.
fn is_static(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else { return false };
    let endian = file.endian();
    file.elf_program_headers().iter().all(|header| header.p_type(endian) != elf::PT_INTERP)
}

/// Cargo itself decides whether anything must be compiled.
fn build() -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !workspace.join("crates").join(NAME).is_dir() {
        return Err(format!("{NAME} is not beside mglru; install it there, or set {VARIABLE}"));
    }
    let folder = target_dir(&workspace).join("guest");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&workspace).args(["build", "--quiet", "--package", NAME]);
    cargo.args(["--profile", PROFILE, "--target", TARGET, "--target-dir"]).arg(&folder);
    // Flags for building this program would undo the one that matters.
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
    let built = cargo.output().map_err(|e| format!("building {NAME}: cargo: {e}"))?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(format!("building {NAME}: {error}"));
    }
    Ok(folder.join(TARGET).join(PROFILE).join(NAME))
}

fn target_dir(workspace: &Path) -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").and_then(|dir| std::path::absolute(dir).ok());
    named.unwrap_or_else(|| workspace.join("target"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_without_a_loader_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text");
        fs::write(&text, "#!/bin/sh").unwrap();
        assert!(!is_static(&text) && !is_static(dir.path()));
        // A test's own program is dynamic unless the target is a static one.
        let own = env::current_exe().unwrap();
        assert_eq!(is_static(&own), cfg!(target_feature = "crt-static"));
    }
}
