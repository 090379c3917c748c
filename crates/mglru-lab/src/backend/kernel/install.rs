//! What this host offers a booted kernel and programs under a budget, and fetching what it lacks.
//! Debian's packages alone are known; the kernel is unpacked into the user's cache and never
//! installed on the host.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::image::{Image, PACKAGE, fetched_root};
use super::spec::{Accelerator, KernelSpec};
use super::{accel, guest, programs, qemu};

/// The malloc of programs under a budget.
const MALLOC: &str = "libjemalloc.so.2";

/// Programs, and a library, with the packages they are in.
const PROGRAMS: [(&str, &str); 10] = [
    (qemu::PROGRAM, "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("mkfs.ext4", "e2fsprogs"),
    ("dmsetup", "dmsetup"),
    ("fio", "fio"),
    ("stress-ng", "stress-ng"),
    ("memcached", "memcached"),
    ("sysbench", "sysbench"),
    ("mariadbd", "mariadb-server-core"),
    (MALLOC, "libjemalloc2"),
];

/// Something the kernel backend needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// What of it is there, or the one line that mends its absence.
    pub state: Result<String, String>,
    /// No booted kernel runs without it.
    pub needed: bool,
}

/// Looks at this host. `boot` also finds out whether KVM works, by booting, and builds the guest
/// program if need be.
pub fn look(boot: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = PROGRAMS.iter().enumerate().map(program).collect();
    let image = Image::of(&KernelSpec::default());
    findings.push(Finding {
        what: "kernel".to_string(),
        state: match &image {
            Ok(image) => Ok(image.path.display().to_string()),
            Err(_) => Err("mglru doctor --install".to_string()),
        },
        needed: true,
    });
    if boot {
        let state = guest::program().map(|bytes| format!("{} KiB", bytes.len() >> 10));
        findings.push(Finding { what: "guest program".to_string(), state, needed: true });
        let state = image.and_then(|image| match accel::choose(Accelerator::Auto, &image.path)? {
            "kvm" => Ok("works".to_string()),
            _ => Err("guests run without it (TCG): slower, same counts".to_string()),
        });
        findings.push(Finding { what: "KVM".to_string(), state, needed: false });
    }
    findings
}

fn program((at, (name, package)): (usize, &(&str, &str))) -> Finding {
    let found = find(name).map(|path| path.display().to_string());
    // The first ones boot a guest with a disk; the others are for plans that use them.
    let needed = at < 3;
    let state = found.ok_or_else(|| format!("apt-get install {package}"));
    Finding { what: name.to_string(), state, needed }
}

fn find(name: &str) -> Option<PathBuf> {
    if name == MALLOC { mglru_pager::launch::malloc() } else { programs::find(name).ok() }
}

/// Installs the programs that are missing and fetches the default kernel.
///
/// # Errors
/// The step that failed, with the last line it said.
pub fn install() -> Result<(), String> {
    let missing = PROGRAMS.iter().filter(|(name, _)| find(name).is_none());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    let no_kernel = Image::of(&KernelSpec::default()).is_err();
    if packages.is_empty() && !no_kernel {
        return Ok(());
    }
    step("apt-get", &["update", "-q"], Path::new("/"))?;
    if !packages.is_empty() {
        let args = ["install", "-y", "-q", "--no-install-recommends"];
        step("apt-get", &[&args[..], &packages].concat(), Path::new("/"))?;
    }
    if no_kernel { fetch_kernel() } else { Ok(()) }
}

/// Downloads the package that the default one depends on and unpacks it into the cache.
fn fetch_kernel() -> Result<(), String> {
    let root = fetched_root().ok_or("HOME is not set: nowhere to keep a kernel")?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let depends = step("apt-cache", &["depends", PACKAGE], Path::new("/"))?;
    let real =
        real_package(&depends).ok_or(format!("{PACKAGE}: this system has no such package"))?;
    step("apt-get", &["download", "-q", real], folder.path())?;
    let package = fs::read_dir(folder.path()).into_iter().flatten().flatten().next();
    let package = package.ok_or(format!("{real}: nothing was downloaded"))?.path();
    unpack(&package, &root)
}

/// Beside the final place first, so that a kernel there is always whole.
fn unpack(package: &Path, root: &Path) -> Result<(), String> {
    let beside = root.with_extension("new");
    let at = |path: &Path| {
        let path: PathBuf = path.to_path_buf();
        move |e: std::io::Error| format!("{}: {e}", path.display())
    };
    let _ = fs::remove_dir_all(&beside);
    fs::create_dir_all(&beside).map_err(at(&beside))?;
    let paths = [package.display().to_string(), beside.display().to_string()];
    step("dpkg-deb", &["-x", &paths[0], &paths[1]], Path::new("/"))?;
    let _ = fs::remove_dir_all(root);
    fs::rename(&beside, root).map_err(at(root))
}

/// `linux-image-6.12.117+deb12-cloud-amd64` of what apt says about the package that follows it.
fn real_package(depends: &str) -> Option<&str> {
    let mut named = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    named.find(|name| name.starts_with("linux-image-"))
}

fn step(program: &str, args: &[&str], folder: &Path) -> Result<String, String> {
    let _ = writeln!(std::io::stderr(), "mglru: {program} {}", args.join(" "));
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("DEBIAN_FRONTEND", "noninteractive");
    let ran = command.output().map_err(|e| format!("{program}: {e}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("failed");
    Err(format!("{program} {}: {last}", args.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_behind_the_package_is_found() {
        let told = "linux-image-6.12-cloud-amd64\n  Depends: linux-image-6.12.117+deb12-cloud-amd64\
            \n  Recommends: firmware\n";
        assert_eq!(real_package(told), Some("linux-image-6.12.117+deb12-cloud-amd64"));
        assert_eq!(real_package("N: No packages found\n"), None);
    }

    #[test]
    fn a_step_that_fails_says_why() {
        let error = step("ls", &["no/such/file"], Path::new("/")).unwrap_err();
        assert!(error.starts_with("ls no/such/file: ls: ") && error.contains("no/such/file"));
        assert!(step("no-such-program", &[], Path::new("/")).unwrap_err().starts_with("no-such-"));
    }
}
