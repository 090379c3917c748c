//! Workloads a plan can name: those of the workload crate, and traces.

use std::path::PathBuf;

use mglru_sim::Outcome;
use mglru_workload::trace::{Access, Format, TraceSpec, TraceWorkload, View};
use mglru_workload::{Workload, WorkloadError, WorkloadSpec};
use serde::Deserialize;
use toml::Table;

use super::word;
use crate::error::{KeyError, did_you_mean};
use crate::typed;

/// The kind this module adds, for lists.
pub(super) const TRACE_KIND: (&str, &str) = ("trace", "any trace, page by page, in one group");

/// Where operations come from.
pub(super) enum Source {
    Generated(WorkloadSpec),
    Trace(TraceSpec),
}

/// `[workload]` with `kind = "trace"`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceKeys {
    #[allow(dead_code)]
    kind: String,
    path: PathBuf,
    format: Option<String>,
    #[serde(default)]
    mmap: bool,
    #[serde(default = "yes")]
    dense: bool,
    #[serde(default = "group")]
    group: String,
}

impl Source {
    /// Reads `[workload]`.
    pub(super) fn parse(table: &Table) -> Result<Self, KeyError> {
        match word(table, "kind") {
            Some("trace") => trace(table).map(Self::Trace).map_err(|e| e.within("workload")),
            None if !table.contains_key("kind") => {
                let kinds = known_kinds().join(", ");
                Err(KeyError::key("workload.kind", format!("is missing (known: {kinds})")))
            }
            Some(kind) if !known_kinds().contains(&kind) => {
                let near = did_you_mean(kind, known_kinds());
                Err(KeyError::value("workload.kind", kind, format!("unknown{near}")))
            }
            _ => typed::from_table(table.clone())
                .map(Self::Generated)
                .map_err(|e| e.within("workload")),
        }
    }

    /// The workload of one run.
    pub(super) fn build(&self, seed: u64, scale: f64) -> Result<Box<dyn Workload>, KeyError> {
        match self {
            Self::Generated(spec) => spec.build(seed, scale).map_err(workload_error),
            Self::Trace(_) if scale != 1.0 => {
                let problem = "a trace is exact and runs at scale 1 only";
                Err(KeyError::value("scale", scale, problem))
            }
            Self::Trace(spec) => match TraceWorkload::open(spec.clone()) {
                Ok(workload) => Ok(Box::new(workload)),
                Err(e) => Err(KeyError::key("workload.path", e)),
            },
        }
    }

    /// A trace that changed under the run ends early: the run is worth nothing then.
    pub(super) fn check_complete(&self, found: &Outcome) -> Result<(), String> {
        let Self::Trace(spec) = self else { return Ok(()) };
        let workload = TraceWorkload::open(spec.clone()).map_err(|e| e.to_string())?;
        match workload.total_ops() == Some(found.ops) {
            true => Ok(()),
            false => Err(format!("{}: changed while it was replayed", spec.path.display())),
        }
    }
}

fn known_kinds() -> Vec<&'static str> {
    WorkloadSpec::kinds().iter().chain(&[TRACE_KIND]).map(|(name, _)| *name).collect()
}

fn trace(table: &Table) -> Result<TraceSpec, KeyError> {
    let keys: TraceKeys = typed::from_table(table.clone())?;
    let format =
        |name: String| name.parse::<Format>().map_err(|e| KeyError::value("format", name, e));
    Ok(TraceSpec {
        path: keys.path,
        format: keys.format.map(format).transpose()?,
        view: View::Pages,
        access: if keys.mmap { Access::Mmap } else { Access::Pread },
        dense: keys.dense,
        group: keys.group,
    })
}

/// The workload crate names keys by kind (`fio.jobs`), a plan by section (`workload.jobs`).
fn workload_error(error: WorkloadError) -> KeyError {
    let in_plan = |key: &str| match key {
        "scale" => key.to_string(),
        _ => format!("workload.{}", key.split_once('.').map_or(key, |(_, rest)| rest)),
    };
    match error {
        WorkloadError::OutOfRange { key, got, min, max } => {
            KeyError::value(in_plan(key), got, format!("must be from {min} to {max}"))
        }
        WorkloadError::Conflict { key, reason } => KeyError::key(in_plan(key), reason),
        other => KeyError::key("workload", other),
    }
}

fn yes() -> bool {
    true
}

fn group() -> String {
    "/trace".to_string()
}
