//! Boots a kernel only to see what it has of what runs need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mglru_guest::Order;
use mglru_guest::order::Work;

use super::image::Image;
use super::initramfs::Archive;
use super::needs::{NEEDS, Need};
use super::qemu::Machine;
use super::scratch::Scratch;
use super::spec::KernelSpec;
use super::{guest, modules, pack, programs, repeat, watch};
use crate::backend::Failure;

/// Memory of the guest: modules and programs are unpacked into it.
const MEMORY: u64 = 512 << 20;
const AT_MOST: Duration = Duration::from_secs(300);
/// Virtual time is slower than the host's.
const PATIENCE: u32 = 4;

/// Describes something that a kernel lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Names what the kernel lacks.
    pub what: &'static str,
    /// Names the plans that need it; none: all.
    pub only: Option<&'static str>,
    /// Says which change mends it.
    pub fix: String,
}

/// Boots a kernel and returns its release and what it lacks.
///
/// # Errors
/// It cannot be booted on this host, or does not boot.
pub fn probe(image: &Path, modules: Option<PathBuf>) -> Result<(String, Vec<Lack>), Failure> {
    let image = Some(image.to_path_buf());
    let image = Image::of(&KernelSpec { image, modules, ..KernelSpec::default() })?;
    programs::find(super::qemu::PROGRAM)?;
    let (initramfs, absent) = initramfs(&image)?;
    let console = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let machine = Machine {
        image: &image.path,
        initramfs: Scratch::holding(&initramfs)?,
        disk: None,
        memory: MEMORY,
        cpus: 1,
        nodes: 1,
        append: "",
        accel: "tcg",
        virtual_time: Some(repeat::VirtualTime { seed: 1, ns_per_instruction: 2 }),
        profile: None,
        is_held: false,
    };
    let qemu = machine.start(console.path())?;
    let ending = watch::Ending::default();
    let report = watch::listen(qemu, AT_MOST, PATIENCE, console.path(), ending);
    let report = report.map_err(|e| match e {
        Failure::Machine(why) => Failure::Machine(unbooted(&why, console.path())),
        input => input,
    })?;
    let silent = || Failure::Machine("stopped before it said what it has".to_string());
    let shown = report.probed.ok_or_else(silent)?;
    Ok((report.kernel, lacks(&shown, image.modules.as_deref(), &absent)))
}

/// The guest with its order and all modules that are there; also names those that are not.
fn initramfs(image: &Image) -> Result<(Vec<u8>, Vec<&'static str>), String> {
    let mut archive = Archive::new().map_err(|e| e.to_string())?;
    let wanted = NEEDS.iter().flat_map(|need| need.modules.iter().copied());
    let (mut there, mut absent) = (Vec::new(), Vec::new());
    for name in wanted {
        let dir = image.modules.as_deref();
        match dir.map(|dir| modules::ordered(dir, &[name])) {
            Some(Ok(_)) => there.push(name.to_string()),
            _ => absent.push(name),
        }
    }
    let modules = pack::modules(&mut archive, image.modules.as_deref(), &there)?;
    let disk = mglru_guest::order::MemoryDisk { bytes: 1 << 20, queue: None };
    let paths = NEEDS.iter().filter_map(Need::path).map(str::to_string).collect();
    let order = Order {
        modules: repeat::with_parameters(modules, Some(disk)),
        work: Work::Probe(paths),
        ..Order::default()
    };
    pack::basics(&mut archive, guest::program()?, &order)?;
    if programs::find("dmsetup").is_ok() {
        pack::programs(&mut archive, &["dmsetup".to_string()])?;
    }
    Ok((archive.finish().map_err(|e| e.to_string())?, absent))
}

fn lacks(shown: &BTreeMap<String, String>, dir: Option<&Path>, absent: &[&str]) -> Vec<Lack> {
    let missing = NEEDS.iter().filter(|need| !need.is_met(shown));
    let lack = |need: &Need| Lack { what: need.what, only: need.only, fix: fix(need, dir, absent) };
    missing.map(lack).collect()
}

fn fix(need: &Need, dir: Option<&Path>, absent: &[&str]) -> String {
    let absent: Vec<&str> = need.modules.iter().filter(|m| absent.contains(m)).copied().collect();
    let settings = match need.options.is_empty() {
        true => "a kernel that has it".to_string(),
        false => need.settings(),
    };
    match (dir, absent.is_empty()) {
        (Some(dir), false) => {
            format!("{settings}, or =m and {} in {}", absent.join(", "), dir.display())
        }
        (None, false) => format!("{settings}, or modules: --modules DIR"),
        _ => settings,
    }
}

/// Explains by the kernel's messages why it did not boot; nothing else shows it.
fn unbooted(problem: &str, console: &Path) -> String {
    let messages = std::fs::read(console).unwrap_or_default();
    let messages = String::from_utf8_lossy(&messages);
    let hint = match () {
        () if messages.trim().is_empty() => "no message: serial console (mglru kernel config)",
        () if messages.contains("Unable to mount root fs") => {
            "no initramfs: CONFIG_BLK_DEV_INITRD=y"
        }
        () if messages.contains("init: ") || messages.contains("/dev/ttyS1") => {
            "no second port: CONFIG_DEVTMPFS=y, CONFIG_SERIAL_8250=y"
        }
        () => "mglru kernel config says what it needs",
    };
    format!("does not boot here: {problem}; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_names_options_and_modules() {
        let all = NEEDS.iter().filter_map(Need::path);
        let word = |path: &str| {
            let found = NEEDS.iter().filter_map(|need| match need.sign {
                super::super::needs::Sign::Word(at, word) if at == path => Some(word),
                _ => None,
            });
            found.collect::<Vec<_>>().join(" ")
        };
        let mut shown: BTreeMap<String, String> =
            all.map(|path| (path.to_string(), word(path))).collect();
        assert_eq!(lacks(&shown, None, &[]), []);
        shown.remove("/dev/ram0");
        let found = lacks(&shown, None, &["brd"]).remove(0);
        assert_eq!((found.what, found.only), ("brd", Some("device = \"ram\"")));
        assert_eq!(found.fix, "CONFIG_BLK_DEV_RAM=y, or modules: --modules DIR");
        let found = lacks(&shown, Some(Path::new("/m")), &["brd"]).remove(0);
        assert_eq!(found.fix, "CONFIG_BLK_DEV_RAM=y, or =m and brd in /m");
        shown.clear();
        let needed = lacks(&shown, None, &[]).into_iter().filter(|lack| lack.only.is_none());
        assert_eq!(needed.count(), 7);
    }

    #[test]
    fn a_kernel_that_does_not_boot_gets_a_reason() {
        let console = tempfile::NamedTempFile::new().unwrap();
        let message = |messages: &str| {
            std::fs::write(console.path(), messages).unwrap();
            unbooted("silent", console.path())
        };
        assert!(message("").contains("serial console"));
        let text = "VFS: Unable to mount root fs on unknown-block(0,0)";
        assert!(message(text).ends_with("CONFIG_BLK_DEV_INITRD=y"));
    }
}
