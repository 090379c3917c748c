//! Hashes the model's source, so that replays of another model are distinguished from this one's.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
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
}

/// Adds the files below a folder, in the order of their names.
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
