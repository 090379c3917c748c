//! Carries out `mglru start-cost`: times the start of reclaim over many groups.

use std::path::PathBuf;

use super::{Answer, Format};
use mglru_error::Error;
use mglru_lab::render;
use mglru_lab::start_cost;
use mglru_lab::store;

const EXAMPLES: &str = "\
Examples:
  mglru start-cost                              16 to 16,384 groups, three ways of finding them
  mglru start-cost --groups 16,1024 --pages 32
  mglru start-cost --out start.html             the picture

Wall-clock figures of this host: they differ from run to run.";

/// Arguments of `mglru start-cost`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Measure with these numbers of groups
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "16,64,256,1024,4096,16384",
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    groups: Vec<u32>,
    /// Ask for this many pages in each call
    #[arg(long, value_name = "N", default_value_t = 512,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pages: u64,
    /// Measure this many calls at each point
    #[arg(long, value_name = "N", default_value_t = 21,
        value_parser = clap::value_parser!(u16).range(1..=10_000))]
    calls: u16,
    /// Print the result on stdout in this form
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write the picture to this file, a page of its own
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Answer {
    let groups: Vec<usize> = args.groups.iter().map(|&n| n as usize).collect();
    let points = start_cost::measure(&groups, args.pages, usize::from(args.calls));
    if let Some(file) = &args.out {
        store::replace(file, &render::start_cost_page(&points))?;
    }
    let text = match args.format {
        Format::Table => render::start_cost_table(&points),
        Format::Json => render::json(&points),
        Format::Html => render::start_cost_page(&points),
    };
    Ok::<_, Error>((text, 0))
}
