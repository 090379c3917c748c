//! Carries out `mglru measure`: measures the pager on this host beside its targets.

use std::path::PathBuf;

use super::Answer;
use super::trace::Form;
use mglru_lab::render;
use mglru_live::measure::{self, Section, Settings};

const EXAMPLES: &str = "\
Examples:
  mglru measure                                everything but the soak and the traces, 6 pairs
  mglru measure fio --pairs 10 --dir /mnt/disk
  mglru measure policy --trace a.lis.zst --trace b.csv.zst
  mglru measure soak --minutes 20

Figures of this host, live: best on a quiet one. Exit status 1: a target was missed.";

/// Measurements made if nothing is named: the soak takes minutes, traces are not shipped.
const DEFAULT: [Section; 6] =
    [Section::Budget, Section::Hit, Section::Fault, Section::Umap, Section::Aging, Section::Fio];

/// Arguments of `mglru measure`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Make these measurements [default: all but soak and policy; policy too if there are traces]
    #[arg(value_enum)]
    sections: Vec<Section>,
    /// Make this many pairs of runs of each comparison
    #[arg(long, value_name = "N", default_value_t = 6,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    pairs: u16,
    /// Measure small and short, one pair: this shows that it works, not what it gives
    #[arg(long)]
    quick: bool,
    /// Make files in this folder, on a real disk
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    dir: PathBuf,
    /// Replay this trace for `policy` (repeatable)
    #[arg(long = "trace", value_name = "FILE")]
    traces: Vec<PathBuf>,
    /// Run `soak` for this many minutes
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..=1440))]
    minutes: u16,
    /// Print the result on stdout in this form
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

impl Args {
    fn sections(&self) -> Vec<Section> {
        let mut sections = self.sections.clone();
        if sections.is_empty() {
            sections.extend(DEFAULT);
            sections.extend((!self.traces.is_empty()).then_some(Section::Policy));
        }
        sections
    }
}

pub(super) fn run(args: &Args) -> Answer {
    let settings = Settings {
        pairs: if args.quick { 1 } else { args.pairs.into() },
        quick: args.quick,
        dir: args.dir.clone(),
        traces: args.traces.clone(),
        minutes: args.minutes.into(),
    };
    let measured = measure::run(&args.sections(), &settings)?;
    let text = match args.format {
        Form::Json => render::json(&measured),
        Form::Table => render::measured(&measured),
    };
    Ok((text, u8::from(measured.findings.iter().any(|finding| !finding.met))))
}
