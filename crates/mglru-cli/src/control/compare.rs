//! `mglru validate` by itself: the jobs of truth files replayed in the model and compared.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::Answer;
use mglru_error::Error;
use mglru_fidelity::report::Report;
use mglru_fidelity::{page, replay, text, truth};
use mglru_lab::runner::{self, Progress};
use mglru_lab::store::{self, Store};

/// Chooses the form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Prints for each version: errors by counter, directions, the worst runs.
    Table,
    /// Prints one JSON document: every run.
    Json,
    /// Prints the page docs/fidelity.md.
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
    let (name, runs) = truth::chosen(asked.truth, asked.versions, asked.only)?;
    let prepared = replay::prepare(replay::measured(runs));
    let experiment = &prepared.experiment;
    if experiment.runs.is_empty() {
        let why = prepared.left_out.first().map_or("", |(_, why)| why);
        return Err(Error::Request(format!("{name}: no job can be replayed; the first {why}")));
    }
    let default = || PathBuf::from("mglru-runs").join(format!("control-{}", experiment.hash));
    let dir = asked.out.map_or_else(default, Path::to_path_buf);
    let (mut store, found) = Store::open(&dir, experiment)?;
    crate::run::report_kept(&found);
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
