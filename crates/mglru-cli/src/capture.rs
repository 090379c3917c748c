//! Carries out `mglru capture`: keeps the counters of a real machine while a command runs.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use super::Answer;
use mglru_error::Error;
use mglru_lab::capture::{self, Host};
use mglru_record::signals::Signals;

const EXAMPLES: &str = "\
Examples:
  mglru capture --out before.capture -- ./benchmark       counters of the machine while it runs
  mglru capture --every 1s --group system.slice/db.service --for 60s --out db.capture
  mglru compare before.capture after.capture              what changed
  mglru compare a1.capture,a2.capture,a3.capture after/   repetitions give intervals

The file is plain text, as `tail -n +1 /proc/vmstat memory.stat` writes it, a line `time: SECONDS`
above each sample: captures made by hand are read alike. A signal that ends programs (^C) ends the
command, and the capture with a last sample. Exit status: the command's own.";

/// Arguments of `mglru capture`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Write the capture to this file; `-` for the standard output
    #[arg(long, value_name = "FILE", default_value = "mglru.capture")]
    out: PathBuf,
    /// Also read the files of this memory group: a path, absolute or below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    group: Option<PathBuf>,
    /// Read again after each such time, such as 1s or 250ms [default: only at start and end]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// End after this time [default: when the command ends; without one, after 10s]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    at_most: Option<Duration>,
    /// Run this command meanwhile, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Reads `1s`, `250ms`, `2m`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match &text[at..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unit `{other}`: take ms, s, m or h")),
    };
    let seconds = text[..at].parse::<f64>().map_err(|e| e.to_string())? * unit;
    match (0.001..1e9).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("take 1ms or more".to_string()),
    }
}

pub(super) fn run(args: &Args) -> Answer {
    let host = Host::new(args.group.as_deref())?;
    let wrong = |e| Error::io(&args.out, e);
    let file = (args.out != Path::new("-")).then(|| open(&args.out)).transpose().map_err(wrong)?;
    let signals = Signals::heed()?;
    // A command that cannot be started leaves an earlier capture as it was.
    let command = start(&args.command)?;
    let mut out: Box<dyn std::io::Write> = match file {
        None => Box::new(std::io::stdout()),
        Some(file) => {
            file.set_len(0).map_err(wrong)?;
            Box::new(file)
        }
    };
    out.write_all(head(&args.command).as_bytes()).map_err(wrong)?;
    let at_most = args.at_most.or_else(|| command.is_none().then_some(Duration::from_secs(10)));
    let is_over = |command: Option<&Child>| match command {
        Some(command) => {
            signals.pass_on(command);
            false
        }
        None => signals.take() != 0,
    };
    let taken = capture::take(&host, &mut *out, args.every, at_most, command, is_over);
    let taken = taken.map_err(wrong)?;
    if args.out != Path::new("-") {
        eprintln!("mglru capture: {} samples in {}", taken.samples, args.out.display());
    }
    let status = taken
        .status
        .map_or(0, |status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
    Ok((String::new(), status as u8))
}

/// Opens the file as it is; makes it where there is none.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

fn head(command: &[OsString]) -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let args: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let command = match args.is_empty() {
        true => String::new(),
        false => format!("# command: {}\n", args.join(" ").replace('\n', " ")),
    };
    format!("# mglru capture 1\n# kernel: {}\n{command}", release.trim())
}

fn start(args: &[OsString]) -> Result<Option<Child>, Error> {
    let Some((program, rest)) = args.split_first() else { return Ok(None) };
    let failed = |e| Error::Request(format!("`{}`: {e}", program.display()));
    Command::new(program).args(rest).spawn().map(Some).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::duration;
    use std::time::Duration;

    #[test]
    fn times_have_units_and_wrong_ones_are_said() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("3x").unwrap_err(), "unit `x`: take ms, s, m or h");
        assert!(duration("0s").is_err() && duration("-1s").is_err() && duration("s").is_err());
    }
}
