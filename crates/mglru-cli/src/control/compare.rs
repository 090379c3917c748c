//! `mglru validate` by itself: the jobs of truth files replayed in the model and compared.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::Answer;
use mglru_error::Error;
use mglru_fidelity::report::Report;
use mglru_fidelity::truth::Run;
use mglru_fidelity::{page, replay, text, texts, truth};
use mglru_lab::backend::kernel::version;
use mglru_lab::runner::{self, Progress};
use mglru_lab::store::{self, Store};

/// Form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For each version: errors by counter, directions, the worst runs.
    Table,
    /// One JSON document: every run.
    Json,
    /// The page docs/fidelity.md.
    Markdown,
}

/// Holds the compared sides, and the way to compare them.
pub(crate) struct Asked<'a> {
    /// Files; none: those that the program holds.
    pub(crate) truth: &'a [PathBuf],
    /// Versions; none: all.
    pub(crate) versions: &'a [String],
    /// Part of an id.
    pub(crate) only: &'a str,
    /// Folder for records.
    pub(crate) out: Option<&'a Path>,
    /// Replays at a time.
    pub(crate) jobs: Option<u16>,
}

/// Replays what is missing and compares.
pub(crate) fn run(asked: &Asked, form: Form) -> Answer {
    let (name, runs) = asked.runs()?;
    let prepared = replay::prepare(replay::measured(runs));
    let experiment = &prepared.experiment;
    if experiment.runs.is_empty() {
        let why = prepared.left_out.first().map_or("", |(_, why)| why);
        return Err(Error::Request(format!("{name}: no job can be replayed; the first {why}")));
    }
    let default = || PathBuf::from("mglru-runs").join(format!("control-{}", experiment.hash));
    let dir = asked.out.map_or_else(default, Path::to_path_buf);
    let (mut store, found) = Store::open(&dir, experiment)?;
    crate::run::tell(&found);
    store::replace(&dir.join("plan.toml"), &experiment.plan.source)?;
    let jobs = asked.jobs.map_or(experiment.default_jobs, usize::from);
    let records = runner::run_all(experiment, &mut store, jobs, &Progress::on_terminal())?;
    let report = Report::new(&prepared, &records);
    let text = match form {
        Form::Table => format!("{}records: {}\n", text::table(&report), dir.display()),
        Form::Json => report.json(),
        Form::Markdown => page::markdown(&report),
    };
    Ok((text, u8::from(report.is_wrong())))
}

impl Asked<'_> {
    /// The runs that are asked for, and the name of the first text they are of.
    fn runs(&self) -> Result<(String, Vec<Run>), Error> {
        let texts = texts::of(self.truth)?;
        let mut runs = truth::load(&texts)?;
        for wanted in self.versions {
            let known = runs.iter().any(|run| version::is_of(run.version(), wanted));
            known.then_some(()).ok_or_else(|| {
                let known = version::listed(runs.iter().map(Run::version));
                let none = format!("--version {wanted}: no run was measured on it; known: {known}");
                Error::Request(none)
            })?;
        }
        let any = |run: &Run| self.versions.iter().any(|v| version::is_of(run.version(), v));
        runs.retain(|run| self.versions.is_empty() || any(run));
        runs.retain(|run| run.id.contains(self.only));
        match runs.is_empty() {
            true => Err(Error::Request(format!("--only {}: no run's id has it", self.only))),
            false => Ok((texts[0].name.clone(), runs)),
        }
    }
}
