//! A trace under flat policies, variants of the machine and policies written in Python.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::interrupt::{go_on, interruptible};
use crate::pages::{Asked, Pages, kept, sizes};
use crate::{policy, raised};
use mglru_error::Error;
use mglru_lab::render;
use mglru_lab::runner::Stop;
use mglru_lab::trace_machine;
use mglru_lab::variant::Variant;
use mglru_traces::flat::{Policy, Run, replay_whole};
use mglru_traces::tools::{Capacity, ReplayReport, ReplayRequest, ReplayResult};
use mglru_workload::trace::{Dense, Format, TraceFile, View};

/// A trace in memory, and where to read it again.
struct Loaded {
    name: String,
    dense: Dense,
    file: TraceFile,
    format: Option<Format>,
    view: View,
}

/// Names a policy, or holds one written in Python.
#[derive(FromPyObject)]
pub enum Which<'py> {
    /// Names a flat policy or a variant of the machine.
    Named(String),
    /// Holds a function that, called with a size in pages, makes a policy.
    Own(Bound<'py, PyAny>),
}

/// Replays a trace's file under policies; the document of `mglru trace replay --format json`.
#[pyfunction]
pub fn replay_file(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    pages: bool,
    policies: Vec<Which<'_>>,
    sizes: Vec<String>,
    seed: u64,
) -> PyResult<String> {
    let loaded = interruptible(py, |_| {
        let Asked { file, format, view } = Asked::new(path, format, pages)?;
        let dense = Dense::load(file.reader(format, view)?)?;
        let name = mglru_workload::trace::trace_name(file.path());
        Ok::<_, Error>(Loaded { name, dense, file, format, view })
    })?;
    replayed(py, &loaded, &policies, &sizes, seed)
}

/// Replays an array of page numbers under policies.
#[pyfunction]
pub fn replay_pages(
    py: Python<'_>,
    pages: Pages<'_>,
    policies: Vec<Which<'_>>,
    sizes: Vec<String>,
    seed: u64,
) -> PyResult<String> {
    let seen = pages.seen();
    // The file goes when this call ends.
    let (loaded, _file) = interruptible(py, |stop| {
        let mut dense = Dense::default();
        dense.unique = seen.dense(stop, &mut |block| dense.ids.extend_from_slice(block))?;
        let kept = kept(&dense.ids)?;
        let (file, format) = (TraceFile::open(kept.path())?, Some(Format::U32le));
        let (name, view) = ("array".to_string(), View::Requests);
        Ok::<_, Error>((Loaded { name, dense, file, format, view }, kept))
    })?;
    replayed(py, &loaded, &policies, &sizes, seed)
}

fn replayed(
    py: Python<'_>,
    trace: &Loaded,
    policies: &[Which<'_>],
    asked: &[String],
    seed: u64,
) -> PyResult<String> {
    let asked = sizes(asked).map_err(raised)?;
    let mut results = Vec::new();
    for which in policies {
        results.extend(match which {
            Which::Named(name) => interruptible(py, |stop| named(trace, name, &asked, seed, stop))?,
            Which::Own(factory) => own(trace, factory, &asked)?,
        });
    }
    let (requests, unique) = (trace.dense.ids.len() as u64, trace.dense.unique.into());
    let report = ReplayReport { trace: trace.name.clone(), requests, unique, results };
    Ok(render::json(&report))
}

fn named(
    trace: &Loaded,
    name: &str,
    sizes: &[Capacity],
    seed: u64,
    stop: &Stop,
) -> Result<Vec<ReplayResult>, Error> {
    let requests = trace.dense.ids.len() as u64;
    let pages = |size: &Capacity| size.pages(trace.dense.unique);
    if let Ok(policy) = name.parse::<Policy>() {
        let run = |size: &Capacity| Run { policy, capacity: pages(size), seed };
        let runs: Vec<Run> = sizes.iter().map(run).collect();
        let misses = replay_whole(&trace.dense, &runs).misses;
        let result = |(run, misses): (&Run, u64)| {
            ReplayResult::new(run.policy, run.capacity, misses, requests)
        };
        return Ok(runs.iter().zip(misses).map(result).collect());
    }
    let variant = known_variant(name)?;
    let request = ReplayRequest {
        file: trace.file.clone(),
        format: trace.format,
        view: trace.view,
        policies: Vec::new(),
        sizes: Vec::new(),
        seed,
    };
    let result = |size: &Capacity| {
        go_on(stop)?;
        trace_machine::replay(&request, &variant, pages(size)).map_err(Error::Request)
    };
    sizes.iter().map(result).collect()
}

fn known_variant(name: &str) -> Result<Variant, Error> {
    let variant = Variant::parse(name).map_err(Error::Request)?;
    let variants = mglru_lab::policy::variants();
    let flat = Policy::ALL.iter().map(|policy| policy.name());
    let known: Vec<&str> = flat.chain(variants.iter().map(|(name, _)| name.as_str())).collect();
    match variants.iter().any(|(name, _)| *name == variant.base) {
        true => Ok(variant),
        false => {
            let near = mglru_error::did_you_mean(&variant.base, known);
            Err(Error::Request(format!("unknown policy {name}{near}")))
        }
    }
}

fn own(
    trace: &Loaded,
    factory: &Bound<'_, PyAny>,
    sizes: &[Capacity],
) -> PyResult<Vec<ReplayResult>> {
    let (name, requests) = (policy::name(factory), trace.dense.ids.len() as u64);
    let result = |size: &Capacity| {
        let size_pages = size.pages(trace.dense.unique);
        let misses = policy::misses(factory, &trace.dense, size_pages)?;
        Ok(ReplayResult::new(&name, size_pages, misses, requests))
    };
    sizes.iter().map(result).collect()
}
