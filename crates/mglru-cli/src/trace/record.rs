//! Carries out `mglru trace record`: keeps which pages a program touches.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use mglru_error::Error;
use mglru_record::ftrace::{self, Traced};
use mglru_record::pager::{self, Budgeted, Paged};
use mglru_record::{Counts, Recorded, Request};

use super::write::summary;

pub(super) const EXAMPLES: &str = "\
Examples:
  mglru trace record -- sort -S 20M big.txt          writes sort.mtr
  mglru trace record --out build.mtr -- make -j1     with all programs that make starts
  mglru trace mrc sort.mtr                           how much memory sort needs
  mglru trace record --by kernel -- redis-server     at full speed, as root: see below
  mglru trace record --by pager --memory.max 64M -- ./service     under a budget: see below

The program runs translated (QEMU), unchanged and without root, 10 to 30 times slower. Loads and
stores of its memory and of mapped files count by page, reads and writes of files by their pages,
code when it first runs. Times are instructions of each process. Two runs of a program of one thread
give the same trace. Exit status: the program's own.

With --by kernel it runs at its own speed, and ftrace says what the kernel sees: reads of files by
descriptor (before Linux 6.11 only those that miss the page cache), page faults, pages of files that
become dirty. Later touches of a mapped page are not seen, and a large folio that becomes dirty
counts as its first page. Times are nanoseconds. It needs root and a mounted tracefs.

With --by pager it runs under a budget (mglru exec), and the trace has each use that brought a page
of its heap or of a private mapping: first uses, and uses of pages that had been evicted. A smaller
budget shows more uses and slows the program. Times are those at which the pager learned of them.
Uses of pages that were read ahead are not seen; whether a use stored is not always known.";

/// Least and most instructions of a window, as powers of two.
const WINDOWS: std::ops::RangeInclusive<u32> = 12..=32;

/// Instructions of a window unless another is asked for, as a power of two.
const WINDOW: u32 = 16;

#[derive(clap::Args)]
pub(crate) struct RecordArgs {
    /// Write the compact trace to this file [default: the program's name and .mtr]
    #[arg(long, value_name = "FILE", value_parser = crate::run::file)]
    out: Option<PathBuf>,
    /// Choose the observer of the program
    #[arg(long, value_enum, default_value = "translation")]
    by: Observer,
    /// Give the program this budget (--by pager)
    #[arg(long = "memory.max", value_name = "SIZE", required_if_eq("by", "pager"))]
    memory_max: Option<String>,
    /// Keep each page once in so many instructions, and once more for its first store: a power of
    /// two; larger windows make smaller traces [default: 65536]
    #[arg(long, value_name = "N", value_parser = window)]
    window: Option<u32>,
    /// Run this program, with its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Observer {
    /// Sees every load and store, in the translated program
    Translation,
    /// Sees reads of files and page faults, in the running kernel (ftrace)
    Kernel,
    /// Sees uses that bring pages, in a pager with a budget (mglru exec)
    Pager,
}

/// Reads a power of two; returns its exponent.
fn window(text: &str) -> Result<u32, String> {
    let number = text.parse::<u64>().ok().filter(|number| number.is_power_of_two());
    let log2 = number.map(u64::ilog2).filter(|log2| WINDOWS.contains(log2));
    log2.ok_or_else(|| "a power of two from 4096 to 4294967296 is needed".to_string())
}

impl RecordArgs {
    pub(super) fn run(&self) -> Result<(String, u8), Error> {
        let out = self.out.clone().unwrap_or_else(|| named_after(&self.command[0]));
        self.check()?;
        // The standard output is the program's.
        let status = match self.by {
            Observer::Translation => self.by_translation(&out)?,
            Observer::Kernel => {
                let traced = ftrace::record(&self.command, &out)?;
                eprint!("{}{}", summary(&traced.made), seen(&traced));
                traced.status
            }
            Observer::Pager => self.by_pager(&out)?,
        };
        Ok((String::new(), code(status)))
    }

    /// Refuses options of other observers.
    fn check(&self) -> Result<(), Error> {
        let problem = match self.by {
            Observer::Kernel | Observer::Pager if self.window.is_some() => {
                "--window: only --by translation sees instructions"
            }
            Observer::Translation | Observer::Kernel if self.memory_max.is_some() => {
                "--memory.max: only --by pager gives a budget"
            }
            _ => return Ok(()),
        };
        Err(Error::Request(problem.to_string()))
    }

    fn by_translation(&self, out: &Path) -> Result<ExitStatus, Error> {
        let window = self.window.unwrap_or(WINDOW);
        let request = Request { command: &self.command, window, out };
        let Recorded { made, counts, status } = mglru_record::record(&request)?;
        eprint!("{}{}", summary(&made), met(&counts));
        Ok(status)
    }

    fn by_pager(&self, out: &Path) -> Result<ExitStatus, Error> {
        let failed = |e| Error::Request(format!("this program's file: {e}"));
        let mglru = std::env::current_exe().map_err(failed)?;
        let memory_max = self.memory_max.as_deref().unwrap_or("max");
        let request = Budgeted { command: &self.command, mglru: &mglru, memory_max, out };
        let Paged { made, lost, status } = pager::record(&request)?;
        eprint!("{}", summary(&made));
        if lost > 0 {
            eprintln!("lost: {lost} events, for want of room in the pager's buffer");
        }
        Ok(status)
    }
}

fn named_after(program: &OsStr) -> PathBuf {
    let name = Path::new(program).file_name().unwrap_or(program);
    let mut name = name.to_os_string();
    name.push(".mtr");
    PathBuf::from(name)
}

/// Returns the status that a shell would report.
fn code(status: ExitStatus) -> u8 {
    let ended = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ended.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Says what was run, and what is missing from the trace.
fn met(counts: &Counts) -> String {
    let Counts { processes, instructions, outside, open, lost } = counts;
    let mut text = format!("{processes} processes, {instructions} instructions\n");
    if !outside.is_empty() {
        text += &format!("not recorded, for another processor or user: {}\n", outside.join(", "));
    }
    if *open > 0 {
        text += &format!("killed or still running, without their last events: {open} processes\n");
    }
    if *lost > 0 {
        text += &format!("lost: {lost} messages of up to 8,000 events\n");
    }
    text
}

/// Says what the kernel did not say.
fn seen(traced: &Traced) -> String {
    let mut text = String::new();
    if traced.misses_only {
        text += "reads of cached pages are missing: this kernel is older than Linux 6.11\n";
    }
    if traced.lost > 0 {
        text += &format!("lost: {} events, for want of room in ftrace's buffers\n", traced.lost);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_power_of_two_in_bounds() {
        assert_eq!((window("4096"), window("4294967296")), (Ok(12), Ok(32)));
        for wrong in ["0", "2048", "5000", "8589934592", "-4096", "x"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_trace_is_named_after_the_program() {
        assert_eq!(named_after("/usr/bin/python3.11".as_ref()), Path::new("python3.11.mtr"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let counts = Counts { processes: 3, instructions: 5, ..Counts::default() };
        assert_eq!(met(&counts), "3 processes, 5 instructions\n");
        let counts = Counts { outside: vec!["/bin/su".into()], open: 1, lost: 2, ..counts };
        let text = met(&counts);
        assert!(
            ["/bin/su", "events: 1 processes", "lost: 2 messages"].iter().all(|t| text.contains(t))
        );
    }
}
