//! `mglru control`: a real kernel as the measure of the model.

mod measure;
mod step;

use std::path::PathBuf;

use super::Answer;
use crate::error::Error;

/// Arguments of `mglru control`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Truth file whose jobs are meant
    #[arg(long, value_name = "FILE", default_value = "../shared/kernel-truth/results.jsonl")]
    truth: PathBuf,
    /// Run the jobs anew on a booted kernel and write a truth file of it
    #[arg(long)]
    measure: bool,
    /// Run a script of accesses and age and evict commands on a booted kernel and in the model, and
    /// show the generations of both side by side
    #[arg(long, value_name = "SCRIPT", conflicts_with = "measure")]
    step: Option<PathBuf>,
    #[command(flatten)]
    measuring: measure::Measure,
    /// Runs at a time [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

pub(super) fn run(args: &Args) -> Answer {
    match (&args.step, args.measure) {
        (Some(script), _) => step::run(script, &args.measuring),
        (None, true) => measure::run(&args.truth, &args.measuring, args.jobs),
        (None, false) => {
            Err(Error::Request("control: needs --measure or --step SCRIPT".to_string()))
        }
    }
}
