//! Carries out `mglru diverge`: finds the first access after which two sides differ.

use std::path::PathBuf;
use std::sync::Arc;

use indicatif::ProgressBar;

use super::booted::Booted;
use super::{Answer, Asked, Format};
use mglru_error::Error;
use mglru_lab::diverge::{self, FIELDS, Pages, Request, Tolerance};
use mglru_lab::render;
use mglru_lab::spec::{Experiment, RunSpec};
use mglru_lab::store;
use mglru_lab::variant::Variant;

const EXAMPLES: &str = "\
Examples:
  mglru diverge check-scan --kernel old=7.1 --kernel new=7.2     two kernels, one load
  mglru diverge quickstart --variant k6.12 --variant classic     MGLRU on and off
  mglru diverge my.toml --variant k6.12 --variant k6.12+swappiness=10 --on pgscan
  mglru diverge my.toml --kernel a=A --kernel b=B --out moment.html   with curves
  mglru diverge check-scan --kernel old=7.1 --kernel new=7.2 --on resident --pages 0:0-4095
                                          the first access that costs a page of the hot set
  mglru diverge check-scan --kernel real=7.1 --model k7.1        a kernel and the model of it
  mglru diverge quickstart --backend sim --variant k7.1 --variant k7.2    two models

Two variants on one kernel are two sides as well: lru_gen on and off (k6.12, classic), and what a
plan's variants may set there, as a sysctl: +swappiness=10, +min_ttl_ms=1000.
A model and a kernel always differ in small numbers: by how much they may is --tolerance.
Both sides stop after the same accesses of the workload's first process. A plan with one task
says most: with several, others go on while the first one stands still.
Exit status: 0 the sides do not differ; 1 they do; 2 bad input.";

/// Arguments of `mglru diverge`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Let this field decide (repeatable) [default: the first of resident, pgmajfault, pgsteal and
    /// pgscan that differs]; see --fields
    #[arg(long, value_name = "FIELD")]
    on: Vec<String>,
    /// Set the model under this variant beside the one kernel or variant that is asked for:
    /// k7.1, k7.2+floor=v5
    #[arg(long, value_name = "[NAME=]VARIANT")]
    model: Option<String>,
    /// Differences up to this do not count: N in the field's unit, or P% of the larger side and 64
    /// pages on top of it (P%+N: N pages) [default: 0; with --model 5%+64]
    #[arg(long, value_name = "N|P%[+N]")]
    tolerance: Option<Tolerance>,
    /// Count these pages only in `resident`, not those of all files (files and pages by number,
    /// from 0)
    #[arg(long, value_name = "FILE:FIRST-LAST")]
    pages: Option<Pages>,
    /// List the fields and end
    #[arg(long)]
    fields: bool,
    /// Print the result on stdout in this form
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write a page with the curves of both sides to this file
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Write the curves of one field to a file, for a document (repeatable)
    #[arg(long, value_name = "FIELD=FILE.svg", value_parser = pair)]
    picture: Vec<(String, PathBuf)>,
}

