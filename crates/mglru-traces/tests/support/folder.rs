//! Where the reference traces lie, for the tests that read them.

use std::path::{Path, PathBuf};

/// Finds the folder of reference traces, which the project may not pass on: `MGLRU_TRACES`, or one
/// beside the project. Says that the test is skipped where there is none.
pub fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("MGLRU_TRACES").map_or(beside, PathBuf::from);
    if folder.join("manifest.json").is_file() {
        return Some(folder);
    }
    println!("skipped: needs the reference traces (set MGLRU_TRACES to their folder)");
    None
}
