//! The simulated machine as a backend: sections to [`MachineSpec`], workload and configuration;
//! what the machine says to an [`Outcome`].

mod bound;
pub(super) mod measured;
mod steps;

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use mglru_sim::custom::Rules;
use mglru_sim::samples::Sample;
use mglru_sim::spec::{GroupSpec, Size, SpecError};
use mglru_sim::tracing::Sink;
use mglru_sim::{Live, MachineSpec};
use mglru_workload::op::Knob;
use mglru_workload::{Layout, WorkloadSpec};
use serde_json::Value as Json;
use toml::Table;

use self::bound::Bound;
use super::workload::Source;
use super::{Backend, Failure, Job, Outcome, Progress, Sections, Stepping};
use crate::custom;
use crate::explain::{self, Life};
use crate::policy;
use crate::samples::Series;
use crate::trace_events::TraceFile;
use crate::typed;
use crate::variant::Variant;
use crate::watch::Watcher;
use mglru_error::KeyError;

/// Seed for looking at a workload's layout, which does not depend on it.
const ANY_SEED: u64 = 1;

/// Makes runs on the simulated machine.
pub struct Sim;

struct BoundJob {
    bound: Bound,
    source: Source,
    scale: f64,
}

struct SimJob {
    machine: MachineSpec,
    rules: Rules,
    source: Source,
    scale: f64,
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn variants(&self) -> Vec<(String, String)> {
        policy::variants().into_iter().chain(bound::variants()).chain(custom::variants()).collect()
    }

    fn switches(&self) -> Vec<(String, String)> {
        policy::keys()
    }

    fn workloads(&self) -> Vec<(String, String)> {
        WorkloadSpec::kinds()
            .iter()
            .map(|(name, about)| (name.to_string(), about.to_string()))
            .collect()
    }

    fn prepare(&self, sections: &Sections, variant: &Variant) -> Result<Arc<dyn Job>, KeyError> {
        super::kernel::check_section(&sections.kernel)?;
        let rules = custom::rules(&sections.reclaim, &bound::policed(variant))?;
        let source = Source::parse(&sections.workload)?;
        let groups = groups(&sections.groups, &source)?;
        let machine = machine(&sections.machine, sections.scale, &groups)?;
        let layout = check_groups(&groups, &source, sections.scale)?;
        let scale = sections.scale;
        if let Some(bound) = Bound::of(variant, &machine, &layout)? {
            return Ok(Arc::new(BoundJob { bound, source, scale }));
        }
        Ok(Arc::new(SimJob { machine, rules, source, scale }))
    }
}

impl Job for SimJob {
    fn switches(&self) -> IndexMap<String, Json> {
        policy::switches(&self.rules.config)
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        Ok(self.sampled(seed, progress, None)?.0)
    }

    fn run_keeping(&self, seed: u64, progress: Progress, files: &Path) -> Result<Outcome, Failure> {
        self.kept(seed, progress, files, None)
    }

    fn can_trace(&self) -> bool {
        true
    }

    fn explain(&self, seed: u64, run: String, page: &str) -> Result<Life, String> {
        let workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let layout = workload.layout();
        let id = explain::find(page, &layout)?;
        let (machine, rules) = (&self.machine, self.rules.clone());
        let found = mglru_sim::run_explained(machine, rules, workload, seed, id);
        let (_, moments) = found.map_err(|e| e.to_string())?;
        if moments.is_empty() {
            explain::check(id, &layout)?;
        }
        Ok(Life::new(run, page, &moments, &layout))
    }

    fn run_traced(
        &self,
        seed: u64,
        progress: Progress,
        files: &Path,
        events: &Path,
    ) -> Result<Outcome, Failure> {
        let events = TraceFile::create(events).map_err(|e| e.to_string())?;
        self.kept(seed, progress, files, Some(Box::new(events)))
    }

    fn can_watch(&self) -> bool {
        true
    }

    fn run_watched(
        &self,
        seed: u64,
        files: &Path,
        watcher: &mut dyn Watcher,
    ) -> Result<Option<Outcome>, Failure> {
        let workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let (total, edges) = (workload.total_ops(), workload.latency_edges_ns());
        let live = Live::new(&self.machine, self.rules.clone(), workload, seed);
        let mut live = live.map_err(|e| e.to_string())?;
        if !watcher.drive(&mut live, total)? {
            return Ok(None);
        }
        let (outcome, series) = self.results(&live.finish(), &edges)?;
        series.write(files).map_err(|e| Failure::Machine(e.to_string()))?;
        Ok(Some(outcome))
    }

    fn stepping(&self) -> Option<&dyn Stepping> {
        Some(self)
    }
}

impl SimJob {
    /// Runs, keeps what was seen on the way in a file, and sends events to a sink.
    fn kept(
        &self,
        seed: u64,
        progress: Progress,
        files: &Path,
        sink: Option<Box<dyn Sink>>,
    ) -> Result<Outcome, Failure> {
        let (outcome, series) = self.sampled(seed, progress, sink)?;
        series.write(files).map_err(|e| Failure::Machine(e.to_string()))?;
        Ok(outcome)
    }

