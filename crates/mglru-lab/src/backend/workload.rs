//! Workloads a plan can name: those of the workload crate. A trace's group may get its limit from
//! the workload itself (`workload.cache`), as a share of what the trace touches.

use mglru_sim::Outcome;
use mglru_sim::spec::{PAGE_SIZE, Size};
use mglru_workload::job::Job;
use mglru_workload::op::Knob;
use mglru_workload::several::Part;
use mglru_workload::spec::TraceSource;
use mglru_workload::{Workload, WorkloadError, WorkloadSpec};
use toml::{Table, Value};

use super::word;
use crate::typed;
use mglru_error::{KeyError, did_you_mean};
use mglru_traces::tools::{BadCapacity, Capacity};

/// Seed for looking at a job, whose statements do not depend on it.
const ANY_SEED: u64 = 1;

/// Where operations come from.
#[derive(Clone)]
pub(crate) struct Source {
    spec: WorkloadSpec,
    /// Facts of a trace, which is read once from end to end.
    trace: Option<Known>,
}

/// Holds the facts that reading a trace gave.
#[derive(Clone)]
struct Known {
    requests: u64,
    /// Pages the group may hold, where the plan says so.
    cache: Option<u64>,
}

impl Source {
    /// Reads `[workload]`.
    pub(crate) fn parse(table: &Table) -> Result<Self, KeyError> {
        match word(table, "kind") {
            None if !table.contains_key("kind") => {
                let kinds = known_kinds().join(", ");
                Err(KeyError::key("workload.kind", format!("is missing (known: {kinds})")))
            }
            Some(kind) if !known_kinds().contains(&kind) => {
                let near = did_you_mean(kind, known_kinds());
                Err(KeyError::value("workload.kind", kind, format!("unknown{near}")))
            }
            _ => Self::known(table.clone()).map_err(|e| e.within("workload")),
        }
    }

    fn known(mut table: Table) -> Result<Self, KeyError> {
        let is_trace = word(&table, "kind") == Some("trace");
        let cache = if is_trace { table.remove("cache") } else { None };
        let cache = cache.as_ref().map(capacity).transpose()?;
        let spec = generated(&table)?;
        let trace = match &spec {
            WorkloadSpec::Trace(source) => Some(Known::read(source, cache)?),
            _ => None,
        };
        Ok(Self { spec, trace })
    }

    /// Returns the specification that was read.
    pub(crate) fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// The workload of one run.
    pub(crate) fn build(&self, seed: u64, scale: f64) -> Result<Box<dyn Workload>, KeyError> {
        self.spec.build(seed, scale).map_err(workload_error)
    }

    /// The group's name and limit, for a workload that sets it itself (`workload.cache`).
    pub(crate) fn limit(&self) -> Option<(&str, Size)> {
        let WorkloadSpec::Trace(source) = &self.spec else { return None };
        let pages = self.trace.as_ref()?.cache?;
        Some((&source.group, Size(pages.saturating_mul(PAGE_SIZE))))
    }

    /// Returns what jobs set of their groups before they start, by the groups' paths.
    pub(crate) fn settings(&self) -> Result<Vec<(String, Knob, u64)>, KeyError> {
        let jobs = self.jobs()?;
        let of = |(path, knob, value): (&str, Knob, u64)| (path.to_string(), knob, value);
        Ok(jobs.iter().flat_map(|job| job.settings_by_path().map(of)).collect())
    }

    /// The jobs that are run.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, KeyError> {
        let key = |name: &String| format!("workload.parts.{name}");
        let parts: Vec<(String, &WorkloadSpec)> = match &self.spec {
            WorkloadSpec::Several(several) => {
                several.parts.iter().map(|(name, part)| (key(name), part.spec())).collect()
            }
            one => vec![("workload".to_string(), one)],
        };
        let job = |(key, spec): (String, &WorkloadSpec)| match spec {
            WorkloadSpec::Job(source) => {
                Some(source.job(ANY_SEED).map_err(|e| KeyError::key(key, e)))
            }
            _ => None,
        };
        parts.into_iter().filter_map(job).collect()
    }

    /// Pages read are misses: one task asks for one page at a time.
    pub(crate) fn is_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// A trace that ended early is worth nothing: it changed, or its group was too small to run.
    pub(crate) fn check_complete(&self, found: &Outcome) -> Result<(), String> {
        let (WorkloadSpec::Trace(source), Some(known)) = (&self.spec, &self.trace) else {
            return Ok(());
        };
        if found.ops == known.requests {
            return Ok(());
        }
        let path = source.path.display();
        Err(match found.counter("oom_kill") {
            Some(1..) => {
                let served = format!("request {} of {}", found.ops, known.requests);
                format!("{path}: the group is too small, its task was killed at {served}")
            }
            _ => format!("{path}: changed while it was replayed"),
        })
    }
}

