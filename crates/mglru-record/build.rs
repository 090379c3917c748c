//! Compiles the plugin for QEMU, which the program carries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", own.join("plugin").display());
    compile(&own.join("plugin/lib.rs"));
}

/// Compiles the library to `libmglru_record.so` in the folder for what is built.
fn compile(source: &Path) {
    let given = |name| env::var_os(name).expect("cargo sets it");
    let library = PathBuf::from(given("OUT_DIR")).join("libmglru_record.so");
    let mut rustc = Command::new(given("RUSTC"));
    rustc.args(["--crate-name", "mglru_record", "--crate-type", "cdylib", "--edition", "2024"]);
    rustc.args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"]);
    rustc.arg("--target").arg(given("TARGET")).arg("-o").arg(library).arg(source);
    let status = rustc.status().expect("rustc can be started");
    assert!(status.success(), "{}: {status}", source.display());
}
