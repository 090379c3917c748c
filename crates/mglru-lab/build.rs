//! Hashes the model's source, so that records of another model are told apart from this one's, and
//! compiles what the program carries: the library that QEMU loads and, in a release build, the
//! guest program and the preload library.

#[path = "build/carried.rs"]
mod carried;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Crates that decide what a replay comes to.
const MODEL: [&str; 3] = ["mglru", "mglru-sim", "mglru-workload"];

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut hasher = DefaultHasher::new();
    for name in MODEL {
        let source = own.join("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        add(&source, &mut hasher);
    }
    println!("cargo::rustc-env=MGLRU_MODEL={:016x}", hasher.finish());
    println!("cargo::rerun-if-changed={}", own.join("qemu").display());
    compile(&own.join("qemu/lib.rs"));
    carried::carry(&own.join(".."));
}

/// Compiles the library for QEMU to `libmglru_qemu.so` in the folder for what is built.
fn compile(source: &Path) {
    let given = |name| env::var_os(name).expect("cargo sets it");
    let library = PathBuf::from(given("OUT_DIR")).join("libmglru_qemu.so");
    let mut rustc = Command::new(given("RUSTC"));
    rustc.args(["--crate-name", "mglru_qemu", "--crate-type", "cdylib", "--edition", "2024"]);
    rustc.args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"]);
    rustc.arg("--target").arg(given("TARGET")).arg("-o").arg(library).arg(source);
    let status = rustc.status().expect("rustc can be started");
    assert!(status.success(), "{}: {status}", source.display());
}

/// Files below a folder, in the order of their names.
fn add(path: &Path, hasher: &mut DefaultHasher) {
    let Ok(entries) = fs::read_dir(path) else {
        path.file_name().hash(hasher);
        fs::read(path).unwrap_or_default().hash(hasher);
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().for_each(|path| add(path, hasher));
}