impl Known {
    fn read(source: &TraceSource, cache: Option<Capacity>) -> Result<Self, KeyError> {
        let opened = source.open().map_err(|error| match error {
            WorkloadError::Trace(e) if e.doubts_format() => {
                KeyError::key("path", format!("{e}; workload.format = NAME chooses"))
            }
            WorkloadError::Trace(e) => KeyError::key("path", e),
            WorkloadError::TraceFormat(e) => {
                KeyError::value("format", source.format.as_deref().unwrap_or_default(), e)
            }
            other => KeyError::key("", other),
        })?;
        let summary = opened.summary();
        Ok(Self { requests: summary.requests, cache: cache.map(|c| c.pages(summary.unique)) })
    }
}

/// serde forgets which key it was in a table tagged by its kind: each key is then tried alone.
fn generated(table: &Table) -> Result<WorkloadSpec, KeyError> {
    let parts = table.get("parts").and_then(Value::as_table);
    if let Some(parts) = parts.filter(|_| word(table, "kind") == Some("several")) {
        parts.iter().try_for_each(|(name, part)| one_of_several(name, part))?;
    }
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

/// Reads a part by itself, so that its error can name its own key.
fn one_of_several(name: &str, part: &Value) -> Result<(), KeyError> {
    let key = format!("parts.{name}");
    let table = part.as_table().ok_or_else(|| KeyError::value(&key, part, "expected a table"))?;
    let kind = table.get("kind").ok_or_else(|| {
        KeyError::key(
            format!("{key}.kind"),
            format!("is missing (known: {})", known_kinds().join(", ")),
        )
    })?;
    match kind.as_str() {
        Some("several") => {
            return Err(KeyError::value(format!("{key}.kind"), kind, "parts have no parts"));
        }
        Some(known) if known_kinds().contains(&known) => {}
        other => {
            let near = did_you_mean(other.unwrap_or_default(), known_kinds());
            return Err(KeyError::value(format!("{key}.kind"), kind, format!("unknown{near}")));
        }
    }
    check_beginning(table).map_err(|e| e.within(&key))?;
    let mut own = table.clone();
    Part::KEYS.iter().for_each(|key| _ = own.remove(*key));
    generated(&own).map(drop).map_err(|e| e.within(&key))
}

/// Checks the keys that a part has besides those of its kind.
fn check_beginning(part: &Table) -> Result<(), KeyError> {
    let delay = part.get("delay_ms");
    if let Some(delay) = delay.filter(|ms| ms.as_integer().is_none_or(|ms| ms < 0)) {
        return Err(KeyError::value("delay_ms", delay, "expected a whole number from 0 on"));
    }
    let background = part.get("background");
    if let Some(background) = background.filter(|value| value.as_bool().is_none()) {
        return Err(KeyError::value("background", background, "expected true or false"));
    }
    Ok(())
}

fn known_kinds() -> Vec<&'static str> {
    WorkloadSpec::kinds().iter().map(|(name, _)| *name).collect()
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
        WorkloadError::Part { name, source } => {
            let mut inner = workload_error(*source);
            if let Some(rest) = inner.key.strip_prefix("workload") {
                inner.key = format!("workload.parts.{name}{rest}");
            }
            inner
        }
        WorkloadError::OutOfRange { key, got, min, max } => {
            KeyError::value(in_plan(key), got, format!("must be from {min} to {max}"))
        }
        WorkloadError::Conflict { key, reason } => KeyError::key(in_plan(key), reason),
        other => KeyError::key("workload", other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_part_is_checked_by_its_own_keys() {
        let refusal = |keys: &str| {
            let part = format!("kind = \"touch\"\npages = 9\noperations = 9\n{keys}");
            let part = Value::Table(part.parse().unwrap());
            one_of_several("web", &part).map_err(|e| e.to_string())
        };
        assert_eq!(refusal("delay_ms = 5\nbackground = true"), Ok(()));
        let delay = "parts.web.delay_ms = -1: expected a whole number from 0 on";
        assert_eq!(refusal("delay_ms = -1"), Err(delay.to_string()));
        let background = "parts.web.background = 7: expected true or false";
        assert_eq!(refusal("background = 7"), Err(background.to_string()));
    }
}
