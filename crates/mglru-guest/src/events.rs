//! The kernel's own trace events, with its clock's time stamps.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use mglru_guest::order::Until;
use mglru_guest::report::BEGIN;
use rustix::mount::{MountFlags, mount};

use crate::until::is_off;

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
/// Events that are sent while the work goes on: those that the model knows.
const STREAMED: [&str; 9] = [
    "vmscan",
    "filemap/mm_filemap_add_to_page_cache",
    "filemap/mm_filemap_delete_from_page_cache",
    "oom/mark_victim",
    "writeback/writeback_start",
    "writeback/writeback_written",
    "writeback/writeback_pages_written",
    "writeback/writeback_wake_background",
    "writeback/balance_dirty_pages",
];
/// A step's text is cut off here, bytes: the port carries a longer one slowly.
const MOST: usize = 96 << 10;

/// Starts to record; a kernel without trace events says so in the text.
pub fn start() -> Result<(), String> {
    enable(&EVENTS)
}

fn enable(events: &[&str]) -> Result<(), String> {
    if !fs::exists(format!("{TRACING}/trace")).unwrap_or(false) {
        mount("tracefs", TRACING, "tracefs", MountFlags::empty(), None)
            .map_err(|e| format!("this kernel has no trace events ({e})"))?;
    }
    put("trace_clock", "mono")?;
    put("buffer_size_kb", "2048")?;
    for event in events {
        // A kernel may lack one of them.
        let _ = put(&format!("events/{event}/enable"), "1");
    }
    Ok(())
}

/// Takes events off the kernel's buffer while the work goes on.
pub struct Reader {
    pipe: File,
    /// A line that is not whole yet.
    rest: Vec<u8>,
}

impl Reader {
    /// Has the kernel record; the first line says that the work begins.
    pub fn begin() -> Result<Self, String> {
        enable(&STREAMED)?;
        put("trace", "")?;
        put("trace_marker", BEGIN)?;
        let path = format!("{TRACING}/trace_pipe");
        let options = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let pipe = options.map_err(|e| format!("{path}: {e}"))?;
        Ok(Self { pipe, rest: Vec::new() })
    }

    /// Returns the lines that came since the last call.
    pub fn take(&mut self) -> String {
        let mut part = [0; 1 << 16];
        while let Ok(read @ 1..) = self.pipe.read(&mut part) {
            self.rest.extend_from_slice(&part[..read]);
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        String::from_utf8_lossy(&lines).into_owned()
    }
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

/// Forgets what was recorded so far; from here on the event, if one is named, ends the recording.
///
/// # Errors
/// When the kernel has no such event.
pub fn arm(until: &Until) -> Result<(), String> {
    if let Until::Event(name) = until {
        let folders = fs::read_dir(format!("{TRACING}/events")).map_err(|e| e.to_string())?;
        let mut systems = folders.flatten().map(|system| system.path().join(name));
        let event = systems.find(|event| event.join("trigger").exists());
        let event = event.ok_or_else(|| format!("--until {name}: the kernel has no such event"))?;
        // A kernel that traces nothing of it would not see it either.
        let set = |file: &str, value: &str| fs::write(event.join(file), value);
        let set = set("enable", "1").and_then(|()| set("trigger", "traceoff:1"));
        set.map_err(|e| format!("--until {name}: {e}"))?;
    }
    put("trace", "")
}

/// Opens the switch that the event turns off.
pub fn recording() -> Result<File, String> {
    let path = format!("{TRACING}/tracing_on");
    File::open(&path).map_err(|e| format!("{path}: {e}"))
}

/// Tells whether the event has happened.
pub fn are_over() -> bool {
    recording().is_ok_and(|file| is_off(&file))
}

/// Returns the latest of what was recorded, and ends the recording.
pub fn latest() -> String {
    let _ = put("tracing_on", "0");
    let text = fs::read_to_string(format!("{TRACING}/trace")).unwrap_or_default();
    last_lines(&text, MOST)
}

/// The last whole lines of a text that fit in `most` bytes, without comments.
fn last_lines(text: &str, most: usize) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(str::trim_end);
    let mut kept: Vec<&str> = Vec::new();
    let mut size = 0;
    for line in lines.rev() {
        size += line.len() + 1;
        if size > most {
            kept.push("(earlier ones are left out)");
            break;
        }
        kept.push(line);
    }
    kept.iter().rev().flat_map(|line| [*line, "\n"]).collect()
}

fn put(file: &str, value: &str) -> Result<(), String> {
    let path = format!("{TRACING}/{file}");
    fs::write(&path, value).map_err(|e| format!("{path} = {value}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_whole() {
        let text = "# head\none\ntwo  \nthree\n";
        assert_eq!(last_lines(text, 100), "one\ntwo\nthree\n");
        assert_eq!(last_lines(text, 11), "(earlier ones are left out)\ntwo\nthree\n");
    }
}
