use super::*;

use mglru_guest::order::FileSystem;
use mglru_sim::device::DeviceSpec;
use mglru_sim::swap::SwapSpec;
use mglru_workload::op::GroupSpec as Named;

use crate::backend::kernel::spec::Clock;

const SWITCHES: Switches = Switches { lru_gen: 7, min_ttl_ms: None, swappiness: None };

fn layout() -> Layout {
    let group = |name: &str, parent| Named { name: name.to_string(), parent };
    let task = |mm, group, background| TaskSpec { mm, group, node: None, background };
    Layout {
        groups: vec![group("/a/b", Some(1)), group("/a", None)],
        tasks: vec![task(0, Some(0), false), task(1, None, false), task(0, Some(0), true)],
        ..Layout::default()
    }
}

#[test]
fn tasks_of_one_address_space_and_group_are_one_process() {
    let workers = workers(&layout());
    let task = |id, background| Task { id, background };
    assert_eq!(workers[0].group, "/a/b");
    assert_eq!(workers[0].tasks, [task(0, false), task(2, true)]);
    assert_eq!((workers[1].group.as_str(), workers[1].tasks.len()), ("", 1));
}

#[test]
fn parents_are_made_first_and_limits_of_the_plan_win() {
    let own = GroupSpec { max: Size(1 << 20), swappiness: Some(5), ..GroupSpec::default() };
    let limits = IndexMap::from([("/a/b".to_string(), own)]);
    let (own, other) = ("/a/b".to_string(), "/a".to_string());
    let set = [
        (other, Knob::MemoryMax, 7),
        (own.clone(), Knob::MemoryMax, 7),
        (own, Knob::MemoryHigh, u64::MAX),
    ];
    let (groups, swappiness) = groups(&layout(), &limits, &set).unwrap();
    assert_eq!((groups[0].path.as_str(), swappiness), ("/a", Some(5)));
    let value = |group: &Group, name: &str| {
        group.limits.iter().find(|(file, _)| file == name).map(|(_, value)| value.clone())
    };
    assert_eq!(value(&groups[0], "memory.max").as_deref(), Some("7"));
    assert_eq!(value(&groups[1], "memory.max").as_deref(), Some("1048576"));
    assert_eq!(value(&groups[1], "memory.high").as_deref(), Some("max"));
}

#[test]
fn groups_cannot_differ_in_swappiness() {
    let with = |swappiness| GroupSpec { swappiness: Some(swappiness), ..GroupSpec::default() };
    let limits = IndexMap::from([("/a/b".to_string(), with(5)), ("/a".to_string(), with(6))]);
    let error = groups(&layout(), &limits, &[]).unwrap_err().to_string();
    assert!(error.starts_with("groups./a.memory.swappiness = 6: a booted kernel has one"));
}

#[test]
fn a_slow_device_is_delayed_and_memory_is_memory() {
    let device = |name: &str| DeviceSpec::preset(name).unwrap();
    let spec = KernelSpec { clock: Some(Clock::Host), ..KernelSpec::default() };
    let of = |device| {
        let machine = MachineSpec { device, ..MachineSpec::default() };
        let order = of_machine(&machine, &spec, &SWITCHES).unwrap();
        let kind = disk_kind(&machine, &spec);
        let names = modules(&order, &spec, kind);
        (order.disk.clone().unwrap(), names.join(" "), programs(&order, &spec))
    };
    let (disk, modules, programs) = of(device("delay"));
    assert_eq!((disk.device.as_str(), disk.delay_ms), ("/dev/vda", Some((0, 1000))));
    assert_eq!(modules, "virtio_blk dm_mod dm_delay");
    assert_eq!(programs, ["dmsetup", "busybox"]);
    let (disk, modules, programs) = of(device("ram"));
    assert_eq!((disk.device.as_str(), disk.delay_ms), ("/dev/pmem0", None));
    assert_eq!((modules.as_str(), programs.len()), ("nfit nd_pmem", 0));
}

#[test]
fn swap_on_a_device_is_a_disk_of_memory_beside_that_of_files() {
    let swap = SwapSpec::on_device(64 << 20);
    let machine = MachineSpec { swap, ..MachineSpec::default() };
    let spec = KernelSpec { filesystem: FileSystem::Xfs, ..KernelSpec::default() };
    let mut order = of_machine(&machine, &spec, &SWITCHES).unwrap();
    size_disk(&mut order, spec.disk_room);
    assert_eq!(disk_memory(&order), (64 << 20) + made(&order).unwrap().bytes);
    let names = modules(&order, &spec, DiskKind::Blk);
    assert!(names.contains(&"null_blk".to_string()) && names.contains(&"xfs".to_string()));
    assert_eq!(programs(&order, &spec), ["mkfs.xfs", "busybox"]);
}

/// A database fills its log's files up; none of them may find the disk full.
#[test]
fn a_disk_has_room_for_every_file_and_its_file_system() {
    let spec = KernelSpec::default();
    let mut order = of_machine(&MachineSpec::default(), &spec, &SWITCHES).unwrap();
    order.files = vec![3 << 30, 100 << 20, 100 << 20];
    size_disk(&mut order, spec.disk_room);
    let files: u64 = order.files.iter().sum();
    assert!(made(&order).unwrap().bytes >= files + files / 20 + spec.disk_room.0);
}

#[test]
fn what_a_booted_kernel_cannot_do_is_refused() {
    let error = |machine: MachineSpec| {
        of_machine(&machine, &KernelSpec::default(), &SWITCHES).unwrap_err().to_string()
    };
    let swap = SwapSpec::on_device(1 << 30);
    let swapping = MachineSpec { swap, ..MachineSpec::default() };
    let host = KernelSpec { clock: Some(Clock::Host), ..KernelSpec::default() };
    let message = of_machine(&swapping, &host, &SWITCHES).unwrap_err().to_string();
    assert!(
        message.starts_with("machine.swap.kind = device: by the host's clock the"),
        "{message}"
    );
    let xfs = KernelSpec { filesystem: FileSystem::Xfs, ..host };
    let message = of_machine(&MachineSpec::default(), &xfs, &SWITCHES).unwrap_err().to_string();
    assert_eq!(message, "kernel.filesystem = xfs: by the host's clock files lie on ext4");
    let on_xfs = MachineSpec { filesystem: mglru_sim::spec::FileSystem::Xfs, ..Default::default() };
    assert_eq!(error(on_xfs), "machine.filesystem = xfs: kernel.filesystem is ext4");
    let alone = MachineSpec { kswapd: false, ..MachineSpec::default() };
    assert!(error(alone).starts_with("machine.kswapd = false: a booted kernel always"));
}
