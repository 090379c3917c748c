//! `mglru control` by itself: the jobs of truth files replayed in the model and compared.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::cli::Answer;
use crate::control::{replay, text, truth, verdict::Verdicts};
use crate::error::Error;
use crate::render;
use crate::runner::{self, Progress};
use crate::store::{self, Store};

/// Where measured jobs lie beside a checkout.
const SHARED: &str = "../shared/kernel-truth";

/// Form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Form {
    /// Errors by counter, directions, the worst runs.
    Table,
    /// One JSON document: every run.
    Json,
    /// The page docs/fidelity.md.
    Markdown,
}

/// Replays what is missing and compares.
pub(in crate::cli) fn run(
    truth: &[PathBuf],
    out: Option<&Path>,
    jobs: Option<u16>,
    form: Form,
) -> Answer {
    let files = if truth.is_empty() { shared()? } else { truth.to_vec() };
    let prepared = replay::prepare(replay::measured(truth::load(&files)?));
    let experiment = &prepared.experiment;
    if experiment.runs.is_empty() {
        let why = prepared.left_out.first().map_or("", |(_, why)| why);
        let file = files[0].display();
        return Err(Error::Request(format!("{file}: no job can be replayed; the first {why}")));
    }
    let default = || PathBuf::from("mglru-runs").join(format!("control-{}", experiment.hash));
    let dir = out.map_or_else(default, Path::to_path_buf);
    let (mut store, found) = Store::open(&dir, experiment)?;
    crate::cli::run::tell(&found);
    store::replace(&dir.join("plan.toml"), &experiment.plan.source)?;
    let jobs = jobs.map_or(experiment.default_jobs, usize::from);
    let records = runner::run_all(experiment, &mut store, jobs, &Progress::on_terminal())?;
    let verdicts = Verdicts::new(&prepared.jobs, &records, &prepared.left_out);
    let status = u8::from(verdicts.wrong().next().is_some());
    let text = match form {
        Form::Table => format!("{}records: {}\n", text::table(&verdicts), dir.display()),
        Form::Json => render::json(&verdicts),
        Form::Markdown => text::markdown(&verdicts),
    };
    Ok((text, status))
}

/// Every `*.jsonl` of the shared folder.
fn shared() -> Result<Vec<PathBuf>, Error> {
    let dir = Path::new(SHARED);
    let listed = std::fs::read_dir(dir).map_err(|e| Error::io(dir, e))?;
    let mut files: Vec<PathBuf> = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    match files.is_empty() {
        true => Err(Error::Request(format!("{SHARED}: holds no .jsonl file; give --truth"))),
        false => Ok(files),
    }
}
