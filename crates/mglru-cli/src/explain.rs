//! Carries out `mglru explain`: one page's life in a run of the model.

use super::trace::Form;
use super::{Answer, Asked};
use mglru_error::Error;
use mglru_lab::render;

const EXAMPLES: &str = "\
Examples:
  mglru explain quickstart file0:120 --variant after
  mglru explain my-plan.toml data:0 --scale 1/16 --format json
  mglru explain vm-anon-swap anon0:7

A variant not named explains each of the plan's in turn, with one seed unless --seeds says more.";

/// Arguments of `mglru explain`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Explain this page: FILE:PAGE, by a file's name in the workload or file0, file1 and so on;
    /// anonN:PAGE is a page of its N-th region
    #[arg(value_name = "PAGE")]
    page: String,
    /// Print the answer in this form
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

pub(super) fn run(args: &Args) -> Answer {
    let seeds = args.asked.seeds.or(Some(1));
    let experiment = Asked { seeds, ..args.asked.clone() }.experiment()?;
    let plan = &experiment.plan.file;
    let life = |run: &mglru_lab::spec::RunSpec| {
        let life = run.job.explain(run.seed, run.title(), &args.page);
        life.map_err(|why| Error::Request(format!("{plan}: {}: {why}", run.title())))
    };
    let lives = experiment.runs.iter().map(life).collect::<Result<Vec<_>, _>>()?;
    match args.format {
        Form::Table => Ok((lives.iter().map(|l| l.text()).collect::<Vec<_>>().join("\n"), 0)),
        Form::Json => Ok((render::json(&lives), 0)),
    }
}
