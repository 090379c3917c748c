//! Virtual time: a booted kernel that repeats to the byte. QEMU translates on one thread and counts
//! instructions; each takes a fixed time, and waiting is jumped over. Everything the guest could
//! learn from outside is fixed or comes from the seed, and the disk is memory of the guest, because
//! a device of the host answers when it likes.

use std::process::Command;

use mglru_guest::order::{Disk, MemoryDisk, Order, Queue};
use mglru_guest::report::Snapshot;
use mglru_sim::device::DeviceSpec;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::qemu::{self, Machine};
use super::spec::DiskKind;
use super::{order, programs};

/// Requests served at the same time by a device that serves any number.
const MOST_AT_ONCE: u32 = 1024;
/// Disks of memory are whole pieces of this.
const MIB: u64 = 1 << 20;
const DAY_S: u64 = 86_400;
/// Every month has so many days.
const DAYS: u64 = 28;

/// Holds the parts of a guest's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualTime {
    /// Seeds the random numbers.
    pub seed: u64,
    /// Sets how long an instruction lasts, ns, a power of two.
    pub ns_per_instruction: u32,
}

/// Returns the options that fix QEMU's clocks and random numbers for a seed. The kernel's own
/// random numbers begin with the time of day.
pub fn clock(time: VirtualTime) -> String {
    let (seed, shift) = (time.seed, time.ns_per_instruction.ilog2());
    let (day, s) = (1 + seed / DAY_S % DAYS, seed % DAY_S);
    let base = format!("2026-01-{day:02}T{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
    format!(
        "-accel tcg,thread=single -icount shift={shift},sleep=off -rtc base={base},clock=vm \
         -seed {seed}"
    )
}

/// Returns the disk as memory of the guest; its size is still to come. `delay_ms` of `disk` says
/// whether another device holds requests back already.
pub fn disk(disk: Disk, device: &DeviceSpec, kind: DiskKind) -> Disk {
    let (name, queue) = match kind {
        DiskKind::Blk => ("/dev/nullb0", Some(queue(device, disk.delay_ms.is_some()))),
        DiskKind::Pmem => ("/dev/ram0", None),
    };
    Disk { device: name.to_string(), made: Some(MemoryDisk { bytes: 0, queue }), ..disk }
}

/// Returns a disk of memory to swap to, as quick as the device that files lie on.
pub fn swap(bytes: u64, device: &DeviceSpec) -> MemoryDisk {
    MemoryDisk { bytes: disk_size(bytes), queue: Some(queue(device, false)) }
}

/// The device's queue; one that is `held_back` by another device answers at once.
fn queue(device: &DeviceSpec, held_back: bool) -> Queue {
    // One time for reads and writes; where a seek is in it, its mean.
    let latency_ns = device.read_ns + device.seek_ns + device.seek_spread_ns / 2;
    let depth = match device.channels {
        0 => MOST_AT_ONCE,
        channels => channels.min(MOST_AT_ONCE),
    };
    Queue { latency_ns: if held_back { 0 } else { latency_ns }, depth }
}

/// Rounds `bytes` up to the size of a disk of memory.
pub fn disk_size(bytes: u64) -> u64 {
    bytes.next_multiple_of(MIB)
}

/// Names the drivers of a disk of memory.
pub fn modules(disk: &MemoryDisk) -> &'static [&'static str] {
    match disk.queue {
        Some(_) => &["configfs", "null_blk"],
        None => &["brd"],
    }
}

/// Adds the parameters that a disk of memory needs to the modules.
pub fn with_parameters(modules: Vec<String>, disk: Option<MemoryDisk>) -> Vec<String> {
    let Some(disk) = disk else { return modules };
    let given = |path: String| match path.rsplit('/').next() {
        Some("null_blk.ko") => format!("{path} nr_devices=0"),
        Some("brd.ko") => format!("{path} rd_nr=1 max_part=0 rd_size={}", disk.bytes >> 10),
        _ => path,
    };
    modules.into_iter().map(given).collect()
}

/// Writes the same parameters for the command line of a kernel with the drivers built in: it
/// would make disks of its own size at boot.
pub fn parameters(disk: Option<MemoryDisk>) -> String {
    let Some(disk) = disk else { return String::new() };
    let ram = format!("brd.rd_nr=1 brd.max_part=0 brd.rd_size={}", disk.bytes >> 10);
    format!(" null_blk.nr_devices=0 {ram}")
}

