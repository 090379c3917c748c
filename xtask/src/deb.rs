//! A Debian package: the program, its preload library, pages of the manual and completions.
//! `cargo deb` (`cargo install cargo-deb`) packs what is gathered here; the list of files is in
//! `crates/mglru-cli/Cargo.toml`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libmglru_preload.so";
const SHELLS: [(&str, &str); 3] = [("bash", "mglru"), ("zsh", "_mglru"), ("fish", "mglru.fish")];

/// Builds the package. True when there is one.
pub fn build(root: &Path) -> bool {
    let gathered = gather(root);
    let done =
        gathered.and_then(|()| run(cargo(root).args(["deb", "-p", "mglru-cli", "--no-build"])));
    done.inspect_err(|problem| eprintln!("deb: {problem}")).is_ok()
}

/// Builds the program and puts what belongs to it beside: `target/package`.
fn gather(root: &Path) -> Result<(), String> {
    run(cargo(root).args(["build", "--release", "--locked", "-p", "mglru-cli"]))?;
    let target = crate::target(root);
    // The assets of the package name this folder, wherever cargo builds.
    let (program, folder) = (target.join("release/mglru"), root.join("target/package"));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (built, library) = (library(&target)?, folder.join(LIBRARY));
    fs::copy(&built, &library).map_err(|e| format!("{}: {e}", built.display()))?;
    run(Command::new(&program).arg("man").arg(folder.join("man")))?;
    for (shell, name) in SHELLS {
        let path = folder.join(name);
        let file = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        run(Command::new(&program).args(["completions", shell]).stdout(file))?;
    }
    Ok(())
}

/// The library that the program's build script built for it.
fn library(target: &Path) -> Result<PathBuf, String> {
    let built = target.join("preload");
    let folders = fs::read_dir(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    let mut paths = folders.flatten().map(|folder| folder.path().join("release").join(LIBRARY));
    paths.find(|path| path.is_file()).ok_or(format!("no {LIBRARY} in {}", built.display()))
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root);
    cargo
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    status.success().then_some(()).ok_or_else(|| format!("{command:?}: {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_below_the_name_of_its_target() {
        let target = std::env::temp_dir().join(format!("mglru-deb-{}", std::process::id()));
        assert!(library(&target).unwrap_err().contains("preload: "));
        let folder = target.join("preload/x86_64-unknown-linux-gnu/release");
        fs::create_dir_all(&folder).unwrap();
        assert!(library(&target).unwrap_err().starts_with("no libmglru_preload.so in "));
        fs::write(folder.join(LIBRARY), "").unwrap();
        let found = library(&target);
        fs::remove_dir_all(&target).unwrap();
        assert_eq!(found, Ok(folder.join(LIBRARY)));
    }
}
