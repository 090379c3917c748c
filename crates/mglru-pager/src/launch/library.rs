//! Where the preload library is: named, installed with the program that launches, or built from
//! source.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ENV_LIBRARY, LaunchError};

const LIBRARY: &str = "libmglru_preload.so";
const PACKAGE: &str = "mglru-preload";

/// Finds the preload library where [`ENV_LIBRARY`] names it, beside the program that launches, or
/// in `../lib/mglru` from there. What lies in cargo's folder is not installed: it may be stale.
///
/// # Errors
/// There is none where the variable names one.
pub fn installed_library() -> Result<Option<PathBuf>, LaunchError> {
    if let Some(named) = std::env::var_os(ENV_LIBRARY).map(PathBuf::from) {
        let missing = || format!("{ENV_LIBRARY}: no library at {}", named.display());
        let found = named.is_file().then(|| Some(named.clone()));
        return found.ok_or_else(|| LaunchError::NoLibrary(missing()));
    }
    let exe = std::env::current_exe().unwrap_or_default();
    let folder = exe.parent().unwrap_or(Path::new("/"));
    if cargo_folder(folder).is_some() {
        return Ok(None);
    }
    let places = [folder.join(LIBRARY), folder.join("../lib/mglru").join(LIBRARY)];
    Ok(places.into_iter().find(|path| path.is_file()))
}

/// The library that a launch preloads. In a source tree it is built if need be; cargo decides.
pub(super) fn find() -> Result<PathBuf, LaunchError> {
    match installed_library()? {
        Some(path) => Ok(path),
        None => build(&build_folder()?),
    }
}

/// Finds the folder that cargo builds the library in: this program lies in its source tree.
///
/// # Errors
/// It does not, and what to do.
pub fn build_folder() -> Result<PathBuf, LaunchError> {
    let exe = std::env::current_exe().unwrap_or_default();
    let folder = exe.parent().unwrap_or(Path::new("/"));
    let in_tree = cargo_folder(folder).is_some() && source().is_dir();
    let lacking = format!("{LIBRARY} is not beside mglru; install it there, or set {ENV_LIBRARY}");
    in_tree.then(|| folder.to_path_buf()).ok_or(LaunchError::NoLibrary(lacking))
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mglru-preload")
}

/// The folder that cargo builds in, if a program lies in it.
fn cargo_folder(of_program: &Path) -> Option<&Path> {
    of_program.parent().filter(|target| target.join("CACHEDIR.TAG").is_file())
}

/// Builds it as the program beside it was.
fn build(folder: &Path) -> Result<PathBuf, LaunchError> {
    let failed = |why: &str| LaunchError::NoLibrary(format!("building {PACKAGE}: {why}"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(source()).args(["build", "--quiet", "--package", PACKAGE, "--target-dir"]);
    cargo.arg(cargo_folder(folder).unwrap_or(folder));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.output().map_err(|error| failed(&format!("cargo: {error}")))?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        return Err(failed(
            said.lines().find(|l| l.starts_with("error")).unwrap_or("cargo failed"),
        ));
    }
    Ok(folder.join(LIBRARY))
}
