//! Where the preload library is: named, beside the program that launches, or built from source.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ENV_LIBRARY, LaunchError};

const LIBRARY: &str = "libmglru_preload.so";
const PACKAGE: &str = "mglru-preload";

/// In a source tree it is built if need be; cargo decides.
pub(super) fn find() -> Result<PathBuf, LaunchError> {
    if let Some(named) = std::env::var_os(ENV_LIBRARY).map(PathBuf::from) {
        let missing = || format!("{ENV_LIBRARY}: no library at {}", named.display());
        return if named.is_file() { Ok(named) } else { Err(LaunchError::NoLibrary(missing())) };
    }
    let exe = std::env::current_exe().unwrap_or_default();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload");
    let in_tree = exe.parent().and_then(Path::parent).filter(|_| source.is_dir());
    let beside = exe.with_file_name(LIBRARY);
    match in_tree.filter(|target| target.join("CACHEDIR.TAG").is_file()) {
        Some(target) => build(&source, target, &beside),
        None if beside.is_file() => Ok(beside),
        None => Err(LaunchError::NoLibrary(format!(
            "{LIBRARY} is not beside mglru; install it there, or set {ENV_LIBRARY}"
        ))),
    }
}

/// Builds it as the program beside it was.
fn build(source: &Path, target: &Path, beside: &Path) -> Result<PathBuf, LaunchError> {
    let failed = |why: &str| LaunchError::NoLibrary(format!("building {PACKAGE}: {why}"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(source).args(["build", "--quiet", "--package", PACKAGE, "--target-dir"]);
    cargo.arg(target);
    if beside.parent().is_some_and(|folder| folder.ends_with("release")) {
        cargo.arg("--release");
    }
    let built = cargo.output().map_err(|error| failed(&format!("cargo: {error}")))?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        return Err(failed(
            said.lines().find(|l| l.starts_with("error")).unwrap_or("cargo failed"),
        ));
    }
    Ok(beside.to_path_buf())
}
