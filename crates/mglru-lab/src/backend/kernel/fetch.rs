//! Fetching kernels: Debian's packages, unpacked into the user's cache.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use rustix::process::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::image::{PACKAGE, fetched_root, newest_root};

/// Where Debian has its newest kernel for a stable release, and what signs that.
const NEWEST: &str = "trixie-backports";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Distance of looks at a program that runs.
const LOOK: Duration = Duration::from_millis(50);
/// The package that depends on it.
const NEWEST_PACKAGE: &str = "linux-image-cloud-amd64";
/// Ends the name of a folder that is being unpacked.
pub const UNDER_WAY: &str = "new";
/// Names the packages that make up a kernel, by the beginnings of their names.
pub const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// Fetches the kernel that is booted unless another is asked for.
///
/// # Errors
/// The step that failed, with the last line it said.
pub fn default() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    update()?;
    let apt = Apt { options: Vec::new(), folder: folder.path() };
    apt.fetch(PACKAGE, &fetched_root().ok_or(HOMELESS)?)
}

/// Fetches the newest kernel. What this system knows of packages stays as it is.
///
/// # Errors
/// As [`default`].
pub fn newest() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let apt = Apt::of_suites(folder.path(), &folder.path().join("lists"), &[NEWEST])?;
    apt.update()?;
    apt.fetch(NEWEST_PACKAGE, &newest_root().ok_or(HOMELESS)?)
}

/// Has apt learn what there is.
///
/// # Errors
/// As [`step`].
pub fn update() -> Result<(), String> {
    step("apt-get", &["update", "-q"], Path::new("/")).map(drop)
}

/// Returns the mirror of Debian that this system uses.
pub fn mirror() -> Result<String, String> {
    let wanted = ["Identifier: Packages", "Label: Debian", "Component: main"];
    let asked = [&["indextargets", "--format", "$(REPO_URI)"][..], &wanted].concat();
    let stdout = step("apt-get", &asked, Path::new("/"))?;
    let first = stdout.lines().next().map(str::to_string);
    first.ok_or("this system has no mirror of Debian".to_string())
}

/// Reports that there is no cache.
pub const HOMELESS: &str = "HOME is not set: nowhere to keep a kernel";

/// Holds the options that set where apt looks.
pub struct Apt<'a> {
    options: Vec<String>,
    /// Names the folder for downloads.
    pub folder: &'a Path,
}

impl<'a> Apt<'a> {
    /// Has apt look at suites of Debian's, and keep its lists in a folder of their own.
    ///
    /// # Errors
    /// This system has no mirror, or the folder cannot be made.
    pub fn of_suites(folder: &'a Path, lists: &Path, suites: &[&str]) -> Result<Self, String> {
        // Where lists were never fetched, or were cleared away, apt knows of none.
        let mirror = mirror().or_else(|_| update().and_then(|()| mirror()))?;
        let source = |suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        let list = folder.join("sources.list");
        let sources: String = suites.iter().map(source).collect();
        fs::write(&list, sources).map_err(|e| format!("{}: {e}", list.display()))?;
        let partial = lists.join("partial");
        fs::create_dir_all(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
        let set = |key: &str, value: &Path| format!("-oDir::{key}={}", value.display());
        let options = vec![
            set("Etc::sourcelist", &list),
            set("Etc::sourceparts", Path::new("-")),
            set("State::lists", lists),
            set("Cache", folder),
            "-oAPT::Sandbox::User=root".to_string(),
            "-oAcquire::Languages=none".to_string(),
            "-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_string(),
        ];
        Ok(Apt { options, folder })
    }

    /// Has apt learn what there is in the suites.
    ///
    /// # Errors
    /// As [`step`].
    pub fn update(&self) -> Result<(), String> {
        self.run("apt-get", &["update", "-q"]).map(drop)
    }

    /// Downloads the kernel that a package depends on and unpacks it.
    fn fetch(&self, package: &str, root: &Path) -> Result<(), String> {
        let depends = self.run("apt-cache", &["depends", package])?;
        let missing = format!("{package}: this system has no such package");
        let image = parts(&depends).into_iter().next().ok_or(missing)?;
        let depends = self.run("apt-cache", &["depends", image])?;
        let all = [&[image][..], &parts(&depends)].concat();
        self.run("apt-get", &[&["download", "-q"][..], &all].concat())?;
        let entries = fs::read_dir(self.folder).into_iter().flatten().flatten();
        let is_package = |path: &PathBuf| path.extension().is_some_and(|end| end == "deb");
        let packages: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_package).collect();
        match packages.len() == all.len() {
            true => unpack(&packages, root),
            false => Err(format!("{image}: not all of it was downloaded")),
        }
    }

    /// Runs a program of apt's.
    ///
    /// # Errors
    /// As [`step`].
    pub fn run(&self, program: &str, args: &[&str]) -> Result<String, String> {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        step(program, &[&options[..], args].concat(), self.folder)
    }
}

