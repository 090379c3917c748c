//! What this host offers a booted kernel and programs under a budget, and fetching what it lacks.
//! Debian's packages alone are known; the kernel is unpacked into the user's cache and never
//! installed on the host.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::fetch::{self, step};
use super::image::{self, Image};
use super::spec::{Accelerator, KernelSpec};
use super::{accel, guest, programs, qemu};

/// The malloc of programs under a budget.
const MALLOC: &str = "libjemalloc.so.2";

/// Programs, and a library, with the packages they are in.
const PROGRAMS: [(&str, &str); 11] = [
    (qemu::PROGRAM, "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
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
    findings.push(Finding {
        what: "newest kernel".to_string(),
        state: image::newest().map(|path| path.display().to_string()),
        needed: false,
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

/// Installs the programs that are missing and fetches the default kernel and, if it can be had,
/// the newest.
///
/// # Errors
/// The step that failed, with the last line it said.
pub fn install() -> Result<(), String> {
    let missing = PROGRAMS.iter().filter(|(name, _)| find(name).is_none());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !packages.is_empty() {
        let args = ["install", "-y", "-q", "--no-install-recommends"];
        fetch::update()?;
        step("apt-get", &[&args[..], &packages].concat(), Path::new("/"))?;
    }
    if Image::of(&KernelSpec::default()).is_err() {
        fetch::default()?;
    }
    if image::newest().is_err() {
        // Only what asks for it by name needs it: the table says what is missing.
        if let Err(problem) = fetch::newest() {
            let _ = writeln!(std::io::stderr(), "mglru: newest kernel: {problem}");
        }
    }
    Ok(())
}
