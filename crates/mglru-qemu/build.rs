//! Compiles the libraries that QEMU loads, which the program carries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: [&str; 2] = ["machine", "program"];

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", own.join("interface.rs").display());
    for name in LIBRARIES {
        println!("cargo::rerun-if-changed={}", own.join(name).display());
        compile(name, &own.join(name).join("lib.rs"));
    }
}

/// Compiles a library to `libmglru_NAME.so` in the folder for what is built.
fn compile(name: &str, source: &Path) {
    let given = |name| env::var_os(name).expect("cargo sets it");
    let library = PathBuf::from(given("OUT_DIR")).join(format!("libmglru_{name}.so"));
    let mut rustc = Command::new(given("RUSTC"));
    rustc.args(["--crate-name", &format!("mglru_{name}"), "--crate-type", "cdylib"]);
    rustc.args(["--edition", "2024"]);
    rustc.args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"]);
    rustc.arg("--target").arg(given("TARGET")).arg("-o").arg(library).arg(source);
    let status = rustc.status().expect("rustc can be started");
    assert!(status.success(), "{}: {status}", source.display());
}