    /// Runs to the end and looks at the machine on the way.
    fn sampled(
        &self,
        seed: u64,
        progress: Progress,
        sink: Option<Box<dyn Sink>>,
    ) -> Result<(Outcome, Series), String> {
        let workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let total = workload.total_ops().unwrap_or(u64::MAX).max(1) as f64;
        let edges = workload.latency_edges_ns();
        let report = |done: u64| progress(done as f64 / total);
        let (machine, rules) = (&self.machine, self.rules.clone());
        let report: mglru_sim::Progress = &report;
        let found = match sink {
            None => mglru_sim::run_sampled(machine, rules, workload, seed, Some(report)),
            Some(sink) => mglru_sim::run_traced(machine, rules, workload, seed, Some(report), sink),
        };
        self.results(&found.map_err(|e| e.to_string())?, &edges)
    }

    /// Turns what a machine came to into results and curves.
    fn results(
        &self,
        (found, samples): &(mglru_sim::Outcome, Vec<Sample>),
        edges: &[u64],
    ) -> Result<(Outcome, Series), String> {
        self.source.check_complete(found)?;
        let mut outcome = measured::outcome(found, edges)?;
        if self.source.is_trace() && self.machine.readahead_kb == 0 {
            measured::add_misses(&mut outcome);
        }
        let groups: Vec<String> = found.groups.iter().map(|group| group.name.clone()).collect();
        Ok((outcome, Series::new(samples, &groups)))
    }
}

impl Job for BoundJob {
    fn switches(&self) -> IndexMap<String, Json> {
        IndexMap::new()
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        let mut workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let found = self.bound.run(&mut *workload, seed, progress)?;
        self.source.check_complete(&found)?;
        let mut outcome = measured::timeless(&found)?;
        if self.source.is_trace() {
            measured::add_misses(&mut outcome);
        }
        Ok(outcome)
    }
}

/// Every group with limits is one of the workload's; its layout.
pub(super) fn check_groups(
    groups: &IndexMap<String, GroupSpec>,
    source: &Source,
    scale: f64,
) -> Result<Layout, KeyError> {
    let layout = source.build(ANY_SEED, scale)?.layout();
    let known: Vec<&str> = layout.groups.iter().map(|g| g.name.as_str()).collect();
    if let Some(name) = groups.keys().find(|name| !known.contains(&name.as_str())) {
        let problem = format!("the workload has no such group (it has: {})", known.join(", "));
        return Err(KeyError::key(format!("groups.{name}"), problem));
    }
    Ok(layout)
}

/// Adds to the plan's limits what the workload itself sets; the plan's own go first.
pub(super) fn groups(
    planned: &IndexMap<String, GroupSpec>,
    source: &Source,
) -> Result<IndexMap<String, GroupSpec>, KeyError> {
    let mut groups = planned.clone();
    if let Some((name, limit)) = source.limit() {
        let group = groups.entry(name.to_string()).or_default();
        if group.max != Size::MAX {
            let problem = format!("contradicts groups.{name}.memory.max; give one of them");
            return Err(KeyError::key("workload.cache", problem));
        }
        group.max = limit;
    }
    for (path, knob, value) in source.settings()? {
        add_setting(groups.entry(path).or_default(), knob, value);
    }
    Ok(groups)
}

fn add_setting(group: &mut GroupSpec, knob: Knob, value: u64) {
    let plain = GroupSpec::default();
    let set = |size: &mut Size, plain: Size| {
        if *size == plain {
            *size = Size(value);
        }
    };
    match knob {
        Knob::MemoryMin => set(&mut group.min, plain.min),
        Knob::MemoryLow => set(&mut group.low, plain.low),
        Knob::MemoryHigh => set(&mut group.high, plain.high),
        Knob::MemoryMax => set(&mut group.max, plain.max),
        Knob::MemorySwapMax => set(&mut group.swap_max, plain.swap_max),
        Knob::Swappiness => {
            group.swappiness.get_or_insert(value as u8);
        }
    }
}

/// Reads, scales and checks the machine.
pub(super) fn machine(
    table: &Table,
    scale: f64,
    groups: &IndexMap<String, GroupSpec>,
) -> Result<MachineSpec, KeyError> {
    if table.contains_key("groups") {
        let problem = "limits stand in [groups.\"/name\"], outside [machine]";
        return Err(KeyError::key("machine.groups", problem));
    }
    let spec: MachineSpec = typed::from_table(table.clone()).map_err(|e| e.within("machine"))?;
    let mut spec = spec.scaled(scale);
    spec.groups = groups.iter().map(|(name, group)| (name.clone(), group.clone())).collect();
    spec.check().map_err(|e| spec_error(e, scale))
}

/// Names the key; sizes are those of the scaled machine.
fn spec_error(error: SpecError, scale: f64) -> KeyError {
    let (key, got, problem) = match error {
        SpecError::OutOfRange { key, got, min, max } => {
            (key, got, format!("must be from {min} to {max}"))
        }
        SpecError::Contradiction { key, got, problem } => (key, got, problem),
    };
    let key = if key.starts_with("groups") { key } else { format!("machine.{key}") };
    let at =
        if scale == 1.0 { String::new() } else { format!("; sizes are those at scale {scale}") };
    KeyError::value(key, got, format!("{problem}{at}"))
}

#[cfg(test)]
mod on_kernels;
#[cfg(test)]
mod tests;