pub(super) fn run(args: &Args) -> Answer {
    if args.fields {
        return Ok((render::list(&FIELDS.map(|f| (f.name.into(), f.about.into()))), 0));
    }
    let drawn = args.picture.iter().map(|(name, _)| ("--picture", name));
    for (option, name) in args.on.iter().map(|name| ("--on", name)).chain(drawn) {
        known(option, name)?;
    }
    let asked = Asked { seeds: Some(1), ..args.asked.clone() };
    let experiment = asked.experiment()?;
    let model = args.model.as_deref().map(|text| modelled(&asked, text)).transpose()?;
    let sides = sides(&experiment, model.as_ref())?;
    let jobs = [stepping(&experiment, sides[0])?, stepping(&experiment, sides[1])?];
    if args.pages.is_some() && jobs.iter().any(|job| !job.can_stop()) {
        return Err(Error::Request(
            "--pages: the model does not report pages one by one".to_string(),
        ));
    }
    let usual = match model {
        Some(_) => Tolerance::OF_A_MODEL,
        None => Tolerance::OF_KERNELS,
    };
    let folder = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), e))?;
    let consoles = [folder.path().join("a.console.log"), folder.path().join("b.console.log")];
    let request = Request {
        jobs,
        seed: sides[0].seed,
        on: args.on.clone(),
        pages: args.pages,
        tolerance: args.tolerance.unwrap_or(usual),
        consoles: [&consoles[0], &consoles[1]],
    };
    let found =
        search(&request).map_err(|e| Error::Request(format!("{}: {e}", args.asked.plan)))?;
    let names = sides.map(|side| side.variant.name.as_str());
    let page = || render::diverge_page(&found, names, &experiment.plan.title);
    if let Some(file) = &args.out {
        store::replace(file, &page())?;
    }
    for (field, file) in &args.picture {
        store::replace(file, &render::diverge_picture(&found, names, field))?;
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
    let progress = |pass: u32, from: u64, to: u64| {
        bar.set_message(match to {
            u64::MAX => format!("pass {pass}: the whole run on both sides"),
            _ => format!("pass {pass}: accesses {from} to {to}"),
        });
    };
    let found = diverge::find(request, &progress);
    bar.finish_and_clear();
    found
}

fn pair(text: &str) -> Result<(String, PathBuf), String> {
    let pair = text.split_once('=').filter(|(field, file)| !field.is_empty() && !file.is_empty());
    let pair = pair.ok_or_else(|| "want FIELD=FILE.svg".to_string())?;
    Ok((pair.0.to_string(), PathBuf::from(pair.1)))
}

fn known(option: &str, name: &str) -> Result<(), Error> {
    let names = FIELDS.map(|field| field.name);
    match names.contains(&name) {
        true => Ok(()),
        false => {
            let hint = mglru_error::did_you_mean(name, names);
            Err(Error::Request(format!("{option} {name}: no such field{hint} (see --fields)")))
        }
    }
}

/// The plan as the model runs it, under one variant.
fn modelled(asked: &Asked, text: &str) -> Result<Experiment, Error> {
    let (name, variant) = match text.split_once('=') {
        // A switch may be set in the variant itself.
        Some((name, variant)) if !name.contains('+') => (Some(name), variant),
        _ => (None, text),
    };
    let asked = Asked {
        backends: vec!["sim".to_string()],
        variants: vec![variant.to_string()],
        booted: Booted::default(),
        ..asked.clone()
    };
    let mut experiment = asked.experiment()?;
    for run in &mut experiment.runs {
        let name = name.map_or_else(|| format!("model {variant}"), str::to_string);
        run.variant = Arc::new(Variant { name, ..(*run.variant).clone() });
    }
    Ok(experiment)
}

/// The two runs that are compared.
fn sides<'a>(
    experiment: &'a Experiment,
    model: Option<&'a Experiment>,
) -> Result<[&'a RunSpec; 2], Error> {
    let wanted = match model {
        Some(_) => "--model goes with one: one --variant or one --kernel NAME=IMAGE",
        None => "diverge compares two: two --variant or two --kernel NAME=IMAGE",
    };
    match (&experiment.runs[..], model.map(|model| &model.runs[..])) {
        ([a, b], None) => Ok([a, b]),
        ([a], Some([b])) => Ok([a, b]),
        (runs, _) => {
            Err(Error::Request(format!("{}: {} runs; {wanted}", experiment.plan.file, runs.len())))
        }
    }
}

fn stepping<'a>(
    experiment: &Experiment,
    run: &'a RunSpec,
) -> Result<&'a dyn mglru_lab::backend::Stepping, Error> {
    run.job.stepping().ok_or_else(|| {
        let why = "diverge stops a workload on a booted kernel or in the model (kernel, sim)";
        Error::Request(format!("{}: {}: {why}", experiment.plan.file, run.variant.name))
    })
}
