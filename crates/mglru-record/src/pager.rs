//! Records what the pager sees of a program under a memory budget (`mglru exec`): uses that bring
//! pages. No root, no ftrace; a page that stays in memory is seen once.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mglru_error::Error;
use mglru_traces::tools::{self, Made, Output};
use mglru_workload::trace::{Importer, Source};

use crate::launch;
use crate::signals::Signals;

/// Events that the buffer of each process holds: 4 MiB of its budget.
const SLOTS: &str = "65536";
/// Begins the line that ends the file; written events and all that were sent follow.
const END: &str = "# entries-in-buffer/entries-written: ";
/// Bytes at the end of the file that hold that line.
const TAIL: u64 = 512;
/// The process that writes the file ends soon after the last process with a pager. Waiting for
/// longer is said.
const SOON: Duration = Duration::from_secs(7);
const PAUSE: Duration = Duration::from_millis(20);

/// Holds what a recording by the pager made.
#[derive(Debug)]
pub struct Paged {
    /// Describes the trace.
    pub made: Made,
    /// Counts events that found no room in the pager's buffer.
    pub lost: u64,
    /// Says how the program ended.
    pub status: ExitStatus,
}

/// Describes a recording.
#[derive(Clone, Debug)]
pub struct Budgeted<'a> {
    /// Holds the program and its arguments.
    pub command: &'a [OsString],
    /// Is the program that runs others under a budget: `mglru`.
    pub mglru: &'a Path,
    /// Holds the budget, as `--memory.max` takes it.
    pub memory_max: &'a str,
    /// Names the compact trace to write.
    pub out: &'a Path,
}

/// Runs a program under a budget and writes which of its pages uses brought. A signal that ends
/// programs (^C) ends the program; the recording then ends with it.
///
/// # Errors
/// The program is missing or cannot be run so, or the trace cannot be written.
pub fn record(request: &Budgeted) -> Result<Paged, Error> {
    let output = Output::new(request.out)?;
    launch::program(&request.command[0])?;
    let signals = Signals::heed()?;
    let folder = request.out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().prefix(".events").tempdir_in(folder);
    let made = made.map_err(|e| Error::io(folder, e))?;
    let events = Events { file: made.path().join("events"), signals };
    let mut command = Command::new(request.mglru);
    command.args(["exec", "--memory.max", request.memory_max, "--trace-faults"]);
    command.args(["--trace-slots", SLOTS, "--trace-events"]).arg(&events.file);
    let status = command.arg("--").args(request.command).status();
    let status = status.map_err(|e| Error::io(request.mglru, e))?;
    let lost = events.wait(status)?;
    let source: Source = "perf-script".parse().expect("it is known");
    let imported = Importer::open(&events.file, &source);
    let imported = imported.map_err(Error::from);
    let imported = imported.and_then(|importer| tools::import_from(importer, output));
    let untouched = |e| {
        let none = "was a page touched that the pager manages?";
        Error::Request(format!("{e} ({status}; {none})"))
    };
    Ok(Paged { made: imported.map_err(untouched)?, lost, status })
}

/// Names the file of events, and knows whether the recording is to end.
struct Events {
    file: PathBuf,
    signals: Signals,
}

impl Events {
    /// Waits until the file is whole; returns how many events are missing in it. Processes that the
    /// program left behind are waited for, unless the recording is to end.
    fn wait(&self, status: ExitStatus) -> Result<u64, Error> {
        self.signals.take();
        let (begun, mut said) = (Instant::now(), false);
        loop {
            match tail(&self.file) {
                // It could not be run: the reason is on stderr.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(Error::Request(format!("mglru exec: {status}, without a trace")));
                }
                found => {
                    if let Some(lost) = found.map_err(|e| Error::io(&self.file, e))? {
                        return Ok(lost);
                    }
                }
            }
            if self.signals.take() != 0 {
                return Err(Error::Request("interrupted: no trace is kept".to_string()));
            }
            if begun.elapsed() > SOON && !said {
                said = true;
                eprintln!("mglru: waiting for processes that the program left behind");
            }
            sleep(PAUSE);
        }
    }
}

/// Reads the line that ends a file of events, if it is there: events that were lost.
fn tail(path: &Path) -> io::Result<Option<u64>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let Some((_, line)) = text.rsplit_once(END) else { return Ok(None) };
    let Some((line, _)) = line.split_once('\n') else { return Ok(None) };
    let numbers = line.split_once('/').and_then(|(a, b)| a.parse().ok().zip(b.parse().ok()));
    Ok(numbers.map(|(written, all): (u64, u64)| all.saturating_sub(written)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_whole_when_its_last_line_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.events");
        let of = |text: &str| {
            fs::write(&path, text).unwrap();
            tail(&path).unwrap()
        };
        let long = "x\n".repeat(1000);
        assert_eq!(of(&long), None);
        assert_eq!(of(&format!("{long}{END}12/12")), None, "the line is not whole");
        assert_eq!(of(&format!("{long}{END}12/12\n")), Some(0));
        assert_eq!(of(&format!("{long}{END}12/15\n# 3 events were lost\n")), Some(3));
        assert_eq!(tail(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
