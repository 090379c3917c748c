//! Carries out `mglru trace record`: keeps which pages a program touches.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use mglru_error::Error;
use mglru_record::{Counts, Recorded, Request};

use super::write::told;

pub(super) const EXAMPLES: &str = "\
Examples:
  mglru trace record -- sort -S 20M big.txt          writes sort.mtr
  mglru trace record --out build.mtr -- make -j1     with all programs that make starts
  mglru trace mrc sort.mtr                           how much memory sort needs

The program runs translated (QEMU), unchanged and without root, 10 to 20 times slower. Loads and
stores of its memory and of mapped files count by page, reads and writes of files by their pages,
code when it first runs. Times are instructions of each process. Two runs of a program of one thread
give the same trace. Exit status: the program's own.";

/// Least and most instructions of a window, as powers of two.
const WINDOWS: std::ops::RangeInclusive<u32> = 12..=32;

#[derive(clap::Args)]
pub(crate) struct RecordArgs {
    /// Compact trace to write [default: the program's name and .mtr]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep each page once in so many instructions, and once more for its first store: a power of
    /// two; larger windows make smaller traces
    #[arg(long, value_name = "N", default_value = "65536", value_parser = window)]
    window: u32,
    /// Program to run, with its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    words: Vec<OsString>,
}

/// Reads a power of two; returns its exponent.
fn window(text: &str) -> Result<u32, String> {
    let number = text.parse::<u64>().ok().filter(|number| number.is_power_of_two());
    let log2 = number.map(u64::ilog2).filter(|log2| WINDOWS.contains(log2));
    log2.ok_or_else(|| "a power of two from 4096 to 4294967296 is needed".to_string())
}

impl RecordArgs {
    pub(super) fn run(&self) -> Result<(String, u8), Error> {
        let out = self.out.clone().unwrap_or_else(|| named_after(&self.words[0]));
        let request = Request { words: &self.words, window: self.window, out: &out };
        let Recorded { made, counts, status } = mglru_record::record(&request)?;
        // The standard output is the program's.
        eprint!("{}{}", told(&made), met(&counts));
        Ok((String::new(), code(status)))
    }
}

fn named_after(program: &OsStr) -> PathBuf {
    let name = Path::new(program).file_name().unwrap_or(program);
    let mut name = name.to_os_string();
    name.push(".mtr");
    PathBuf::from(name)
}

/// The status that a shell would tell.
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
