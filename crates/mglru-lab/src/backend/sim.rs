//! The simulated machine as a backend: sections to [`MachineSpec`], workload and configuration;
//! what the machine says to an [`Outcome`].

mod measured;
mod workload;

use std::sync::Arc;

use indexmap::IndexMap;
use mglru::Config;
use mglru_sim::MachineSpec;
use mglru_sim::spec::{GroupSpec, Size, SpecError};
use mglru_workload::WorkloadSpec;
use serde_json::Value as Json;
use toml::{Table, Value};

use self::workload::Source;
use super::{Backend, Job, Outcome, Progress, Sections};
use crate::error::KeyError;
use crate::limits::Limits;
use crate::policy;
use crate::typed;
use crate::variant::Variant;

/// Seed for looking at a workload's layout, which does not depend on it.
const ANY_SEED: u64 = 1;

/// The simulated machine.
pub struct Sim;

struct SimJob {
    machine: MachineSpec,
    config: Config,
    source: Source,
    scale: f64,
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn variants(&self) -> Vec<(String, String)> {
        policy::variants()
    }

    fn switches(&self) -> Vec<(String, String)> {
        policy::keys()
    }

    fn workloads(&self) -> Vec<(String, String)> {
        let kinds = WorkloadSpec::kinds().iter().chain(&[workload::TRACE_KIND]);
        kinds.map(|(name, about)| (name.to_string(), about.to_string())).collect()
    }

    fn prepare(&self, sections: &Sections, variant: &Variant) -> Result<Arc<dyn Job>, KeyError> {
        let config = policy::config(&sections.reclaim, variant)?;
        let machine = machine(&sections.machine, sections.scale, &sections.groups)?;
        let source = Source::parse(&sections.workload)?;
        let layout = source.build(ANY_SEED, sections.scale)?.layout();
        let known: Vec<&str> = layout.groups.iter().map(|g| g.name.as_str()).collect();
        if let Some(name) = sections.groups.keys().find(|name| !known.contains(&name.as_str())) {
            let problem = format!("the workload has no such group (it has: {})", known.join(", "));
            return Err(KeyError::key(format!("groups.{name}"), problem));
        }
        Ok(Arc::new(SimJob { machine, config, source, scale: sections.scale }))
    }
}

impl Job for SimJob {
    fn switches(&self) -> IndexMap<String, Json> {
        policy::switches(&self.config)
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        let workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let total = workload.total_ops().unwrap_or(u64::MAX).max(1) as f64;
        let report = |done: u64| progress(done as f64 / total);
        let (machine, config) = (&self.machine, self.config.clone());
        let found = mglru_sim::run(machine, config, workload, seed, Some(&report));
        let found = found.map_err(|e| e.to_string())?;
        self.source.check_complete(&found)?;
        measured::outcome(&found)
    }
}

/// Reads, scales and checks the machine.
fn machine(
    table: &Table,
    scale: f64,
    groups: &IndexMap<String, Limits>,
) -> Result<MachineSpec, KeyError> {
    if table.contains_key("groups") {
        let problem = "limits stand in [groups.\"/name\"], outside [machine]";
        return Err(KeyError::key("machine.groups", problem));
    }
    let spec: MachineSpec = typed::from_table(table.clone()).map_err(|e| e.within("machine"))?;
    let mut spec = spec.scaled(scale);
    spec.groups = groups.iter().map(|(name, limits)| (name.clone(), group(limits))).collect();
    spec.check().map_err(spec_error)
}

fn group(limits: &Limits) -> GroupSpec {
    GroupSpec {
        min: Size(limits.min),
        low: Size(limits.low),
        high: Size(limits.high),
        max: Size(limits.max),
        swap_max: Size(limits.swap_max),
        swappiness: limits.swappiness,
    }
}

fn spec_error(error: SpecError) -> KeyError {
    let (key, got, problem) = match error {
        SpecError::OutOfRange { key, got, min, max } => {
            (key, got, format!("must be from {min} to {max}"))
        }
        SpecError::Contradiction { key, got, problem } => (key, got, problem),
    };
    let key = if key.starts_with("groups") { key } else { format!("machine.{key}") };
    KeyError::value(key, got, problem)
}

/// A word of a table, for telling kinds apart.
fn word<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
