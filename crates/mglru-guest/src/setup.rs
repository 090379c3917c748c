//! From a bare machine to one as the order describes it: modules, disk, swap, settings, groups and
//! the workload's files, which lie on the disk and are not cached when the work begins.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use mglru_guest::Order;
use mglru_guest::order::{Setting, file_path};
use rustix::mount::{MountFlags, mount};

use crate::disk;

const CGROUPS: &str = "/sys/fs/cgroup";
/// Where the io controller is mounted apart from the others.
const OLD_IO: &str = "/blkio";
const SHELL: &str = "/bin/busybox";
const ZRAM: &str = "/dev/zram0";
/// Files are written in pieces of this many bytes.
const PIECE: usize = 1 << 20;

/// Returns the directory of a group; the root for an empty path.
pub fn group_dir(group: &str) -> String {
    format!("{CGROUPS}{}", group.trim_end_matches('/'))
}

pub fn prepare(order: &Order) -> Result<(), String> {
    order.modules.iter().try_for_each(|module| load(module))?;
    if Path::new(SHELL).exists() {
        // Names that are there already are programs of the host's, and stay.
        let _ = Command::new(SHELL).args(["--install", "-s", "/bin"]).output();
    }
    if let Some(disk) = &order.disk {
        disk::mount_disk(disk)?;
    }
    if order.zram_bytes > 0 {
        swap_on(order.zram_bytes)?;
    }
    if let Some(disk) = &order.swap_disk {
        disk::swap_on(disk)?;
    }
    order.settings.iter().try_for_each(set)?;
    make_groups(order)?;
    shell(&order.prepare)?;
    lay_out(&order.files)
}

pub fn load(module: &str) -> Result<(), String> {
    let (module, parameters) = module.split_once(' ').unwrap_or((module, ""));
    let file = File::open(module).map_err(|e| format!("{module}: {e}"))?;
    let parameters = CString::new(parameters).map_err(|e| format!("{module}: {e}"))?;
    match rustix::system::finit_module(&file, &parameters, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(e) => Err(format!("module {module}: {e}; does it belong to this kernel?")),
    }
}

/// Runs a text in the shell; a failure is reported with its last line.
pub fn shell(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let ran = Command::new(SHELL).args(["sh", "-ec", text]).output();
    let ran = ran.map_err(|e| format!("{SHELL}: {e}"))?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    eprint!("{said}");
    match ran.status.success() {
        true => Ok(()),
        false => Err(format!("prepare: {}", said.lines().last().unwrap_or("failed"))),
    }
}

fn swap_on(bytes: u64) -> Result<(), String> {
    disk::await_device(ZRAM)?;
    let path = "/sys/block/zram0/disksize".to_owned();
    set(&Setting { path, value: bytes.to_string(), needed: true })?;
    shell(&format!("mkswap {ZRAM} >/dev/null; swapon {ZRAM}"))
}

/// Writes a value; a kernel that lacks a file which is not needed is left as it is.
pub fn set(setting: &Setting) -> Result<(), String> {
    let Setting { path, value, needed } = setting;
    match fs::write(path, value) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !needed => Ok(()),
        Err(e) => Err(format!("{path} = {value}: {e}")),
        Ok(()) => Ok(()),
    }
}

fn make_groups(order: &Order) -> Result<(), String> {
    let control = |dir: &str| format!("{dir}/cgroup.subtree_control");
    let put = |path: String, value: &str| {
        fs::write(&path, value).map_err(|e| format!("{path} = {value}: {e}"))
    };
    // Groups have writeback of their own only where the same hierarchy controls memory and io: with
    // the latter in a hierarchy of the old kind they have not.
    let controllers = if order.shared_writeback { "+memory" } else { "+memory +io" };
    if order.shared_writeback {
        mount_io_apart()?;
    }
    put(control(CGROUPS), controllers)?;
    for group in &order.groups {
        let dir = group_dir(&group.path);
        fs::create_dir_all(&dir).map_err(|e| format!("{dir}: {e}"))?;
        let is_parent = |other: &str| other.starts_with(&format!("{}/", group.path));
        if order.groups.iter().any(|other| is_parent(&other.path)) {
            put(control(&dir), controllers)?;
        }
        for (file, value) in &group.limits {
            put(format!("{dir}/{file}"), value)?;
        }
    }
    Ok(())
}

fn mount_io_apart() -> Result<(), String> {
    fs::create_dir_all(OLD_IO).map_err(|e| format!("{OLD_IO}: {e}"))?;
    mount("cgroup", OLD_IO, "cgroup", MountFlags::empty(), c"blkio")
        .map_err(|e| format!("machine.dirty.per_group = false: this kernel has no blkio ({e})"))
}

/// Every block is written, so that a first read is a read of the device.
fn lay_out(files: &[u64]) -> Result<(), String> {
    let piece = vec![0xa5; PIECE];
    for (number, bytes) in files.iter().enumerate() {
        let path = file_path(number);
        write_whole(&path, *bytes, &piece).map_err(|e| format!("{path}: {e}"))?;
    }
    if !files.is_empty() {
        set(&Setting {
            path: "/proc/sys/vm/drop_caches".to_owned(),
            value: "3".to_owned(),
            needed: true,
        })?;
    }
    Ok(())
}

fn write_whole(path: &str, bytes: u64, piece: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let mut left = bytes;
    while left > 0 {
        let len = left.min(piece.len() as u64) as usize;
        file.write_all(&piece[..len])?;
        left -= len as u64;
    }
    file.sync_all()
}
