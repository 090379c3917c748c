//! `mglru diverge`.

use std::path::PathBuf;

use indicatif::ProgressBar;

use super::{Answer, Asked, Format};
use crate::diverge::{self, FIELDS, Request};
use crate::error::Error;
use crate::render;
use crate::spec::{Experiment, RunSpec};
use crate::store;

const EXAMPLES: &str = "\
Examples:
  mglru diverge check-scan --kernel old=7.1 --kernel new=7.2     two kernels, one load
  mglru diverge quickstart --variant k6.12 --variant classic     MGLRU on and off
  mglru diverge my.toml --variant k6.12 --variant k6.12+swappiness=10 --on pgscan
  mglru diverge my.toml --kernel a=A --kernel b=B --out moment.html   with curves

Both kernels stop after the same accesses of the workload's first process. A plan with one task
tells most: with several, others go on while the first one stands still.
Exit status: 0 the sides do not differ; 1 they do; 2 bad input.";

/// Arguments of `mglru diverge`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Field that decides (repeatable) [default: the first of resident, pgmajfault, pgsteal and
    /// pgscan that differs]; see --fields
    #[arg(long, value_name = "FIELD")]
    on: Vec<String>,
    /// Differences up to this do not count
    #[arg(long, value_name = "N", default_value_t = 0)]
    tolerance: u64,
    /// List the fields and end
    #[arg(long)]
    fields: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// File for a page with the curves of both sides
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Answer {
    if args.fields {
        return Ok((render::list(&FIELDS.map(|f| (f.name.into(), f.about.into()))), 0));
    }
    for name in &args.on {
        known(name)?;
    }
    let experiment = Asked { seeds: Some(1), ..args.asked.clone() }.experiment()?;
    let sides = sides(&experiment)?;
    let jobs = [stepping(&experiment, sides[0])?, stepping(&experiment, sides[1])?];
    let folder = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), e))?;
    let consoles = [folder.path().join("a.console.log"), folder.path().join("b.console.log")];
    let request = Request {
        jobs,
        seed: sides[0].seed,
        on: args.on.clone(),
        tolerance: args.tolerance,
        consoles: [&consoles[0], &consoles[1]],
    };
    let found =
        search(&request).map_err(|e| Error::Request(format!("{}: {e}", args.asked.plan)))?;
    let names = sides.map(|side| side.variant.name.as_str());
    let page = || render::diverge_page(&found, names, &experiment.plan.title);
    if let Some(file) = &args.out {
        store::replace(file, &page())?;
    }
    let text = match args.format {
        Format::Table => diverge::text(&found, names),
        Format::Json => render::json(&found),
        Format::Html => page(),
    };
    Ok((text, u8::from(found.moment.is_some())))
}

fn search(request: &Request) -> Result<diverge::Found, String> {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let told = |pass: u32, from: u64, to: u64| {
        bar.set_message(match to {
            u64::MAX => format!("pass {pass}: the whole run on both sides"),
            _ => format!("pass {pass}: accesses {from} to {to}"),
        });
    };
    let found = diverge::find(request, &told);
    bar.finish_and_clear();
    found
}

fn known(name: &str) -> Result<(), Error> {
    let names = FIELDS.map(|field| field.name);
    match names.contains(&name) {
        true => Ok(()),
        false => {
            let hint = crate::error::did_you_mean(name, names);
            Err(Error::Request(format!("--on {name}: no such field{hint} (see --fields)")))
        }
    }
}

/// The two variants that are compared.
fn sides(experiment: &Experiment) -> Result<[&RunSpec; 2], Error> {
    match &experiment.runs[..] {
        [a, b] => Ok([a, b]),
        runs => Err(Error::Request(format!(
            "{}: {} runs; diverge compares two: two --variant or two --kernel NAME=IMAGE",
            experiment.plan.file,
            runs.len()
        ))),
    }
}

fn stepping<'a>(
    experiment: &Experiment,
    run: &'a RunSpec,
) -> Result<&'a dyn crate::backend::Stepping, Error> {
    run.job.stepping().ok_or_else(|| {
        let why = "diverge stops booted kernels that run a workload (--backend kernel)";
        Error::Request(format!("{}: {}: {why}", experiment.plan.file, run.variant.name))
    })
}
