//! Plans: run, ablated, compared; and the measure of real kernels.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::asked::Asked;
use crate::interrupt::interruptible;
use mglru_error::Error;
use mglru_fidelity::report::Report as Fidelity;
use mglru_fidelity::{replay, truth};
use mglru_lab::ablation::{self, Ablation, Mode, Span};
use mglru_lab::capture::{self, Side};
use mglru_lab::compare::{self as comparing, Comparison};
use mglru_lab::render;
use mglru_lab::runner::{self, Progress, Stop};
use mglru_lab::store::{self, Store};

/// Runs a plan; the document of `mglru run --format json`.
#[pyfunction]
pub fn run(py: Python<'_>, asked: &str) -> PyResult<String> {
    interruptible(py, |stop| {
        let asked = Asked::parse(asked)?;
        let report = asked.report(&asked.experiment()?, stop)?;
        Ok::<_, Error>(render::json(&report))
    })
}

/// Ablates a plan; the document of `mglru ablate --format json`.
#[pyfunction]
pub fn ablate(py: Python<'_>, asked: &str) -> PyResult<String> {
    interruptible(py, |stop| ablated(&Asked::parse(asked)?, stop))
}

fn ablated(asked: &Asked, stop: &Stop) -> Result<String, Error> {
    let span = Span::read(&asked.plan, (asked.from.as_deref(), asked.to.as_deref()))?;
    let modes = modes(&asked.modes)?;
    let arms = ablation::arms(&modes, &span.from, &span.to);
    let arms = arms.map_err(|e| Error::Request(e.to_string()))?;
    let variants = ablation::variants(&arms, &modes);
    let base = Some(variants[0].clone());
    let asked = Asked { plan: span.plan, variants, base, ..asked.clone() };
    let experiment = asked.experiment()?;
    let report = asked.report(&experiment, stop)?;
    let ends = [span.from.as_str(), span.to.as_str()];
    Ok(render::json(&Ablation::new(&experiment.plan, &arms, ends, &report.records)))
}

fn modes(names: &[String]) -> Result<Vec<Mode>, Error> {
    if names.is_empty() {
        return Ok(Mode::ALL.to_vec());
    }
    let known = Mode::ALL.map(Mode::name);
    let mode = |name: &String| match known.iter().position(|known| known == name) {
        Some(at) => Ok(Mode::ALL[at]),
        None => {
            let near = mglru_error::did_you_mean(name, known.iter().map(String::as_str));
            Err(Error::Request(format!("modes: unknown {name}{near}")))
        }
    };
    names.iter().map(mode).collect()
}

/// Replays measured jobs in the model; the document of `mglru validate --format json`.
#[pyfunction]
pub fn validate(py: Python<'_>, asked: &str) -> PyResult<String> {
    interruptible(py, |stop| validated(&Asked::parse(asked)?, stop))
}

fn validated(asked: &Asked, stop: &Stop) -> Result<String, Error> {
    let (name, runs) = truth::chosen(&asked.truth, &asked.versions, &asked.only)?;
    let prepared = replay::prepare(replay::measured(runs));
    let experiment = &prepared.experiment;
    if experiment.runs.is_empty() {
        let why = prepared.left_out.first().map_or("", |(_, why)| why);
        return Err(Error::Request(format!("{name}: no job can be replayed; the first {why}")));
    }
    let folder = asked.folder()?;
    let (mut store, _) = Store::open(folder.path(), experiment)?;
    let jobs = asked.jobs.unwrap_or(experiment.default_jobs);
    let records = runner::run_all(experiment, &mut store, jobs, &Progress::stoppable(stop))?;
    Ok(Fidelity::new(&prepared, &records).json())
}

/// Compares records, or captures; the document of `mglru compare --format json`.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    a: PathBuf,
    b: PathBuf,
    metrics: Vec<String>,
    all: bool,
) -> PyResult<String> {
    interruptible(py, |_| {
        let found = compared([a, b], &metrics, all)?;
        Ok::<_, Error>(render::json(&serde_json::json!({ "comparisons": found })))
    })
}

fn compared([a, b]: [PathBuf; 2], metrics: &[String], all: bool) -> Result<Vec<Comparison>, Error> {
    match [capture::is_capture(&a)?, capture::is_capture(&b)?] {
        [true, true] => capture::compare(&[Side::load(&a)?, Side::load(&b)?], metrics, all),
        [false, false] => {
            let sides = [store::load(&a)?, store::load(&b)?];
            let every = comparing::every_metric(&sides[1]);
            let metrics = if metrics.is_empty() { &every[..] } else { metrics };
            Ok(comparing::namesakes(&sides[0], &sides[1], metrics))
        }
        _ => {
            let (a, b) = (a.display(), b.display());
            Err(Error::Request(format!("{a}, {b}: one holds captures, the other records")))
        }
    }
}
