//! `mglru show` and `mglru report`.

use std::path::PathBuf;

use super::ask::{self, Skin};
use super::{Answer, Asked, Format, run};
use mglru_lab::dotted;
use mglru_lab::render;
use mglru_lab::spec::Experiment;
use mglru_lab::store;

const SHOW: &str = "\
Examples:
  mglru show mongodb
  mglru show mongodb --scale 1/64 --set machine.device=ssd-net";

const REPORT: &str = "\
Examples:
  mglru report mglru-runs/a                  writes report.html again
  mglru report mglru-runs/a --format table";

/// Arguments of `mglru show`.
#[derive(clap::Args)]
#[command(after_help = SHOW)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
}

/// Arguments of `mglru report`.
#[derive(clap::Args)]
#[command(after_help = REPORT)]
pub(super) struct ReportArgs {
    /// Read this folder, written by `mglru run`
    dir: PathBuf,
    /// Print the result in this form instead of writing report.html
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Print the table in this form
    #[arg(long, value_enum, value_name = "SKIN")]
    skin: Option<Skin>,
}

pub(super) fn run(args: &Args) -> Answer {
    let shown: Vec<String> = args.asked.experiments()?.iter().map(text).collect();
    Ok((shown.join("\n"), 0))
}

pub(super) fn report(args: &ReportArgs) -> Answer {
    if args.skin.is_some() && args.format != Some(Format::Table) {
        return Err(ask::skin_of_no_table());
    }
    let report = run::stored(&args.dir)?;
    let text = match args.format {
        Some(Format::Table) => ask::table(&report, args.skin),
        Some(Format::Json) => render::json(&report),
        Some(Format::Html) => run::page(&args.dir, &report)?,
        None => {
            let page = args.dir.join("report.html");
            store::replace(&page, &run::page(&args.dir, &report)?)?;
            format!("{}\n", page.display())
        }
    };
    Ok((text, 0))
}

fn text(experiment: &Experiment) -> String {
    let plan = &experiment.plan;
    let mut out = format!("{}: {}\n", plan.name, plan.title);
    if !plan.about.is_empty() {
        out += &format!("\n{}\n", plan.about);
    }
    out += &format!("\nbackend {}, plan hash {}\n", experiment.backend, experiment.hash);
    out += &format!("scale {}\n", plan.scale);
    let points = experiment.runs.len() / plan.variants.len() / plan.seeds.len();
    out += &format!(
        "{} runs: {} variants, {} seeds, {points} points\n",
        experiment.runs.len(),
        plan.variants.len(),
        plan.seeds.len()
    );
    out += "\nvariants\n";
    for variant in &plan.variants {
        let set = variant.set.iter().map(|(key, value)| format!(" {key}={value}"));
        out += &format!("  {} = {}{}\n", variant.name, variant.base, set.collect::<String>());
    }
    out += &experiment.notes.lines(experiment.backend);
    out += "\nkeys at scale 1\n";
    for line in dotted::canonical(&plan.sections).lines() {
        out += &format!("  {line}\n");
    }
    out += "\nexpectations\n";
    for p in &plan.published {
        let [low, high] = p.band();
        out += &format!(
            "  {} {}/{}: published {:.3}, passes in [{low:.3}, {high:.3}] ({})\n",
            p.metric,
            p.variant,
            p.base.as_ref().unwrap_or(&plan.base),
            p.ratio(),
            p.document
        );
    }
    plan.neutral
        .iter()
        .for_each(|n| out += &format!("  {} of {} unchanged\n", n.metric, n.variant));
    plan.expects.iter().for_each(|c| out += &format!("  expect: {}\n", c.name));
    out
}
