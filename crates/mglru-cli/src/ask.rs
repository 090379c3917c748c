//! Reads the options that commands about plans share: which plan, which part of it, in which form.

use clap::ValueEnum;

use super::booted::Booted;
use mglru_error::Error;
use mglru_lab::backend::{self, Backend};
use mglru_lab::chosen::Chosen;
use mglru_lab::dotted::Assignment;
use mglru_lab::fit::Notes;
use mglru_lab::plan::{MAX_SEEDS, Plan};
use mglru_lab::plans;
use mglru_lab::render;
use mglru_lab::report::Report;
use mglru_lab::scale;
use mglru_lab::spec::{Experiment, Selection};

/// Says in which form the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Prints a table for people.
    Table,
    /// Prints one JSON document.
    Json,
    /// Prints one self-contained page.
    Html,
}

/// Names a table other than our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Skin {
    /// Prints the vmstat table of 2012's reclaim reports.
    Mmtests2012,
}

/// Renders the report as a table, in the skin that was asked for.
pub fn table(report: &Report, skin: Option<Skin>) -> String {
    match skin {
        None => render::report(report),
        Some(Skin::Mmtests2012) => report.remarks() + &render::mmtests2012(&report.records),
    }
}

/// Says why a skin cannot be had.
pub fn skin_of_no_table() -> Error {
    Error::Request("--skin goes with --format table only".to_string())
}

/// Names a plan and the changes to it.
#[derive(Clone, Debug, clap::Args)]
pub struct Asked {
    /// Take a plan by name (see `mglru list plans`) or from a TOML file
    #[arg(value_name = "PLAN|FILE.toml")]
    pub plan: String,
    /// Choose the backend: sim, pager or kernel; several, as kernel,sim, are set side by side
    /// [default: the plan's, or kernel with --kernel]
    #[arg(long = "backend", value_name = "BACKEND", value_delimiter = ',')]
    pub backends: Vec<String>,
    /// Run this variant only (repeatable); NAME+SWITCH puts switches on a named one
    #[arg(long = "variant", value_name = "V")]
    pub variants: Vec<String>,
    /// Compare all others with this variant [default: the plan's]
    #[arg(long, value_name = "V")]
    pub base: Option<String>,
    /// Use this number of seeds [default: the plan's]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS)
    )]
    pub seeds: Option<u64>,
    /// Scale workload and limits by this factor: 1/64 or 0.015625 [default: the plan's]
    #[arg(long, value_name = "F", allow_negative_numbers = true, value_parser = scale::parse)]
    pub scale: Option<f64>,
    /// Set a key of the plan (repeatable), such as workload.theta=0.9; a list is a sweep
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<Assignment>,
    /// Names the kernels to boot.
    #[command(flatten)]
    pub booted: Booted,
    /// Says that the plan's quick part is enough of what no option names.
    #[arg(skip)]
    pub is_quick: bool,
}

impl Asked {
    /// The plan as asked for on each of its backends, every run checked.
    pub(crate) fn experiments(&self) -> Result<Vec<Experiment>, Error> {
        let sets = [&self.sets[..], &self.booted.sets()].concat();
        let plan = plans::find(&self.plan, &sets)?;
        let backends = self.backends(&plan)?;
        let selection = Selection {
            variants: self.variants.clone(),
            given: self.booted.variants(&self.variants)?,
            base: self.base.clone(),
            seeds: self.seeds,
            scale: self.scale,
            is_quick: self.is_quick,
            notes: Notes::default(),
        };
        let chosen = Chosen::new(&plan, selection, backends[0])?;
        let experiment = |backend: &&'static dyn Backend| {
            Experiment::new(plan.clone(), &chosen.on(*backend)?, *backend)
        };
        backends.iter().map(experiment).collect()
    }

    /// As [`Asked::experiments`], for commands that look at one backend.
    pub(crate) fn experiment(&self) -> Result<Experiment, Error> {
        let mut experiments = self.experiments()?;
        match (experiments.pop(), experiments.is_empty()) {
            (Some(experiment), true) => Ok(experiment),
            _ => Err(Error::Request(format!("{}: name one --backend", self.plan))),
        }
    }

    /// The first is the measure of the others.
    fn backends(&self, plan: &Plan) -> Result<Vec<&'static dyn Backend>, Error> {
        let booted = !self.booted.is_empty();
        let names = match self.backends.is_empty() {
            false => self.backends.clone(),
            true if booted => vec!["kernel".to_string()],
            true => plan.backends.clone(),
        };
        let asked = names.join(",");
        if let Some((_, name)) = names.iter().enumerate().find(|(at, n)| names[..*at].contains(n)) {
            return Err(Error::Request(format!("--backend {asked}: backend `{name}` given twice")));
        }
        if booted && asked != "kernel" {
            return Err(Error::Request(format!(
                "--backend {asked}: --kernel, --modules, --append, --host-time and --profile go \
                 with --backend kernel"
            )));
        }
        names.iter().map(|name| backend::by_name(name)).collect()
    }

    /// The command that repeats this one.
    pub(crate) fn repeat(&self, plan: &Plan) -> String {
        let mut args = vec!["mglru run".to_string(), quoted(&self.plan)];
        let mut option = |name: &str, value: String| args.push(format!("--{name} {value}"));
        if !self.backends.is_empty() {
            option("backend", self.backends.join(","));
        }
        self.variants.iter().for_each(|v| option("variant", quoted(v)));
        self.base.iter().for_each(|v| option("base", quoted(v)));
        self.seeds.iter().for_each(|n| option("seeds", n.to_string()));
        self.scale.iter().for_each(|s| option("scale", s.to_string()));
        self.sets.iter().for_each(|s| option("set", quoted(&format!("{}={}", s.key, s.value))));
        self.booted.options().into_iter().for_each(|(name, value)| option(name, quoted(&value)));
        args.extend((!self.is_quick && plan.has_quick()).then(|| "--full".to_string()));
        args.extend(self.booted.host_time.then(|| "--host-time".to_string()));
        args.extend(self.booted.profile.then(|| "--profile".to_string()));
        args.join(" ")
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:%,".contains(c);
    match word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
