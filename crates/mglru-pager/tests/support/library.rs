//! The shared library of a package, for tests that run programs with it: `cargo test` builds none
//! by itself.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a package as this test was built; the folder of its libraries, two levels up from here.
pub fn built(package: &str) -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let folder = me.parent().and_then(Path::parent).unwrap().to_path_buf();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", package, "--target-dir"]);
    cargo.arg(folder.parent().unwrap());
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success(), "the library does not build");
    folder
}
