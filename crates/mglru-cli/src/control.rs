//! `mglru validate`: a real kernel as the measure of the model.

mod compare;
mod measure;
mod step;
mod verify;

use std::path::PathBuf;

use super::Answer;

const EXAMPLES: &str = "\
Examples:
  mglru validate                                all that was measured, each version by its rules
  mglru validate --version 7.1 --only 2pread.   some of it
  mglru validate --truth more.jsonl.zst --jobs 2
  mglru validate --format markdown > docs/fidelity.md

  mglru validate --measure --out mine.jsonl     a truth file of your kernel
  mglru validate --verify 3 --seed 7     three kept runs booted again: the same to the byte?
  mglru validate --step plans/scripts/stepping.job   generations of kernel and model

Counters are those of whole jobs: reads (pages read from devices), pgmajfault,
workingset_refault_file, workingset_refault_anon; `all` sums up the latter three.
Finished replays are kept in the folder; the same command again runs only what is missing.";

/// Arguments of `mglru validate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Take measured runs from this file, one a line, also compressed by zstd or gzip (repeatable)
    /// [default: those that the program holds; of 6.12.117 when measuring]
    #[arg(long, value_name = "FILE.jsonl")]
    truth: Vec<PathBuf>,
    /// Take only runs of this kernel: 7.1 or 7.1.13 (repeatable; the first counts when measuring)
    #[arg(long, value_name = "VERSION", conflicts_with = "step")]
    version: Vec<String>,
    /// Run the jobs anew on a booted kernel and write a truth file of it
    #[arg(long)]
    measure: bool,
    /// Run a script of accesses and age and evict commands on a booted kernel and in the model, and
    /// show the generations of both side by side
    #[arg(long, value_name = "SCRIPT", conflicts_with = "measure")]
    step: Option<PathBuf>,
    /// Boot this many of the kept runs that can be repeated again, and compare to the byte
    #[arg(long, value_name = "N", conflicts_with_all = ["measure", "step"],
        value_parser = clap::value_parser!(u16).range(1..))]
    verify: Option<u16>,
    /// Choose other runs to verify
    #[arg(long, value_name = "N", default_value_t = 1, requires = "verify")]
    seed: u64,
    #[command(flatten)]
    measuring: measure::Measure,
    /// Make this many runs at a time [default: one per CPU in the model, one guest when measuring]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    jobs: Option<u16>,
    /// Print the comparison in this form
    #[arg(long, value_enum, default_value_t = compare::Form::Table)]
    format: compare::Form,
}

pub(super) fn run(args: &Args) -> Answer {
    if let Some(n) = args.verify {
        let choice = (n, args.seed);
        return verify::run(&args.truth, &args.version, &args.measuring, choice);
    }
    if args.step.is_none() && !args.measure && args.measuring.kernel.is_some() {
        let problem = "goes with --measure, --step or --verify; --version chooses what is compared";
        return Err(mglru_error::Error::Request(format!("--kernel {problem}")));
    }
    match (&args.step, args.measure) {
        (Some(script), _) => step::run(script, &args.measuring),
        (None, true) => {
            let truth = measure::truth(&args.truth, &args.version)?;
            measure::run(&truth, &args.measuring, args.jobs)
        }
        (None, false) => {
            let asked = compare::Asked {
                truth: &args.truth,
                versions: &args.version,
                only: &args.measuring.only,
                out: args.measuring.out.as_deref(),
                jobs: args.jobs,
            };
            compare::run(&asked, args.format)
        }
    }
}
