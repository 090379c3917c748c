//! Packs the initramfs: the guest program, its order, modules, programs of the host.

use std::path::Path;

use mglru_guest::Order;
use mglru_guest::order::ORDER_FILE;

use super::initramfs::Archive;
use super::{modules, programs};

/// Programs look their user up: the only one there is.
const USERS: (&str, &str) = ("/etc/passwd", "root:x:0:0:root:/:/bin/sh\n");
/// Where the guest program finds its shell.
const SHELL: &str = "/bin/busybox";

/// Packs the guest program as the first process, and its order.
///
/// # Errors
/// As the archive's writer says.
pub fn basics(archive: &mut Archive, guest: &[u8], order: &Order) -> Result<(), String> {
    let order = serde_json::to_vec(order).expect("orders have string keys only");
    let packed = archive.program("/init", guest).and_then(|()| archive.file(ORDER_FILE, &order));
    packed.map_err(|e| e.to_string())
}

/// Returns the modules, and what the order is to say about them.
///
/// # Errors
/// Names a module that is not there.
pub fn modules(
    archive: &mut Archive,
    dir: Option<&Path>,
    wanted: &[String],
) -> Result<Vec<String>, String> {
    // Without a folder everything must be built in; the guest says what it misses.
    let Some(dir) = dir else { return Ok(Vec::new()) };
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut paths = Vec::new();
    for module in modules::ordered(dir, &wanted)? {
        let path = format!("/modules/{}.ko", module.name);
        archive.file(&path, &module.bytes).map_err(|e| e.to_string())?;
        paths.push(path);
    }
    Ok(paths)
}

/// Packs programs with their libraries.
///
/// # Errors
/// Names one that is not installed.
pub fn programs(archive: &mut Archive, names: &[String]) -> Result<(), String> {
    archive.file(USERS.0, USERS.1.as_bytes()).map_err(|e| e.to_string())?;
    for name in names {
        for path in programs::with_libraries(name)? {
            host(archive, &path)?;
        }
        if name == "busybox" {
            let path = programs::find(name)?;
            let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            archive.program(SHELL, &bytes).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Packs a file or folder of the host.
///
/// # Errors
/// Names what cannot be read.
pub fn host(archive: &mut Archive, path: &Path) -> Result<(), String> {
    archive.host(path).map_err(|e| format!("{}: {e}", path.display()))
}
