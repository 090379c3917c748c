//! Entering a group, and becoming a program in it.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::setup::group_dir;

/// Moves the calling process, with all its threads, into the group; the root for an empty path.
pub fn enter(group: &str) -> Result<(), String> {
    let procs = format!("{}/cgroup.procs", group_dir(group));
    std::fs::write(&procs, "0").map_err(|e| format!("{procs}: {e}"))
}

pub fn run(group: &str, program: &str, args: &[&str]) -> Result<(), String> {
    enter(group)?;
    Err(format!("{program}: {}", Command::new(program).args(args).exec()))
}
