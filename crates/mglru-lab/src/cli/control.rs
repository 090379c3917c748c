//! `mglru control`: a real kernel as the measure of the model.

mod compare;
mod measure;
mod step;

use std::path::{Path, PathBuf};

use super::Answer;

/// Truth file whose jobs are measured anew unless another is given.
const MEASURED: &str = "../shared/kernel-truth/results.jsonl";

const EXAMPLES: &str = "\
Examples:
  mglru control                                every job measured on Linux 6.12.117
  mglru control --truth more.jsonl --jobs 2
  mglru control --format markdown > docs/fidelity.md

  mglru control --measure --out mine.jsonl     a truth file of your kernel
  mglru control --step plans/scripts/stepping.job   generations of kernel and model

Counters are workingset_refault_file, workingset_refault_anon and pgmajfault of whole jobs.
Finished replays are kept in the folder; the same command again runs only what is missing.";

/// Arguments of `mglru control`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Measured runs, one a line (repeatable) [default: ../shared/kernel-truth/*.jsonl]
    #[arg(long, value_name = "FILE.jsonl")]
    truth: Vec<PathBuf>,
    /// Run the jobs anew on a booted kernel and write a truth file of it
    #[arg(long)]
    measure: bool,
    /// Run a script of accesses and age and evict commands on a booted kernel and in the model, and
    /// show the generations of both side by side
    #[arg(long, value_name = "SCRIPT", conflicts_with = "measure")]
    step: Option<PathBuf>,
    #[command(flatten)]
    measuring: measure::Measure,
    /// Runs at a time [default: one per CPU in the model, one guest when measuring]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    jobs: Option<u16>,
    /// Form of the comparison
    #[arg(long, value_enum, default_value_t = compare::Form::Table)]
    format: compare::Form,
}

pub(super) fn run(args: &Args) -> Answer {
    match (&args.step, args.measure) {
        (Some(script), _) => step::run(script, &args.measuring),
        (None, true) => {
            let truth = args.truth.first().map_or(Path::new(MEASURED), PathBuf::as_path);
            measure::run(truth, &args.measuring, args.jobs)
        }
        (None, false) => {
            let out = args.measuring.out.as_deref();
            compare::run(&args.truth, out, args.jobs, args.format)
        }
    }
}
