//! Carries out `mglru compare`: sets records, or captures, side by side.

use std::path::PathBuf;

use super::Answer;
use mglru_error::Error;
use mglru_lab::capture::{self, Side};
use mglru_lab::compare::{self, Comparison};
use mglru_lab::record::Record;
use mglru_lab::render;
use mglru_lab::store;

const EXAMPLES: &str = "\
Examples:
  mglru compare mglru-runs/a mglru-runs/b
  mglru compare old.jsonl new.jsonl --metric ops_per_s --metric pgpgin/ops
  mglru compare before.vmstat after.vmstat                   two readings of /proc/vmstat
  mglru compare a1,a2,a3 b1,b2,b3 --format letter            repetitions, for a patch letter
  mglru compare before/ after/ --format mmtests              folders of captures

Captures are texts of /proc/vmstat, memory.stat, memory.pressure, lru_gen or lru_gen_full, one
reading or a series (see `mglru capture --help`). Of a series, counters count by their growth and
gauges by their mean.";

/// Arguments of `mglru compare`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Compare with these records (file or run folder) or captures (file, files with commas,
    /// folder)
    a: PathBuf,
    /// Test these records or captures
    b: PathBuf,
    /// Compare this metric only (repeatable), such as ops_per_s or pgpgin/ops
    #[arg(long = "metric", value_name = "M")]
    metrics: Vec<String>,
    /// Show also the counters of captures that are equal
    #[arg(long)]
    all: bool,
    /// Print the result in this form
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// Says in which form the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Prints a table for people.
    Table,
    /// Prints a table of 72 columns for a patch letter.
    Letter,
    /// Prints in the layout of mmtests' compare.
    Mmtests,
    /// Prints one JSON document.
    Json,
}

pub(super) fn run(args: &Args) -> Answer {
    let (found, remark) = match [capture::is_capture(&args.a)?, capture::is_capture(&args.b)?] {
        [true, true] => {
            let sides = [Side::load(&args.a)?, Side::load(&args.b)?];
            let remark = capture::remark(&sides);
            (capture::compare(&sides, &args.metrics, args.all)?, remark)
        }
        [false, false] => {
            let sides = [store::load(&args.a)?, store::load(&args.b)?];
            (of_records(args, &sides)?, other_plan(&sides).unwrap_or_default())
        }
        [is_first, _] => {
            let (captures, records) =
                if is_first { (&args.a, &args.b) } else { (&args.b, &args.a) };
            let (captures, records) = (captures.display(), records.display());
            let problem = format!("{captures} holds captures, {records} records");
            return Err(Error::Request(problem));
        }
    };
    if found.is_empty() {
        return Ok(("no counter differs\n".to_string(), 0));
    }
    let text = match args.format {
        Form::Table => render::comparisons(&found) + &remark,
        Form::Letter => render::letter(&found),
        Form::Mmtests => render::mmtests(&found),
        Form::Json => render::json(&serde_json::json!({ "comparisons": found, "remark": remark })),
    };
    Ok((text, 0))
}

/// Says that the records are of different plans, or of one plan before and after it changed.
fn other_plan([a, b]: &[Vec<Record>; 2]) -> Option<String> {
    let (a, b) = (a.first()?, b.first()?);
    match (a.plan == b.plan, a.plan_hash == b.plan_hash) {
        (true, true) => None,
        (true, false) => Some(format!("The two sides ask for different things of {}.\n", a.plan)),
        _ => Some(format!("The first side is of plan {}, the second of {}.\n", a.plan, b.plan)),
    }
}

fn of_records(args: &Args, [a, b]: &[Vec<Record>; 2]) -> Result<Vec<Comparison>, Error> {
    let metrics = match args.metrics.is_empty() {
        true => compare::every_metric(b),
        false => args.metrics.clone(),
    };
    let found = compare::namesakes(a, b, &metrics);
    if found.is_empty() {
        let (a, b) = (args.a.display(), args.b.display());
        let problem = format!("{a} and {b} share no variant, seed and metric");
        return Err(Error::Request(problem));
    }
    Ok(found)
}
