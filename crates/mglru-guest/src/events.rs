//! The kernel's own trace events, with its clock's time stamps.

use std::fs;

use rustix::mount::{MountFlags, mount};

const TRACING: &str = "/sys/kernel/tracing";
/// The events that are recorded: of reclaim, lists of pages, the page cache, kills, and those of
/// writeback that set its pace, not every inode that it looks at.
const EVENTS: [&str; 7] = [
    "vmscan",
    "pagemap",
    "filemap",
    "oom",
    "writeback/writeback_start",
    "writeback/writeback_written",
    "writeback/balance_dirty_pages",
];
/// A step's text is cut off here, bytes: the port carries a longer one slowly.
const MOST: usize = 96 << 10;

/// Starts to record; a kernel without trace events says so in the text.
pub fn start() -> Result<(), String> {
    if !fs::exists(format!("{TRACING}/trace")).unwrap_or(false) {
        mount("tracefs", TRACING, "tracefs", MountFlags::empty(), None)
            .map_err(|e| format!("this kernel has no trace events ({e})"))?;
    }
    put("trace_clock", "mono")?;
    put("buffer_size_kb", "2048")?;
    for event in EVENTS {
        // A kernel may lack one of them.
        let _ = put(&format!("events/{event}/enable"), "1");
    }
    Ok(())
}

/// Returns what was recorded since the last call.
pub fn take() -> String {
    let text = fs::read_to_string(format!("{TRACING}/trace")).unwrap_or_default();
    let _ = put("trace", "");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut kept = String::new();
    for line in lines {
        if kept.len() + line.len() > MOST {
            return kept + "(more)\n";
        }
        kept = kept + line.trim_end() + "\n";
    }
    kept
}

fn put(file: &str, value: &str) -> Result<(), String> {
    let path = format!("{TRACING}/{file}");
    fs::write(&path, value).map_err(|e| format!("{path} = {value}: {e}"))
}
