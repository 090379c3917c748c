//! Says what this host offers a booted kernel and programs under a budget, and fetches what it
//! lacks. Debian's packages alone are known; the kernel is unpacked into the user's cache and never
//! installed on the host.

use std::fs;
use std::io::Write;
use std::path::Path;

use mglru_pager::launch::malloc;
use object::{Object, ObjectSymbol};

use super::fetch::{self, step};
use super::fetched;
use super::image::Image;
use super::spec::{Accelerator, KernelSpec};
use super::{accel, guest, programs, qemu};

/// The package of the malloc of programs under a budget.
const MALLOC: &str = "libjemalloc2";
/// QEMU offers this function only where it takes plugins.
const OF_PLUGINS: &[u8] = b"qemu_plugin_register_vcpu_tb_trans_cb";

/// Programs with the packages they are in.
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
    ("qemu-x86_64", "qemu-user"),
];

/// Describes a part that the kernel backend needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Names the part.
    pub what: String,
    /// Holds the part that is there, or the one line that mends its absence.
    pub state: Result<String, String>,
    /// Says that no booted kernel runs without it.
    pub needed: bool,
}

/// Looks at this host. `boot` also finds out whether KVM works, by booting, and builds the guest
/// program if need be.
pub fn look(boot: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = PROGRAMS.iter().enumerate().map(program).collect();
    findings.extend(plugins());
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
        state: fetched::newest().map(|path| path.display().to_string()),
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
    let found = programs::find(name).ok().map(|path| path.display().to_string());
    // The first ones boot a guest with a disk; the others are for plans that use them.
    let needed = at < 3;
    let state = found.ok_or_else(|| format!("apt-get install {package}"));
    Finding { what: name.to_string(), state, needed }
}

/// A plugin of QEMU counts a profile's instructions; some builds take none.
fn plugins() -> Option<Finding> {
    let program = fs::read(programs::find(qemu::PROGRAM).ok()?).ok()?;
    let takes = has_symbol(&program, OF_PLUGINS);
    let rebuild = || "apt-get install qemu-system-x86, or build QEMU with --enable-plugins".into();
    let state = takes.then(|| "taken".to_string()).ok_or_else(rebuild);
    Some(Finding { what: "QEMU plugins".to_string(), state, needed: false })
}

/// Tells whether a program offers a function to what it loads.
fn has_symbol(program: &[u8], name: &[u8]) -> bool {
    let Ok(file) = object::File::parse(program) else { return false };
    let mut names = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    names.any(|symbol| symbol.name_bytes().is_ok_and(|bytes| bytes == name))
}

/// Installs the programs that are missing and fetches the default kernel and, if it can be had,
/// the newest.
///
/// # Errors
/// The step that failed, with the last line it said.
pub fn install() -> Result<(), String> {
    let missing = PROGRAMS.iter().filter(|(name, _)| programs::find(name).is_err());
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    packages.extend(malloc().is_none().then_some(MALLOC));
    if !packages.is_empty() {
        let args = ["install", "-y", "-q", "--no-install-recommends"];
        fetch::update()?;
        step("apt-get", &[&args[..], &packages].concat(), Path::new("/"))?;
    }
    if Image::of(&KernelSpec::default()).is_err() {
        fetch::default()?;
    }
    if fetched::newest().is_err() {
        // Only what asks for it by name needs it: the table says what is missing.
        if let Err(problem) = fetch::newest() {
            let _ = writeln!(std::io::stderr(), "mglru: newest kernel: {problem}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_where_the_program_offers_it() {
        let library = mglru_qemu::MACHINE;
        assert!(has_symbol(library, b"gettimeofday"));
        assert!(!has_symbol(library, b"no_such_function") && !has_symbol(b"text", b"main"));
    }
}
