//! The disk that the workload's files lie on: given by the host with its file system, or made here
//! of the guest's own memory.

use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::process::Command;
use std::time::{Duration, Instant};

use mglru_guest::order::{Disk, FileSystem, MOUNT, MemoryDisk, Queue, Setting};
use rustix::fs::OFlags;
use rustix::mount::{MountFlags, mount};

use crate::setup::{set, shell};

/// Longest wait for a device whose driver was just loaded.
const DEVICE_WAIT: Duration = Duration::from_secs(10);
/// Names the directory where null_blk is asked for devices.
pub const CONFIG: &str = "/sys/kernel/config";
/// A disk is filled in pieces of this many bytes.
const PIECE: usize = 1 << 20;
/// Transfers past the page cache begin at a multiple of this.
const ALIGNED: usize = 4096;
/// Lists the directories where programs of the host lie.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Blocks of a page; nothing is initialised in the background while something is measured; blocks
/// that were filled stay.
const EXT4: [&str; 6] =
    ["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"];
/// Blocks of a page and small disks too, which a maker that is not asked refuses.
const XFS: [&str; 6] = ["-q", "-f", "-K", "--unsupported", "-b", "size=4096"];
/// The disk that is swapped to.
const SWAP: &str = "/dev/nullb1";

/// Mounts the disk, made first if it is the guest's own.
pub fn mount_disk(disk: &Disk) -> Result<(), String> {
    if let Some(made) = &disk.made {
        make(&disk.device, made)?;
        format(&disk.device, disk.file_system)?;
    }
    await_device(&disk.device)?;
    let device = match disk.delay_ms {
        Some((read, write)) => delayed(&disk.device, read, write)?,
        None => disk.device.clone(),
    };
    let _ = fs::create_dir_all(MOUNT);
    let name = disk.file_system.name();
    mount(device.as_str(), MOUNT, name, MountFlags::NOATIME, None)
        .map_err(|e| format!("{device}: cannot be mounted as {name}: {e}"))?;
    let name = fs::canonicalize(&device).map_err(|e| format!("{device}: {e}"))?;
    let name = name.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let value = disk.read_ahead_kb.to_string();
    set(&Setting { path: format!("/sys/block/{name}/queue/read_ahead_kb"), value, needed: true })
}

/// Waits until the device is there.
pub fn await_device(device: &str) -> Result<(), String> {
    let start = Instant::now();
    while !fs::metadata(device).is_ok_and(|m| m.file_type().is_block_device()) {
        if start.elapsed() > DEVICE_WAIT {
            return Err(format!("{device}: this kernel has no driver for it (see --modules)"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The device behind one that holds reads and writes back.
fn delayed(device: &str, read_ms: u64, write_ms: u64) -> Result<String, String> {
    let table = format!(
        "0 $(/bin/busybox blockdev --getsz {device}) delay {device} 0 {read_ms} {device} 0 \
         {write_ms}"
    );
    shell(&format!("dmsetup create --noudevsync --noudevrules slow --table \"{table}\""))?;
    // The kernel's own name: links to it are udev's work, which is not here.
    Ok("/dev/dm-0".to_owned())
}

fn make(device: &str, disk: &MemoryDisk) -> Result<(), String> {
    if let Some(queue) = &disk.queue {
        ask_for(device, disk.bytes, queue)?;
    }
    await_device(device)?;
    fill(device, disk.bytes).map_err(|e| format!("{device}: {e}"))
}

fn format(device: &str, file_system: FileSystem) -> Result<(), String> {
    let (maker, options) = match file_system {
        FileSystem::Ext4 => (file_system.maker(), EXT4),
        FileSystem::Xfs => (file_system.maker(), XFS),
    };
    let made = Command::new(maker).args(options).arg(device).env("PATH", PATH).output();
    let made = made.map_err(|e| format!("{maker}: {e}"))?;
    match made.status.success() {
        true => Ok(()),
        false => Err(format!("{maker}: {}", String::from_utf8_lossy(&made.stderr).trim())),
    }
}

/// Makes a disk of memory and swaps to it.
pub fn swap_on(disk: &MemoryDisk) -> Result<(), String> {
    make(SWAP, disk)?;
    shell(&format!("mkswap {SWAP} >/dev/null; swapon {SWAP}"))
}

/// A device of null_blk that keeps what is written to it.
fn ask_for(device: &str, bytes: u64, queue: &Queue) -> Result<(), String> {
    if !fs::exists(format!("{CONFIG}/nullb")).unwrap_or(false) {
        mount("configfs", CONFIG, "configfs", MountFlags::empty(), None)
            .map_err(|e| format!("{CONFIG}: this kernel has no configfs ({e})"))?;
    }
    let name = device.trim_start_matches("/dev/");
    let dir = format!("{CONFIG}/nullb/{name}");
    fs::create_dir(&dir).map_err(|e| format!("{dir}: this kernel has no null_blk ({e})"))?;
    let timed = u64::from(queue.latency_ns > 0);
    for (key, value) in [
        ("size", bytes >> 20),
        ("blocksize", ALIGNED as u64),
        ("memory_backed", 1),
        ("submit_queues", 1),
        ("hw_queue_depth", u64::from(queue.depth)),
        // Answered by a timer, or at once.
        ("irqmode", 2 * timed),
        ("completion_nsec", queue.latency_ns),
        ("power", 1),
    ] {
        set(&Setting { path: format!("{dir}/{key}"), value: value.to_string(), needed: true })?;
    }
    Ok(())
}

/// Takes all the disk's memory before anything is measured: what is left to the kernel is then the
/// same however full the file system is.
fn fill(device: &str, bytes: u64) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(device)?;
    let room = vec![0u8; PIECE + ALIGNED];
    let start = room.as_ptr().align_offset(ALIGNED);
    let mut at = 0;
    while at < bytes {
        let len = (bytes - at).min(PIECE as u64);
        file.write_all_at(&room[start..start + len as usize], at)?;
        at += len;
    }
    Ok(())
}
