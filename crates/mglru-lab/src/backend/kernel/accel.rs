//! Whether KVM works here. Only booting shows it: many hosts show a device that cannot run a guest.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use mglru_guest::Order;

use super::initramfs::Archive;
use super::qemu::Machine;
use super::scratch::Scratch;
use super::spec::Accelerator;
use super::{guest, pack, watch};

/// A guest under KVM says hello within a second or two.
const AT_MOST: Duration = Duration::from_secs(20);
const MEMORY: u64 = 512 << 20;

/// Chooses `kvm` or `tcg`, as asked for or as this host can. The host is tried once.
///
/// # Errors
/// When the guest program cannot be had.
pub fn choose(asked: Accelerator, image: &Path) -> Result<&'static str, String> {
    static WORKS: OnceLock<Result<bool, String>> = OnceLock::new();
    match asked {
        Accelerator::Kvm => return Ok("kvm"),
        Accelerator::Tcg => return Ok("tcg"),
        Accelerator::Auto => {}
    }
    let works = WORKS.get_or_init(|| {
        let tried = try_kvm(image)?;
        if let Err(why) = &tried {
            let warning = "runs without KVM (counts stay, times mean little)";
            let _ = writeln!(std::io::stderr(), "mglru: the guest {warning}: {why}");
        }
        Ok(tried.is_ok())
    });
    works.clone().map(|works| if works { "kvm" } else { "tcg" })
}

/// Boots a guest that does nothing. The inner result is KVM's.
fn try_kvm(image: &Path) -> Result<Result<(), String>, String> {
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    if let Err(e) = device {
        return Ok(Err(format!("/dev/kvm: {e}")));
    }
    let mut archive = Archive::new().map_err(|e| e.to_string())?;
    pack::basics(&mut archive, guest::program()?, &Order::default())?;
    let bytes = archive.finish().map_err(|e| e.to_string())?;
    let machine = Machine {
        image,
        initramfs: Scratch::holding(&bytes)?,
        disk: None,
        memory: MEMORY,
        cpus: 1,
        nodes: 1,
        append: "",
        accel: "kvm",
        virtual_time: None,
        profile: None,
        is_held: false,
    };
    let console = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let qemu = machine.start(console.path())?;
    let ending = watch::Ending::default();
    Ok(watch::listen(qemu, AT_MOST, 1, console.path(), ending).map(drop).map_err(String::from))
}
