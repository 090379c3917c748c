//! Workloads a plan can name: those of the workload crate, and traces.

use std::path::PathBuf;

use mglru_sim::Outcome;
use mglru_sim::spec::{PAGE_SIZE, Size};
use mglru_workload::trace::{Access, Format, TraceSpec, TraceWorkload, View};
use mglru_workload::{Workload, WorkloadError, WorkloadSpec};
use serde::Deserialize;
use toml::{Table, Value};

use super::word;
use crate::error::{KeyError, did_you_mean};
use crate::reads_only::ReadsOnly;
use crate::trace_cmd::{BadCapacity, Capacity};
use crate::typed;

/// Where operations come from.
#[derive(Clone)]
pub(super) enum Source {
    Generated(WorkloadSpec),
    Trace(TraceSource),
}

/// A trace that was read once from end to end.
#[derive(Clone)]
pub(super) struct TraceSource {
    spec: TraceSpec,
    writes: bool,
    requests: u64,
    /// Pages the group may hold, where the plan says so.
    cache: Option<u64>,
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
    #[serde(default = "yes")]
    writes: bool,
    cache: Option<Value>,
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
            _ => generated(table).map(Self::Generated).map_err(|e| e.within("workload")),
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
            Self::Trace(source) => source.build(),
        }
    }

    /// The group's name and limit, for a workload that sets it itself (`workload.cache`).
    pub(super) fn limit(&self) -> Option<(&str, Size)> {
        let Self::Trace(source) = self else { return None };
        let bytes = source.cache?.saturating_mul(PAGE_SIZE);
        Some((&source.spec.group, Size(bytes)))
    }

    /// Pages read are misses: one task asks for one page at a time.
    pub(super) fn is_trace(&self) -> bool {
        matches!(self, Self::Trace(_))
    }

    /// A trace that ended early is worth nothing: it changed, or its group was too small to run.
    pub(super) fn check_complete(&self, found: &Outcome) -> Result<(), String> {
        let Self::Trace(source) = self else { return Ok(()) };
        if found.ops == source.requests {
            return Ok(());
        }
        let path = source.spec.path.display();
        Err(match found.counter("oom_kill") {
            Some(1..) => {
                let served = format!("request {} of {}", found.ops, source.requests);
                format!("{path}: the group is too small, its task was killed at {served}")
            }
            _ => format!("{path}: changed while it was replayed"),
        })
    }
}

impl TraceSource {
    fn open(spec: TraceSpec, writes: bool, cache: Option<Capacity>) -> Result<Self, KeyError> {
        let opened = TraceWorkload::open(spec.clone());
        let summary = opened.map_err(|e| KeyError::key("path", e))?.summary();
        let cache = cache.map(|cache| cache.pages(summary.unique));
        Ok(Self { spec, writes, requests: summary.requests, cache })
    }

    fn build(&self) -> Result<Box<dyn Workload>, KeyError> {
        let opened = TraceWorkload::open(self.spec.clone());
        let workload = opened.map_err(|e| KeyError::key("workload.path", e))?;
        Ok(match self.writes {
            true => Box::new(workload),
            false => Box::new(ReadsOnly(workload)),
        })
    }
}

/// serde forgets which key it was in a table told apart by its kind: each key is then tried alone.
fn generated(table: &Table) -> Result<WorkloadSpec, KeyError> {
    typed::from_table(table.clone()).map_err(|whole: KeyError| {
        let kind = || ("kind".to_string(), table["kind"].clone());
        let alone = |(key, value): (&String, &Value)| {
            let table = Table::from_iter([kind(), (key.clone(), value.clone())]);
            let read: Result<WorkloadSpec, KeyError> = typed::from_table(table);
            read.err().map(|e| KeyError::value(key, value, e.problem))
        };
        match whole.key.is_empty() {
            true => table.iter().find_map(alone).unwrap_or(whole),
            false => whole,
        }
    })
}

fn known_kinds() -> Vec<&'static str> {
    WorkloadSpec::kinds().iter().map(|(name, _)| *name).collect()
}

fn trace(table: &Table) -> Result<TraceSource, KeyError> {
    let keys: TraceKeys = typed::from_table(table.clone())?;
    let format =
        |name: String| name.parse::<Format>().map_err(|e| KeyError::value("format", name, e));
    let cache = keys.cache.as_ref().map(capacity).transpose()?;
    let spec = TraceSpec {
        path: keys.path,
        format: keys.format.map(format).transpose()?,
        view: View::Pages,
        access: if keys.mmap { Access::Mmap } else { Access::Pread },
        dense: keys.dense,
        group: keys.group,
    };
    TraceSource::open(spec, keys.writes, cache)
}

/// A whole number is pages, as on the command line.
fn capacity(value: &Value) -> Result<Capacity, KeyError> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
    text.parse().map_err(|e: BadCapacity| KeyError::value("cache", text, e.expected()))
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
