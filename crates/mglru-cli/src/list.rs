//! Carries out `mglru list`: prints the names that other commands take.

use clap::ValueEnum;

use super::{Answer, keys};
use mglru_error::Error;
use mglru_lab::backend;
use mglru_lab::counters;
use mglru_lab::plans;
use mglru_lab::render;

const EXAMPLES: &str = "\
Examples:
  mglru list                  plans
  mglru list variants         what --variant takes
  mglru list switches         what may follow NAME+ in --variant and stand in [reclaim]
  mglru list counters --json
  mglru list keys machine     every key of [machine]; mglru help keys is the same list";

/// Arguments of `mglru list`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Choose what to list
    #[arg(value_enum, default_value_t = What::Plans)]
    what: What,
    /// List the keys of these sections of a plan (with keys), such as machine.swap or fio
    /// [default: all]
    sections: Vec<String>,
    /// List the abilities of this backend
    #[arg(long, default_value = "sim")]
    backend: String,
    /// Print one JSON document instead of a table
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
    Keys,
}

pub(super) fn run(args: &Args) -> Answer {
    if let Some(section) = args.sections.first().filter(|_| args.what != What::Keys) {
        return Err(Error::Request(format!("list: `{section}`: only keys have sections")));
    }
    let backend = || backend::by_name(&args.backend);
    let rows = match args.what {
        What::Plans => plans::all()?,
        What::Variants => backend()?.variants(),
        What::Switches => backend()?.switches(),
        What::Workloads => backend()?.workloads(),
        What::Counters => counters::all(),
        What::Keys => return keys::run(&args.sections, args.json),
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
