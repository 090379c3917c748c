//! From a plan's sections to the guest's order: which groups, files, processes, settings.
//!
//! Keys of `[machine]` that describe what a booted kernel has of its own are passed over: `zones`,
//! `costs`, `quantum_ns`, `charge_batch`, `charge_kernel`, `shared_readahead_bit`, the times of
//! `device` below a millisecond (in virtual time only what its disk of memory cannot have: a time
//! for writes of their own, rates) and `swap.ratio`.

use std::collections::BTreeMap;

use indexmap::{IndexMap, IndexSet};
use mglru_guest::Order;
use mglru_guest::order::{Disk, FileSystem, Group, MemoryDisk, Setting, Task, Work, Worker};
use mglru_sim::MachineSpec;
use mglru_sim::spec::{FileSystem as Model, GroupSpec, Size};
use mglru_sim::swap::SwapKind;
use mglru_workload::Layout;
use mglru_workload::op::{Knob, TaskSpec};

use super::spec::{DiskKind, KernelSpec, Switches};
use super::{repeat, scratch};
use mglru_error::KeyError;

/// Delays below this are not worth a device mapper.
const DELAY_NS: u64 = 1_000_000;
/// Writeback waits of a kernel count in hundredths of seconds.
const MS_PER_CENTISECOND: u64 = 10;

/// Returns the machine's part of an order; files, groups and work are still to come.
///
/// # Errors
/// Names a key that a booted kernel cannot honour.
pub fn of_machine(
    machine: &MachineSpec,
    spec: &KernelSpec,
    switches: &Switches,
) -> Result<Order, KeyError> {
    if !machine.kswapd {
        return Err(KeyError::value("machine.kswapd", false, "a booted kernel always has kswapd"));
    }
    let size = machine.swap.size.unwrap_or(machine.memory).0;
    let (zram_bytes, swap_disk) = match machine.swap.kind {
        SwapKind::None => (0, None),
        SwapKind::Zram => (size, None),
        SwapKind::Device if spec.is_virtual() => (0, Some(swap_disk(machine, size))),
        SwapKind::Device => {
            let problem = "by the host's clock the kernel backend swaps to zram or not at all";
            return Err(KeyError::value("machine.swap.kind", "device", problem));
        }
    };
    check_filesystem(machine, spec)?;
    if spec.filesystem == FileSystem::Xfs && !spec.is_virtual() {
        let problem = "by the host's clock files lie on ext4";
        return Err(KeyError::value("kernel.filesystem", "xfs", problem));
    }
    Ok(Order {
        zram_bytes,
        swap_disk,
        disk: Some(disk(machine, spec)),
        shared_writeback: !machine.dirty.per_group,
        settings: settings(machine, switches),
        sample_ms: spec.sample_ms,
        prepare: spec.prepare.clone(),
        ..Order::default()
    })
}

/// The model of a plan and its kernel may not lie on different file systems.
fn check_filesystem(machine: &MachineSpec, spec: &KernelSpec) -> Result<(), KeyError> {
    let (name, problem) = match (machine.filesystem, spec.filesystem) {
        (Model::Ext4, FileSystem::Xfs) => ("ext4", "kernel.filesystem is xfs"),
        (Model::Xfs, FileSystem::Ext4) => ("xfs", "kernel.filesystem is ext4"),
        _ => return Ok(()),
    };
    Err(KeyError::value("machine.filesystem", name, problem))
}

fn swap_disk(machine: &MachineSpec, size: u64) -> MemoryDisk {
    repeat::swap(size, machine.swap.device.as_ref().unwrap_or(&machine.device))
}

/// Chooses the disk of files, unless the plan says so itself: memory for a device that is memory.
pub fn disk_kind(machine: &MachineSpec, spec: &KernelSpec) -> DiskKind {
    let of_memory = if machine.device.on_cpu { DiskKind::Pmem } else { DiskKind::Blk };
    spec.disk.unwrap_or(of_memory)
}