/// Lists all that must be equal for a run to be equal: kernel, guest's files, QEMU and its
/// arguments.
///
/// # Errors
/// When the kernel cannot be read, or QEMU does not say its version.
pub fn proof(machine: &Machine, initramfs: &[u8]) -> Result<Json, String> {
    let kernel = std::fs::read(machine.image);
    let kernel = kernel.map_err(|e| format!("{}: {e}", machine.image.display()))?;
    let mut qemu = Command::new(programs::find(qemu::PROGRAM)?);
    let version = qemu.arg("--version").output();
    let version = version.map_err(|e| format!("{}: {e}", qemu::PROGRAM))?;
    let version = String::from_utf8_lossy(&version.stdout).lines().next().map(str::to_string);
    Ok(json!({
        "kernel_sha256": hash(&kernel),
        "guest_sha256": hash(initramfs),
        "qemu": version,
        "flags": machine.flags(),
    }))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tells the guest's memory: asked for, on top of it for the disk, and what its kernel found and
/// keeps free. Watermarks are shares of all memory, so that they lie higher than asked for; what
/// may be dirty is a share of what is free or cached, and the filled disk is neither.
pub fn memory(asked: u64, order: &Order, ready: &Snapshot) -> Json {
    let line = |name: &str| {
        let line = ready.meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let bytes = |name| line(name).map(|kib| kib << 10);
    json!({
        "asked": asked,
        "disk": order::disk_memory(order),
        "total": bytes("MemTotal"),
        "available": bytes("MemAvailable"),
        "min_free": ready.min_free_kb << 10,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_time_of_day() {
        let clock = |seed| clock(VirtualTime { seed, ns_per_instruction: 4 });
        assert!(clock(1).starts_with("-accel tcg,thread=single -icount shift=2,sleep=off "));
        assert!(clock(1).contains("-rtc base=2026-01-01T00:00:01,clock=vm -seed 1"));
        assert!(clock(90_061).contains("base=2026-01-02T01:01:01,clock=vm -seed 90061"));
        assert!(clock(u64::MAX).contains("T"), "any seed is one");
    }

    #[test]
    fn a_disk_of_memory_answers_as_the_plans_device_does() {
        let of = |name: &str, delay_ms, kind| {
            let plain = Disk { read_ahead_kb: 128, delay_ms, ..Disk::default() };
            let disk = disk(plain, &DeviceSpec::preset(name).unwrap(), kind);
            (disk.device, disk.made.unwrap().queue.map(|queue| (queue.latency_ns, queue.depth)))
        };
        let null = |latency, depth| ("/dev/nullb0".to_string(), Some((latency, depth)));
        assert_eq!(of("nvme", None, DiskKind::Blk), null(80_000, 32));
        assert_eq!(of("hdd", None, DiskKind::Blk), null(10_000_000, 1));
        assert_eq!(of("delay", Some((0, 1000)), DiskKind::Blk), null(0, MOST_AT_ONCE));
        assert_eq!(of("ram", None, DiskKind::Pmem), ("/dev/ram0".to_string(), None));
    }

    #[test]
    fn modules_are_given_the_size() {
        let modules = |disk| with_parameters(vec!["/m/brd.ko".into(), "/m/x.ko".into()], disk);
        let disk = MemoryDisk { bytes: 3 << 20, queue: None };
        assert_eq!(modules(Some(disk)), ["/m/brd.ko rd_nr=1 max_part=0 rd_size=3072", "/m/x.ko"]);
        assert_eq!(modules(None), ["/m/brd.ko", "/m/x.ko"]);
        assert!(parameters(Some(disk)).ends_with("brd.max_part=0 brd.rd_size=3072"));
        assert!(parameters(None).is_empty());
        assert_eq!(disk_size(1), MIB);
    }

    #[test]
    fn memory_is_recorded_as_the_guest_found_it() {
        let meminfo = "MemTotal:        100 kB\nMemAvailable:     70 kB\n".to_string();
        let ready = Snapshot { meminfo, min_free_kb: 2, ..Snapshot::default() };
        let levels = memory(5, &Order::default(), &ready);
        assert_eq!((&levels["total"], &levels["available"]), (&102_400.into(), &71_680.into()));
        assert_eq!((&levels["min_free"], &levels["disk"]), (&2048.into(), &0.into()));
    }
}
