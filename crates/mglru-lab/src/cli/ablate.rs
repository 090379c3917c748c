//! `mglru ablate`.

use super::run::{self, Output};
use super::{Answer, Asked};
use crate::ablation::{self, Mode};
use crate::error::Error;

const EXAMPLES: &str = "\
Examples:
  mglru ablate quickstart                                   switches added one by one
  mglru ablate mongodb --scale 1/64 --mode one-in           each alone on top of before
  mglru ablate mongodb --scale 1/64 --mode leave-one-out    after without each
  mglru ablate fio-zipf --from before --to v5 --seeds 3";

/// Arguments of `mglru ablate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    /// How switches are combined
    #[arg(long, value_enum, default_value_t = Mode::Cumulative)]
    mode: Mode,
    /// Variant without the switches
    #[arg(long, default_value = "before")]
    from: String,
    /// Variant with them
    #[arg(long, default_value = "after")]
    to: String,
    #[command(flatten)]
    output: Output,
}

/// Runs and compares; what a plan expects of its own variants is not the question here, so a missed
/// expectation does not show in the exit status.
pub(super) fn run(args: &Args) -> Answer {
    if let Some(name) = args.asked.variants.first() {
        let problem = "ablate makes its own variants, from --from to --to";
        return Err(Error::Request(format!("--variant {name}: {problem}")));
    }
    let names = ablation::variants(args.mode, &args.from, &args.to);
    let names = names.map_err(|e| Error::Request(e.to_string()))?;
    let asked = Asked { base: Some(names[0].clone()), variants: names, ..args.asked.clone() };
    let (text, _) = run::execute(&asked, &args.output)?;
    Ok((text, 0))
}