/// Packages of a kernel in what apt says of a package: `linux-image-6.12.117+deb12-cloud-amd64`.
fn parts(depends: &str) -> Vec<&str> {
    let named = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let has_release = |name: &str| {
        let after = PARTS.iter().find_map(|part| name.strip_prefix(part));
        after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
    };
    named.filter(|name| has_release(name)).collect()
}

/// Unpacks packages beside the final place first, so that a kernel there is always whole.
///
/// # Errors
/// The package or folder; nothing is left of what was unpacked.
pub fn unpack(packages: &[PathBuf], root: &Path) -> Result<(), String> {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let beside = root.with_file_name(format!("{name}.{UNDER_WAY}"));
    let unpacked = unpack_beside(packages, root, &beside);
    if unpacked.is_err() {
        let _ = fs::remove_dir_all(&beside);
    }
    unpacked
}

fn unpack_beside(packages: &[PathBuf], root: &Path, beside: &Path) -> Result<(), String> {
    let at = |path: &Path| {
        let path: PathBuf = path.to_path_buf();
        move |e: std::io::Error| format!("{}: {e}", path.display())
    };
    let _ = fs::remove_dir_all(beside);
    fs::create_dir_all(beside).map_err(at(beside))?;
    for package in packages {
        let paths = [package.display().to_string(), beside.display().to_string()];
        step("dpkg-deb", &["-x", &paths[0], &paths[1]], Path::new("/"))?;
    }
    let _ = fs::remove_dir_all(root);
    fs::rename(beside, root).map_err(at(root))
}

/// Runs a program and returns what it printed to its standard output.
///
/// # Errors
/// The last line it said, if it failed, and that a signal came.
pub fn step(program: &str, args: &[&str], folder: &Path) -> Result<String, String> {
    let shown = args.iter().filter(|arg| !arg.starts_with("-o")).copied().collect::<Vec<_>>();
    let _ = writeln!(std::io::stderr(), "mglru: {program} {}", shown.join(" "));
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    let ran = waited_for(child, folder).map_err(|e| format!("{program}: {e}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("failed");
    Err(format!("{program} {}: {last}", shown.join(" ")))
}

/// Waits, shows on a terminal how much lies in the folder, and ends the program when a signal asks
/// to stop, so that what was begun is cleared away.
fn waited_for(child: Child, folder: &Path) -> std::io::Result<Output> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM].map(|signal| flag::register(signal, stop.clone()));
    let bar = match std::io::stderr().is_terminal() && folder != Path::new("/") {
        true => ProgressBar::new_spinner().with_message("fetched"),
        false => ProgressBar::hidden(),
    };
    let id = child.id();
    let output = thread::spawn(move || child.wait_with_output());
    while !output.is_finished() {
        if stop.load(Ordering::Relaxed) {
            let pid = rustix::process::Pid::from_raw(id.cast_signed());
            // It may have ended meanwhile.
            let _ = pid.map(|pid| rustix::process::kill_process(pid, Signal::TERM));
        }
        bar.set_message(format!("{} MiB", size_of(folder, &bar) >> 20));
        thread::sleep(LOOK);
    }
    bar.finish_and_clear();
    for id in signals.into_iter().flatten() {
        signal_hook::low_level::unregister(id);
    }
    let output = output.join().map_err(|_| std::io::Error::other("lost"))?;
    match stop.load(Ordering::Relaxed) {
        true => Err(std::io::Error::new(std::io::ErrorKind::Interrupted, "interrupted")),
        false => output,
    }
}

/// Counts bytes in a folder, for the progress line.
fn size_of(folder: &Path, bar: &ProgressBar) -> u64 {
    if bar.is_hidden() {
        return 0;
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_behind_the_package_are_found() {
        let text = "linux-image-6.12-cloud-amd64\n  Depends: linux-image-6.12.117+deb12-cloud-amd64\
            \n  Recommends: firmware\n";
        assert_eq!(parts(text), ["linux-image-6.12.117+deb12-cloud-amd64"]);
        let text = "  Depends: linux-base-7.3.4-cloud-amd64\n\
            \x20 Depends: linux-binary-7.3.4-cloud-amd64\n\
            \x20 Depends: linux-modules-7.3.4-cloud-amd64\n  Depends: linux-modules-cloud-amd64\n";
        let found = ["linux-binary-7.3.4-cloud-amd64", "linux-modules-7.3.4-cloud-amd64"];
        assert_eq!(parts(text), found);
        assert!(parts("N: No packages found\n").is_empty());
    }

    #[test]
    fn a_step_that_fails_says_why() {
        let error = step("ls", &["no/such/file"], Path::new("/")).unwrap_err();
        assert!(error.starts_with("ls no/such/file: ls: ") && error.contains("no/such/file"));
        assert!(step("no-such-program", &[], Path::new("/")).unwrap_err().starts_with("no-such-"));
    }
}
