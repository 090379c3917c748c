//! The first process: mounts what a Linux needs, does what the order says, reports to the host,
//! stops the machine. Whatever fails is reported in one line.

use std::fs;

use mglru_guest::order::{ORDER_FILE, Work};
use mglru_guest::{Order, Report};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};

use crate::link::Link;
use crate::{coordinate, probe, program, setup, symbols};

/// Lists mounts: type and place.
const MOUNTS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("debugfs", "/sys/kernel/debug"),
];

pub fn run() -> Result<(), String> {
    let mounted = mount_all();
    let mut link = Link::open()?;
    let carried_out = carry_out(&mut link, mounted);
    if let Err(why) = carried_out {
        link.say(&Report::Failed { why });
    }
    link.drain();
    reboot(RebootCommand::PowerOff).map_err(|e| format!("power off: {e}"))
}

/// Mounts all of [`MOUNTS`]: one that fails does not stop the others.
fn mount_all() -> Result<(), String> {
    let mounted = MOUNTS.map(|(kind, place)| {
        let _ = fs::create_dir_all(place);
        mount(kind, place, kind, MountFlags::empty(), None)
            .map_err(|e| format!("{place}: this kernel has no {kind} ({e})"))
    });
    mounted.into_iter().collect()
}

fn carry_out(link: &mut Link, mounted: Result<(), String>) -> Result<(), String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    link.say(&Report::Hello { kernel: release.trim().to_owned() });
    let order = order()?;
    if let Work::Probe(paths) = &order.work {
        link.say(&Report::Probed(probe::run(&order, paths)));
        return Ok(());
    }
    mounted?;
    setup::prepare(&order)?;
    match &order.work {
        Work::Nothing | Work::Probe(_) => {}
        Work::Workload(workload) => coordinate::run(&order, workload, link)?,
        Work::Program(work) => program::run(&order, work, link)?,
    }
    if symbols::are_asked_for() {
        link.say(&Report::Symbols { text: symbols::code_by_distance() });
    }
    Ok(())
}

fn order() -> Result<Order, String> {
    let text = fs::read(ORDER_FILE).map_err(|e| format!("{ORDER_FILE}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{ORDER_FILE}: {e}"))
}
