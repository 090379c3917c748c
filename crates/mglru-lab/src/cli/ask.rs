//! What commands about plans have in common: which plan, which part of it, in which form.

use clap::ValueEnum;

use super::booted::Booted;
use crate::backend::{self, Backend};
use crate::dotted::Assignment;
use crate::error::Error;
use crate::plan::{MAX_SEEDS, Plan};
use crate::plans;
use crate::render;
use crate::report::Report;
use crate::scale;
use crate::spec::{Experiment, Selection};

/// Output form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    Table,
    /// One JSON document.
    Json,
    /// One self-contained page.
    Html,
}

/// Table other than our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Skin {
    /// The vmstat table of 2012's reclaim reports.
    Mmtests2012,
}

/// The report as a table, in the skin that was asked for.
pub fn table(report: &Report, skin: Option<Skin>) -> String {
    match skin {
        None => render::report(report),
        Some(Skin::Mmtests2012) => render::mmtests2012(&report.records),
    }
}

/// Why a skin cannot be had.
pub fn skin_of_no_table() -> Error {
    Error::Request("--skin goes with --format table only".to_string())
}

/// A plan and what to change about it.
#[derive(Clone, Debug, clap::Args)]
pub struct Asked {
    /// Name of a plan (see `mglru list plans`) or a TOML file
    #[arg(value_name = "PLAN|FILE.toml")]
    pub plan: String,
    /// Backend: sim, pager or kernel [default: the plan's, or kernel with --kernel]
    #[arg(long)]
    pub backend: Option<String>,
    /// Run this variant only (repeatable); NAME+SWITCH puts switches on a named one
    #[arg(long = "variant", value_name = "V")]
    pub variants: Vec<String>,
    /// Variant all others are compared with [default: the plan's]
    #[arg(long, value_name = "V")]
    pub base: Option<String>,
    /// Number of seeds [default: the plan's]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS)
    )]
    pub seeds: Option<u64>,
    /// Scale of workload and limits: 1/64 or 0.015625 [default: the plan's]
    #[arg(long, value_name = "F", allow_negative_numbers = true, value_parser = scale::parse)]
    pub scale: Option<f64>,
    /// Set a key of the plan (repeatable), such as workload.theta=0.9; a list is a sweep
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<Assignment>,
    /// Kernels to boot.
    #[command(flatten)]
    pub booted: Booted,
}

impl Asked {
    /// The plan as asked for, every run of it checked.
    pub(crate) fn experiment(&self) -> Result<Experiment, Error> {
        let (plan, backend) = self.plan()?;
        let mut given = self.booted.variants(&self.variants)?;
        if given.is_empty() && self.variants.is_empty() && plan.backend != backend.name() {
            given = backend.own_variants();
        }
        let selection = Selection {
            variants: self.variants.clone(),
            given,
            base: self.base.clone(),
            seeds: self.seeds,
            scale: self.scale,
        };
        Experiment::new(plan, &selection, backend)
    }

    fn plan(&self) -> Result<(Plan, &'static dyn Backend), Error> {
        let sets = [&self.sets[..], &self.booted.sets()].concat();
        let plan = plans::find(&self.plan, &sets)?;
        let implied = (!self.booted.is_empty()).then_some("kernel");
        let asked = self.backend.as_deref().or(implied).unwrap_or(&plan.backend);
        match implied {
            Some(kernel) if asked != kernel => Err(Error::Request(format!(
                "--backend {asked}: --kernel, --modules and --append go with --backend kernel"
            ))),
            _ => {
                let backend = backend::by_name(asked)?;
                Ok((plan, backend))
            }
        }
    }

    /// The command that repeats this one.
    pub(crate) fn repeat(&self) -> String {
        let mut words = vec!["mglru run".to_string(), quoted(&self.plan)];
        let mut option = |name: &str, value: String| words.push(format!("--{name} {value}"));
        self.backend.iter().for_each(|b| option("backend", b.clone()));
        self.variants.iter().for_each(|v| option("variant", quoted(v)));
        self.base.iter().for_each(|v| option("base", quoted(v)));
        self.seeds.iter().for_each(|n| option("seeds", n.to_string()));
        self.scale.iter().for_each(|s| option("scale", s.to_string()));
        self.sets.iter().for_each(|s| option("set", quoted(&format!("{}={}", s.key, s.value))));
        self.booted.words().into_iter().for_each(|(name, value)| option(name, quoted(&value)));
        words.join(" ")
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:%,".contains(c);
    match word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