fn disk(machine: &MachineSpec, spec: &KernelSpec) -> Disk {
    let device = match disk_kind(machine, spec) {
        DiskKind::Blk => "/dev/vda",
        DiskKind::Pmem => "/dev/pmem0",
    };
    let (read, write) = (machine.device.read_ns, machine.device.write_ns);
    let delayed = read >= DELAY_NS || write >= DELAY_NS;
    let disk = Disk {
        device: device.to_string(),
        read_ahead_kb: machine.readahead_kb,
        delay_ms: delayed.then_some((read / DELAY_NS, write / DELAY_NS)),
        made: None,
        file_system: spec.filesystem,
    };
    match spec.is_virtual() {
        false => disk,
        true => repeat::disk(disk, &machine.device, disk_kind(machine, spec)),
    }
}

/// Gives a disk that the guest makes its size, once the files are known.
pub fn size_disk(order: &mut Order, room: Size) {
    let bytes = repeat::disk_size(scratch::with_overhead(order.files.iter().sum(), room.0));
    let made = order.disk.as_mut().and_then(|disk| disk.made.as_mut());
    made.into_iter().for_each(|made| made.bytes = bytes);
}

/// Counts the guest's memory that serves as disks, bytes.
pub fn disk_memory(order: &Order) -> u64 {
    made(order).into_iter().chain(order.swap_disk).map(|disk| disk.bytes).sum()
}

/// Returns the disk that the guest makes, if it does.
pub fn made(order: &Order) -> Option<MemoryDisk> {
    order.disk.as_ref()?.made
}

fn settings(machine: &MachineSpec, switches: &Switches) -> Vec<Setting> {
    let vm = |name: &str, value: u64| Setting {
        path: format!("/proc/sys/vm/{name}"),
        value: value.to_string(),
        needed: true,
    };
    let file =
        |path: &str, value: String, needed| Setting { path: path.to_string(), value, needed };
    let dirty = &machine.dirty;
    let lru_gen = "/sys/kernel/mm/lru_gen/enabled";
    let mut settings = vec![
        vm("swappiness", switches.swappiness.unwrap_or(u64::from(machine.swappiness))),
        vm("page-cluster", u64::from(machine.page_cluster)),
        vm("dirty_ratio", u64::from(dirty.ratio)),
        vm("dirty_background_ratio", u64::from(dirty.background_ratio)),
        vm("dirty_expire_centisecs", dirty.expire_ms / MS_PER_CENTISECOND),
        vm("dirty_writeback_centisecs", dirty.wake_ms / MS_PER_CENTISECOND),
        file("/sys/kernel/mm/transparent_hugepage/enabled", "never".to_string(), false),
        file(
            "/sys/kernel/debug/fault_around_bytes",
            (u64::from(machine.fault_around_pages()) * 4096).to_string(),
            machine.fault_around_kb != 64,
        ),
        // A kernel without generations can still be run as classic.
        file(lru_gen, switches.lru_gen.to_string(), switches.lru_gen != 0),
    ];
    settings.extend(
        switches
            .min_ttl_ms
            .map(|ms| file("/sys/kernel/mm/lru_gen/min_ttl_ms", ms.to_string(), true)),
    );
    settings
}

/// Returns the workload's groups with the plan's limits, parents first, and the one swappiness they
/// ask for, if they do: cgroup v2 has none per group.
///
/// # Errors
/// Groups that ask for different ones.
pub fn groups(
    layout: &Layout,
    limits: &IndexMap<String, GroupSpec>,
    set: &[(String, Knob, u64)],
) -> Result<(Vec<Group>, Option<u64>), KeyError> {
    let mut swappiness: Option<u64> = None;
    let mut groups = Vec::new();
    for group in &layout.groups {
        let own = limits.get(&group.name).cloned().unwrap_or_default();
        let set = set.iter().filter(|(path, ..)| *path == group.name);
        let mut values: BTreeMap<&str, u64> = set.map(|(_, k, v)| (file(*k), *v)).collect();
        values.extend(given(&own));
        if let Some(asked) = values.remove("memory.swappiness") {
            if swappiness.is_some_and(|other| other != asked) {
                let key = format!("groups.{}.memory.swappiness", group.name);
                let problem = "a booted kernel has one swappiness for all groups";
                return Err(KeyError::value(key, asked, problem));
            }
            swappiness = Some(asked);
        }
        let written =
            |value: u64| if value == u64::MAX { "max".to_string() } else { value.to_string() };
        let values = values.into_iter().map(|(name, value)| (name.to_string(), written(value)));
        groups.push(Group { path: group.name.clone(), limits: values.collect() });
    }
    groups.sort_by_key(|group| group.path.matches('/').count());
    Ok((groups, swappiness))
}

