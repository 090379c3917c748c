//! Programs of this host with the libraries they load, to be packed for the guest.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where administrators' programs lie that a user's PATH may lack.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// Finds the program's path on this host.
///
/// # Errors
/// When it is not installed.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(SYSTEM.map(PathBuf::from));
    let mut found = places.map(|dir| dir.join(name)).filter(|path| path.is_file());
    found.next().ok_or_else(|| format!("{name} is not installed; `mglru doctor --install`"))
}

/// Finds a program and the libraries that it loads, each under the path where it is searched for.
///
/// # Errors
/// When it is not installed, or a library of it is missing.
pub fn with_libraries(name: &str) -> Result<BTreeSet<PathBuf>, String> {
    let program = find(name)?;
    let asked = Command::new("ldd").arg(&program).output().map_err(|e| format!("ldd: {e}"))?;
    let stdout = String::from_utf8_lossy(&asked.stdout);
    let mut paths = libraries(&stdout).map_err(|lib| format!("{name}: {lib} is missing"))?;
    paths.insert(program);
    Ok(paths)
}

/// Paths in what ldd prints: `name => path (address)`, or `path (address)` for the loader. A
/// static program has none.
fn libraries(stdout: &str) -> Result<BTreeSet<PathBuf>, String> {
    let mut paths = BTreeSet::new();
    for line in stdout.lines().map(str::trim) {
        let (name, place) = line.split_once("=>").unwrap_or((line, line));
        if place.contains("not found") {
            return Err(name.trim().to_string());
        }
        let path = place.trim().split(" (").next().unwrap_or_default();
        if Path::new(path).is_absolute() {
            paths.insert(PathBuf::from(path));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_what_ldd_prints() {
        let stdout = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64/libc.so.6 (0x1)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x2)\n";
        let paths: Vec<PathBuf> = libraries(stdout).unwrap().into_iter().collect();
        let expected = ["/lib/x86_64/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(paths, expected.map(PathBuf::from));
        assert!(libraries("\tnot a dynamic executable\n").unwrap().is_empty());
        assert_eq!(libraries("\tlibx.so => not found\n"), Err("libx.so".to_string()));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = find("no-such-program").unwrap_err();
        assert_eq!(error, "no-such-program is not installed; `mglru doctor --install`");
    }
}
