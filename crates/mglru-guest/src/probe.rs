//! Reads the texts and folders that the host asks for, so that it learns what this kernel has.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use mglru_guest::order::{Order, TARGETS};
use rustix::mount::{MountFlags, mount};

use crate::disk::{CONFIG, PATH};
use crate::setup;

/// A group that shows which files groups have.
const GROUP: &str = "/sys/fs/cgroup/probe";

/// Reads what is asked for, by path; what the kernel lacks is not in it. Nothing here fails: a
/// module that cannot be loaded is only missing afterwards.
pub fn run(order: &Order, paths: &[String]) -> BTreeMap<String, String> {
    order.modules.iter().for_each(|module| drop(setup::load(module)));
    let _ = mount("configfs", CONFIG, "configfs", MountFlags::empty(), None);
    for controller in ["+memory", "+io"] {
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", controller);
    }
    let _ = fs::create_dir(GROUP);
    let mut found: BTreeMap<String, String> = paths.iter().filter_map(|path| read(path)).collect();
    found.extend(targets().map(|text| (TARGETS.to_owned(), text)));
    found
}

/// A folder or device is there, but has no text.
fn read(path: &str) -> Option<(String, String)> {
    let about = fs::metadata(Path::new(path)).ok()?;
    let text = if about.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    Some((path.to_owned(), String::from_utf8_lossy(&text).into_owned()))
}

/// Lists kinds of mapped devices, if the host gave the guest `dmsetup`.
fn targets() -> Option<String> {
    let output = Command::new("dmsetup").arg("targets").env("PATH", PATH).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