/// Limits that a plan gives.
fn given(spec: &GroupSpec) -> impl Iterator<Item = (&'static str, u64)> {
    let sizes = [
        ("memory.min", spec.min, Size(0)),
        ("memory.low", spec.low, Size(0)),
        ("memory.high", spec.high, Size::MAX),
        ("memory.max", spec.max, Size::MAX),
        ("memory.swap.max", spec.swap_max, Size::MAX),
    ];
    let sizes = sizes.into_iter().filter(|(_, size, none)| size != none);
    let swappiness = spec.swappiness.map(|value| ("memory.swappiness", u64::from(value)));
    sizes.map(|(name, size, _)| (name, size.0)).chain(swappiness)
}

fn file(knob: Knob) -> &'static str {
    match knob {
        Knob::MemoryMin => "memory.min",
        Knob::MemoryLow => "memory.low",
        Knob::MemoryHigh => "memory.high",
        Knob::MemoryMax => "memory.max",
        Knob::MemorySwapMax => "memory.swap.max",
        Knob::Swappiness => "memory.swappiness",
    }
}

/// Returns one process for each address space and group of the layout.
pub fn workers(layout: &Layout) -> Vec<Worker> {
    let mut workers: BTreeMap<(u32, &str), Vec<Task>> = BTreeMap::new();
    for (id, task) in (0..).zip(&layout.tasks) {
        let key = (task.mm, group_of(layout, task));
        workers.entry(key).or_default().push(Task { id, background: task.background });
    }
    let worker =
        |((_, group), tasks): ((u32, &str), Vec<Task>)| Worker { group: group.to_string(), tasks };
    workers.into_iter().map(worker).collect()
}

fn group_of<'a>(layout: &'a Layout, task: &TaskSpec) -> &'a str {
    task.group.map_or("", |group| &layout.groups[group as usize].name)
}

/// Lists the modules that an order needs.
pub fn modules(order: &Order, spec: &KernelSpec, kind: DiskKind) -> Vec<String> {
    let made: Vec<MemoryDisk> = made(order).into_iter().chain(order.swap_disk).collect();
    let mut names: Vec<&str> = match (made.is_empty(), kind) {
        (false, _) => made.iter().flat_map(repeat::modules).copied().collect(),
        (true, DiskKind::Blk) => vec!["virtio_blk"],
        (true, DiskKind::Pmem) => vec!["nfit", "nd_pmem"],
    };
    if order.disk.as_ref().is_some_and(|disk| disk.file_system == FileSystem::Xfs) {
        names.push("xfs");
    }
    if order.disk.as_ref().is_some_and(|disk| disk.delay_ms.is_some()) {
        names.extend(["dm_mod", "dm_delay"]);
    }
    if order.zram_bytes > 0 {
        names.push("zram");
    }
    let names = names.into_iter().map(str::to_string).chain(spec.load.iter().cloned());
    names.collect::<IndexSet<_>>().into_iter().collect()
}

/// Names the programs of the host that an order needs in the guest.
pub fn programs(order: &Order, spec: &KernelSpec) -> Vec<String> {
    let mut names = spec.programs.clone();
    if order.disk.as_ref().is_some_and(|disk| disk.delay_ms.is_some()) {
        names.push("dmsetup".to_string());
    }
    if let Some(disk) = order.disk.as_ref().filter(|disk| disk.made.is_some()) {
        names.push(disk.file_system.maker().to_string());
    }
    let shell = order.zram_bytes > 0
        || order.swap_disk.is_some()
        || !names.is_empty()
        || !order.prepare.trim().is_empty()
        || matches!(order.work, Work::Program(_));
    if shell {
        names.push("busybox".to_string());
    }
    names
}

#[cfg(test)]
mod tests;
