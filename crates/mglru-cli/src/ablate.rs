//! Carries out `mglru ablate`: flips one switch at a time and compares.

use std::path::Path;

use super::run::{self, Output};
use super::{Answer, Asked, Format};
use mglru_error::Error;
use mglru_lab::ablation::mechanisms::{self, Mechanisms};
use mglru_lab::ablation::{self, Ablation, Mode, Span};
use mglru_lab::{render, store};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  mglru ablate mongodb --seeds 1                            every patch, in three ways
  mglru ablate mongodb --seeds 1 --mode one-in              each with what it needs, alone
  mglru ablate tiny-groups --mode versions                  versions 2, 4, 5, 7 of the series
  mglru ablate fio-zipf --from before --to v5 --seeds 3
  mglru ablate k7.1..k7.2                                   of a release: on the plan read-scan
  mglru ablate mongodb --scale 1/64 --mechanisms            what is each part of the LRU worth?

Each row is a prediction for a patch: the figure with the patch over the figure without it, with its
95 % interval. Patches that a patch needs are put in before it; those that need it are left out with
it, and such a comparison is shown but does not count. What only the first variant has is looked at
in the same way: with it over without it.";

/// Arguments of `mglru ablate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Change one mechanism at a time instead: the refault controller, tiers, Bloom filters,
    /// page-table walks, the number of generations and their clock, the measure of refaults, …
    /// Figures are those with the change over those of --to [default: k7.3]
    #[arg(long, conflicts_with_all = ["modes", "from"])]
    mechanisms: bool,
    /// Choose how a patch is set against its absence (repeatable) [default: all]
    #[arg(long = "mode", value_enum, value_name = "MODE")]
    modes: Vec<Mode>,
    /// Set the variant without the patches [default: before]
    #[arg(long)]
    from: Option<String>,
    /// Set the variant with them [default: after]
    #[arg(long)]
    to: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Runs and compares; what a plan expects of its own variants is not the question here, so a missed
/// expectation does not show in the exit status.
pub(super) fn run(args: &Args) -> Answer {
    refuse(args)?;
    if args.mechanisms {
        return mechanisms(args);
    }
    let ends = (args.from.as_deref(), args.to.as_deref());
    let Span { plan, from, to } = Span::read(&args.asked.plan, ends)?;
    let modes = if args.modes.is_empty() { &Mode::ALL[..] } else { &args.modes };
    let arms = ablation::arms(modes, &from, &to);
    let arms = arms.map_err(|e| Error::Request(e.to_string()))?;
    let variants = ablation::variants(&arms, modes);
    let base = Some(variants[0].clone());
    let experiment = Asked { plan, base, variants, ..args.asked.clone() }.experiment()?;
    let dir = args.output.out.clone().unwrap_or_else(|| run::default_dir(&experiment));
    let report = run::made(&experiment, &dir, &args.output)?;
    let ends = [from.as_str(), to.as_str()];
    let found = Ablation::new(&experiment.plan, &arms, ends, &report.records);
    answer(args.output.format, &dir, &found, render::ablation, render::ablation_page)
}

fn mechanisms(args: &Args) -> Answer {
    let on = args.to.as_deref().unwrap_or("k7.3");
    let changes = mechanisms::of(on).map_err(|e| Error::Request(format!("--mechanisms: {e}")))?;
    let variants = mechanisms::variants(on, changes);
    let base = Some(on.to_string());
    let experiment = Asked { base, variants, ..args.asked.clone() }.experiment()?;
    let dir = args.output.out.clone().unwrap_or_else(|| run::default_dir(&experiment));
    let report = run::made(&experiment, &dir, &args.output)?;
    let found = Mechanisms::new(&experiment.plan.name, on, changes, &report.records);
    answer(args.output.format, &dir, &found, render::mechanisms, render::mechanisms_page)
}

/// Puts the page into the run's folder, and writes the form that was asked for.
fn answer<T: Serialize>(
    format: Format,
    dir: &Path,
    found: &T,
    table: fn(&T) -> String,
    page: fn(&T) -> String,
) -> Answer {
    let (file, page) = (dir.join("ablation.html"), page(found));
    store::replace(&file, &page)?;
    let text = match format {
        Format::Json => render::json(found),
        Format::Html => page,
        Format::Table => {
            format!("{}records: {}\npage: {}\n", table(found), dir.display(), file.display())
        }
    };
    Ok((text, 0))
}

fn refuse(args: &Args) -> Result<(), Error> {
    if let Some(name) = args.asked.variants.first() {
        let problem = "ablate makes its own variants, from --from to --to";
        return Err(Error::Request(format!("--variant {name}: {problem}")));
    }
    match (&args.asked.base, args.output.skin) {
        (Some(base), _) => {
            Err(Error::Request(format!("--base {base}: ablate has its own bases, see --from")))
        }
        (_, Some(_)) => Err(Error::Request("--skin: not with `ablate`".to_string())),
        _ => Ok(()),
    }
}
