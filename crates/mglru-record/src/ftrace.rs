//! Records what the running kernel says of a program through ftrace: reads of files by descriptor,
//! page faults, and pages of files that become dirty. The program runs at its own speed; later
//! touches of a page that is mapped already stay unseen.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use mglru_error::Error;
use mglru_traces::tools::{self, Made, Output};
use mglru_workload::trace::{Importer, Source};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::launch;
use crate::signals::Signals;

/// Folders in which tracefs may be mounted.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Reads of files, since Linux 6.11.
const READS: &str = "filemap/mm_filemap_get_pages";
/// Pages that enter the page cache: all that an older kernel says of reads.
const MISSES: &str = "filemap/mm_filemap_add_to_page_cache";
const FAULTS: &str = "exceptions/page_fault_user";
const DIRTIED: &str = "writeback/writeback_dirty_folio";
/// Buffer of each processor, KiB.
const BUFFER_KB: &str = "16384";
/// Begins the names of instances; the number of the recording process follows.
const PREFIX: &str = "mglru-";
/// How long an empty buffer is left alone.
const PAUSE: Duration = Duration::from_millis(10);
/// Starts a program that stops itself, so that tracing begins before its first instruction.
const STOPPED: &str = "kill -STOP $$; exec \"$0\" \"$@\"";

/// Holds what a recording by the kernel made.
#[derive(Debug)]
pub struct Traced {
    /// Describes the trace.
    pub made: Made,
    /// Counts events that found no room in the kernel's buffers.
    pub lost: u64,
    /// Says that the kernel names reads that missed the page cache alone.
    pub misses_only: bool,
    /// Says how the program ended.
    pub status: ExitStatus,
}

/// Runs a program and writes what the kernel says of it and of the processes it starts.
///
/// # Errors
/// The user may not trace, the program is missing, or the trace cannot be written.
pub fn record(command: &[OsString], out: &Path) -> Result<Traced, Error> {
    let output = Output::new(out)?;
    let signals = Signals::heed()?;
    let (name, args) = command.split_first().expect("the command asks for a program");
    launch::program(name)?;
    let instance = Instance::open()?;
    let child = Command::new("sh").arg("-c").arg(STOPPED).arg(name).args(args).spawn();
    let child = child.map_err(|e| Error::Request(format!("sh: {e}")))?;
    let running = Running(Arc::new(Mutex::new(child)));
    let misses_only = instance.follow(running.pid())?;
    let path = instance.folder.join("trace_pipe");
    let file = instance.pipe(&path)?;
    let pipe = Pipe { file, running: running.clone(), signals, was_empty: false };
    let source: Source = "perf-script".parse().expect("it is known");
    let importer = Importer::from_reader(&path, Box::new(pipe), &source)?;
    let made = tools::import_from(importer, output)?;
    let status = running.child().wait().map_err(|e| Error::Request(format!("recording: {e}")))?;
    Ok(Traced { made, lost: instance.lost(), misses_only, status })
}

/// Holds an ftrace instance: buffers and settings that disturb no other user of ftrace.
struct Instance {
    folder: PathBuf,
}

impl Instance {
    fn open() -> Result<Self, Error> {
        let has_instances = |mount: &&str| Path::new(mount).join("instances").is_dir();
        let mount = MOUNTS.into_iter().find(has_instances).ok_or_else(|| {
            let mend = format!("as root: mount -t tracefs nodev {}", MOUNTS[0]);
            Error::Request(format!("{}: no tracefs to be seen; {mend}", MOUNTS[0]))
        })?;
        let instances = Path::new(mount).join("instances");
        remove_left_behind(&instances);
        let folder = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).map_err(|e| Error::io(&folder, e))?;
        let made = Self { folder };
        made.set("buffer_size_kb", BUFFER_KB)?;
        made.set("trace_clock", "mono")?;
        made.set("options/event-fork", "1")?;
        Ok(made)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        fs::write(&path, value).map_err(|e| Error::io(&path, e))
    }

    fn has(&self, event: &str) -> bool {
        self.folder.join("events").join(event).is_dir()
    }

    /// Asks for the events; true: this kernel names misses in place of reads.
    fn enable(&self) -> Result<bool, Error> {
        let reads = if self.has(READS) { READS } else { MISSES };
        for event in [reads, FAULTS, DIRTIED].into_iter().filter(|event| self.has(event)) {
            self.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(reads == MISSES)
    }

    /// Waits until a program has stopped itself, traces it from there on and lets it run.
    fn follow(&self, pid: Pid) -> Result<bool, Error> {
        let failed = |e| Error::Request(format!("the program to be traced: {e}"));
        let found = waitpid(Some(pid), WaitOptions::UNTRACED).map_err(failed)?;
        if !found.is_some_and(|(_, status)| status.stopped()) {
            return Err(Error::Request("the program ended before it was traced".to_string()));
        }
        self.set("set_event_pid", &pid.as_raw_nonzero().to_string())?;
        let misses_only = self.enable()?;
        kill_process(pid, Signal::CONT).map_err(failed)?;
        Ok(misses_only)
    }

    fn pipe(&self, path: &Path) -> Result<File, Error> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        opened.map_err(|e| Error::io(path, e))
    }

    /// Adds up what the buffers of all processors had no room for.
    fn lost(&self) -> u64 {
        let folders = fs::read_dir(self.folder.join("per_cpu")).into_iter().flatten().flatten();
        let stats = folders.filter_map(|cpu| fs::read_to_string(cpu.path().join("stats")).ok());
        stats.map(|text| lost_of(&text)).sum()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A recording that failed may leave the pipe open a moment longer than this.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes instances of recordings that were killed.
fn remove_left_behind(instances: &Path) {
    let folders = fs::read_dir(instances).into_iter().flatten().flatten();
    for folder in folders {
        let name = folder.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if process.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(folder.path());
        }
    }
}

fn lost_of(stats: &str) -> u64 {
    let lost = |line: &str| {
        let (name, number) = line.split_once(": ")?;
        let number = number.trim().parse::<u64>().ok()?;
        matches!(name, "overrun" | "dropped events").then_some(number)
    };
    stats.lines().filter_map(lost).sum()
}

/// Holds the program, which ends with the last holder.
#[derive(Clone)]
struct Running(Arc<Mutex<Child>>);

impl Running {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child())
    }

    /// Tells whether the program has ended.
    fn has_ended(&self) -> io::Result<bool> {
        Ok(self.child().try_wait()?.is_some())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A program that has ended is not killed: the standard library knows its status.
        if Arc::strong_count(&self.0) == 1 {
            let _ = self.child().kill();
        }
    }
}

/// Reads the kernel's text until the program has ended and nothing is left.
struct Pipe {
    file: File,
    running: Running,
    signals: Signals,
    was_empty: bool,
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(out) {
                Ok(n) if n > 0 => {
                    self.was_empty = false;
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            // Events of the program's last moment may still arrive after it was seen to end.
            if self.was_empty {
                return Ok(0);
            }
            self.was_empty = self.running.has_ended()?;
            if !self.was_empty {
                self.signals.pass_on(&self.running.child());
            }
            sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_added_up() {
        let stats =
            "entries: 5\noverrun: 12\ncommit overrun: 0\ndropped events: 3\nread events: 9\n";
        assert_eq!(lost_of(stats), 15);
        assert_eq!(lost_of("overrun: x\n"), 0);
    }
}
