//! `mglru list`.

use clap::ValueEnum;

use super::Answer;
use crate::backend;
use crate::counters;
use crate::plans;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  mglru list                  plans
  mglru list variants         what --variant takes
  mglru list switches         what may follow NAME+ in --variant and stand in [reclaim]
  mglru list counters --json";

/// Arguments of `mglru list`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What to list
    #[arg(value_enum, default_value_t = What::Plans)]
    what: What,
    /// Backend whose abilities are meant
    #[arg(long, default_value = "sim")]
    backend: String,
    /// One JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Plans,
    Variants,
    Switches,
    Workloads,
    Counters,
}

pub(super) fn run(args: &Args) -> Answer {
    let backend = || backend::by_name(&args.backend);
    let rows = match args.what {
        What::Plans => plans::all()?,
        What::Variants => backend()?.variants(),
        What::Switches => backend()?.switches(),
        What::Workloads => backend()?.workloads(),
        What::Counters => counters::all(),
    };
    let text = match args.json {
        true => {
            let named = |(name, about)| serde_json::json!({ "name": name, "about": about });
            render::json(&rows.into_iter().map(named).collect::<Vec<_>>())
        }
        false => render::list(&rows),
    };
    Ok((text, 0))
}
