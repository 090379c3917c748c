//! Builds what an installed `mglru` carries inside: the guest program and the preload library.
//! A debug build carries neither and builds them from the source tree on first use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The kernel backend boots this machine's kernels alone.
const GUEST_TARGET: &str = "x86_64-unknown-linux-gnu";
const GUEST: &str = "mglru-guest";
const LIBRARY: &str = "libmglru_preload.so";
/// Compression takes about a second for both.
const LEVEL: i32 = 19;

fn main() {
    let own = PathBuf::from(given("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=build.rs");
    carry(&own.join(".."));
}

/// Writes both, compressed, to the folder for what is built; empty files in a debug build.
fn carry(crates: &Path) {
    let guest = guest(crates).map(|path| packed(&path)).unwrap_or_default();
    let library = library(crates).map(|path| packed(&path)).unwrap_or_default();
    let out = PathBuf::from(given("OUT_DIR"));
    fs::write(out.join("guest.zst"), guest).expect("cargo's folder can be written");
    fs::write(out.join("preload.zst"), library).expect("cargo's folder can be written");
}

/// Builds the guest program as the program itself would on first use: the same bytes.
fn guest(crates: &Path) -> Option<PathBuf> {
    let sources = ["mglru-guest", "mglru-workload"].map(|name| crates.join(name));
    let folder = wanted(&sources)?.join("guest");
    let mut cargo = cargo(crates, GUEST, GUEST_TARGET, &folder);
    cargo.args(["--profile", "guest"]);
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
    run(cargo);
    Some(folder.join(GUEST_TARGET).join("guest").join(GUEST))
}

fn library(crates: &Path) -> Option<PathBuf> {
    let sources = ["mglru", "mglru-pager", "mglru-preload"].map(|name| crates.join(name));
    let folder = wanted(&sources)?.join("preload");
    let target = env::var("TARGET").expect("cargo sets it");
    let mut cargo = cargo(crates, "mglru-preload", &target, &folder);
    cargo.arg("--release");
    run(cargo);
    Some(folder.join(target).join("release").join(LIBRARY))
}

/// Finds the folder to build in; `None` for a debug build, and where the sources are not beside.
fn wanted(sources: &[PathBuf]) -> Option<PathBuf> {
    let release = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    if !release || !sources.iter().all(|folder| folder.is_dir()) {
        return None;
    }
    for folder in sources {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    // A folder of its own within cargo's: the outer cargo holds the lock of the other.
    let out = PathBuf::from(given("OUT_DIR"));
    let target = out.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    Some(target.unwrap_or(&out).to_path_buf())
}

fn cargo(crates: &Path, package: &str, target: &str, folder: &Path) -> Command {
    let mut cargo = Command::new(given("CARGO"));
    cargo.current_dir(crates).args(["build", "--quiet", "--package", package]);
    cargo.args(["--target", target, "--target-dir"]).arg(folder);
    cargo
}

fn run(mut cargo: Command) {
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "{cargo:?}: {status}");
}

fn packed(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    zstd::bulk::compress(&bytes, LEVEL).expect("memory can be compressed")
}

fn given(name: &str) -> std::ffi::OsString {
    env::var_os(name).expect("cargo sets it")
}
