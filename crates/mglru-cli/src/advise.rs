//! Carries out `mglru advise`: limits that a program can do with, and why.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mglru_error::Error;
use mglru_lab::advise::{self, Advice, Bounds};
use mglru_lab::capture::Capture;
use mglru_lab::render;
use mglru_live::steer::{Choice, refused, sample};
use mglru_traces::tools::{self, ReplayRequest};
use mglru_workload::trace::{Format as TraceFormat, TraceFile, View, unpacked};

use super::Answer;
use super::capture::duration;
use super::trace::Form;

/// Bytes of a file that say what it is.
const HEAD: u64 = 4096;

const EXAMPLES: &str = "\
Examples:
  mglru advise sort.mtr                from a trace: the least size that is enough
  mglru capture --group system.slice/db.service --every 10s --for 10m --out db.capture
  mglru advise db.capture --group /system.slice/db.service
  mglru advise                         from the pager that runs
  mglru ctl hold --pressure 0.1        reclaim what nobody misses, as it goes

memory.high slows a group that exceeds it and reclaims; memory.max stands an eighth above.";

/// Arguments of `mglru advise`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Read this trace, or capture of a group's counters [default: a running pager is asked]
    file: Option<PathBuf>,
    /// Read a trace in this format [default: guessed from its name or content]
    #[arg(long)]
    trace_format: Option<TraceFormat>,
    /// Advise on this group: of the capture's lru_gen, or of the pager
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Set the share of time that tasks may wait for memory, percent
    #[arg(long, value_name = "PERCENT", default_value = "0.1", value_parser = percent)]
    pressure: f64,
    /// Pages that were not used for so long are cold
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    cold: Duration,
    #[command(flatten)]
    choice: Choice,
    /// Print the result in this form
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    percent.filter(|p| (0.001..=100.0).contains(p)).ok_or("must be 0.001 to 100".to_string())
}

pub(super) fn run(args: &Args) -> Answer {
    let bounds = Bounds { pressure_percent: args.pressure, cold_ms: args.cold.as_secs_f64() * 1e3 };
    let advice = match &args.file {
        Some(file) if is_capture(file) => of_capture(file, args, bounds)?,
        Some(file) => of_trace(file, args, bounds)?,
        None => of_pager(args, bounds)?,
    };
    let text = match args.format {
        Form::Json => render::json(&advice),
        Form::Table => table(&advice),
    };
    Ok((text, 0))
}

/// True for text with the headers of a capture, within its first lines. What cannot be read is left
/// to the reader of traces, which says why.
fn is_capture(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = unpacked(file).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    let is_header = |line: &str| line.starts_with("==> ") || line.starts_with("time: ");
    read.is_ok() && text.lines().any(is_header)
}

fn of_capture(file: &Path, args: &Args, bounds: Bounds) -> Result<Advice, Error> {
    let name = file.display().to_string();
    let capture = Capture::load(file)?;
    let advice = advise::from_capture(&name, &capture, args.group.as_deref(), bounds);
    advice.map_err(|problem| Error::Request(format!("{name}: {problem}")))
}

fn of_trace(file: &Path, args: &Args, bounds: Bounds) -> Result<Advice, Error> {
    if let Some(group) = &args.group {
        let problem =
            format!("--group {group}: {} is a trace, which has no groups", file.display());
        return Err(Error::Request(problem));
    }
    let request = ReplayRequest {
        file: TraceFile::open(file)?,
        format: args.trace_format,
        view: View::Pages,
        policies: Vec::new(),
        sizes: Vec::new(),
        seed: 1,
    };
    Ok(advise::from_curve(&tools::curve(&request, None)?, bounds))
}

fn of_pager(args: &Args, bounds: Bounds) -> Result<Advice, Error> {
    let group = args.group.as_deref().unwrap_or("/");
    let mut pager = args.choice.one()?.call()?;
    let text = pager.get(group, "mglru.distances").map_err(|error| refused(group, &error))?;
    Ok(advise::from_distances(group, &sample::distances(&text), bounds))
}

fn table(advice: &Advice) -> String {
    let Advice { from, current, high, max, reclaim, pressure_percent, because } = advice;
    let sizes = [
        ("in use", current),
        ("memory.high", high),
        ("memory.max", max),
        ("memory.reclaim now", reclaim),
    ];
    let size = |(name, bytes): (&str, &Option<u64>)| {
        let bytes = (*bytes)?;
        Some((name.to_string(), format!("{bytes} ({})", advise::size(bytes))))
    };
    let mut rows = vec![("from".to_string(), from.clone())];
    rows.extend(sizes.into_iter().filter_map(size));
    // A trace says nothing of pressure: its limits do not depend on the bound.
    if current.is_some() {
        rows.push(("pressure, most".to_string(), format!("{pressure_percent} % of the time")));
    }
    format!("{}{}\n", render::list(&rows), because.join(" "))
}
