//! What is asked of a plan, as the package writes it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::TempDir;

use mglru_error::Error;
use mglru_lab::backend;
use mglru_lab::chosen::Chosen;
use mglru_lab::dotted::Assignment;
use mglru_lab::plan::{MAX_SEEDS, Plan};
use mglru_lab::plans;
use mglru_lab::report::Report;
use mglru_lab::runner::{self, Progress, Stop};
use mglru_lab::scale;
use mglru_lab::spec::{Experiment, Selection};
use mglru_lab::store::{self, Store};

/// Most runs at a time, as on the command line.
const MAX_JOBS: usize = 1024;

/// Names a plan and the changes to it.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    /// Holds the name or file of a plan, or its text, which has more than one line.
    pub plan: String,
    /// Names the backend; the plan's first when absent.
    pub backend: Option<String>,
    /// Names the variants; the plan's when empty.
    pub variants: Vec<String>,
    /// Names the variant to compare with.
    pub base: Option<String>,
    /// Sets the number of seeds.
    pub seeds: Option<u64>,
    /// Holds the scale as typed: `0.25` or `1/64`.
    pub scale: Option<String>,
    /// Takes the plan's quick part of what is not asked for.
    pub quick: bool,
    /// Sets keys of the plan.
    pub sets: Vec<Assignment>,
    /// Bounds the runs at a time.
    pub jobs: Option<usize>,
    /// Names the folder of records; a temporary one when absent.
    pub out: Option<PathBuf>,
    /// Names, for an ablation, the variant without the patches.
    pub from: Option<String>,
    /// Names, for an ablation, the variant with them.
    pub to: Option<String>,
    /// Says, for an ablation, how patches are set against their absence.
    pub modes: Vec<String>,
    /// Names, for a validation, files of measured runs.
    pub truth: Vec<PathBuf>,
    /// Names, for a validation, kernels.
    pub versions: Vec<String>,
    /// Holds, for a validation, a word of the ids.
    pub only: String,
}

impl Asked {
    /// Reads a request.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let asked: Self =
            serde_json::from_str(text).map_err(|e| Error::Request(format!("request: {e}")))?;
        if let Some(seeds) = asked.seeds.filter(|n| !(1..=MAX_SEEDS).contains(n)) {
            return Err(Error::Request(format!("seeds = {seeds}: must be from 1 to {MAX_SEEDS}")));
        }
        if let Some(jobs) = asked.jobs.filter(|n| !(1..=MAX_JOBS).contains(n)) {
            return Err(Error::Request(format!("jobs = {jobs}: must be from 1 to {MAX_JOBS}")));
        }
        Ok(asked)
    }

    /// Returns the plan as asked for, every run checked.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        let plan = match self.plan.contains('\n') {
            true => Plan::parse("plan", &self.plan, &self.sets)?,
            false => plans::find(&self.plan, &self.sets)?,
        };
        let scale = self.scale.as_ref().map(|text| {
            scale::parse(text).map_err(|why| Error::Request(format!("scale = {text}: {why}")))
        });
        let selection = Selection {
            variants: self.variants.clone(),
            base: self.base.clone(),
            seeds: self.seeds,
            scale: scale.transpose()?,
            is_quick: self.quick,
            ..Selection::default()
        };
        let backend = backend::by_name(self.backend.as_ref().unwrap_or(&plan.backends[0]))?;
        let selection = Chosen::new(&plan, selection, backend)?.on(backend)?;
        Experiment::new(plan, &selection, backend)
    }

    /// Returns the folder that records go to.
    pub fn folder(&self) -> Result<Folder, Error> {
        if let Some(out) = &self.out {
            return Ok(Folder::Named(out.clone()));
        }
        let made = tempfile::tempdir();
        made.map(Folder::Made).map_err(|e| Error::io(&std::env::temp_dir(), e))
    }

    /// Runs what is missing of an experiment.
    pub fn report(&self, experiment: &Experiment, stop: &Stop) -> Result<Report, Error> {
        let folder = self.folder()?;
        let (mut store, _) = Store::open(folder.path(), experiment)?;
        store::replace(&folder.path().join("plan.toml"), &experiment.plan.source)?;
        let jobs = self.jobs.unwrap_or(experiment.default_jobs);
        let progress = Progress::stoppable(stop);
        let records = runner::run_all(experiment, &mut store, jobs, &progress)?;
        Ok(report(experiment, records))
    }
}

/// Judges an experiment's records.
pub fn report(experiment: &Experiment, records: Vec<mglru_lab::record::Record>) -> Report {
    let mut report = Report::new(&experiment.plan, experiment.backend, records);
    report.notes.clone_from(&experiment.notes);
    report
}

/// Holds a folder of records: the caller's, or one that goes when it is dropped.
pub enum Folder {
    /// Is a folder that the caller named.
    Named(PathBuf),
    /// Is a temporary folder.
    Made(TempDir),
}

impl Folder {
    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Made(dir) => dir.path(),
        }
    }
}
