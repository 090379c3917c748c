//! Workloads of any kinds side by side, in groups of their own or shared ones: each keeps its
//! tasks, files, memory, classes and phases; groups of the same path are one.

mod merge;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::WorkloadError;
use crate::op::{Layout, Op, TaskId, Workload};
use crate::rng::{Rng, splitmix};
use crate::spec::WorkloadSpec;
use merge::{Merged, Numbers};

/// Most parts that stand side by side.
const MAX_PARTS: usize = 64;
const NS_PER_MS: u64 = 1_000_000;
/// A day: longer delays are mistakes.
const MAX_DELAY_MS: u64 = 86_400_000;

/// Describes workloads that run side by side.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeveralParams {
    /// Lists workloads by name: `[workload.parts.NAME]`, each with its `kind` and that kind's keys.
    pub parts: BTreeMap<String, Part>,
}

/// Describes one workload among several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Part {
    /// Delays the beginning of its tasks by so much, ms.
    #[serde(default)]
    pub delay_ms: u64,
    /// Says that the run does not wait for it.
    #[serde(default)]
    pub background: bool,
    #[serde(flatten)]
    spec: WorkloadSpec,
}

impl Part {
    /// Lists the keys that a part has besides those of its kind.
    pub const KEYS: [&str; 2] = ["delay_ms", "background"];

    /// Returns the description of the part's workload.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if matches!(self.spec, WorkloadSpec::Several(_)) {
            let reason = "parts have no parts".to_owned();
            return Err(WorkloadError::Conflict { key: "kind", reason });
        }
        crate::error::in_range("delay_ms", self.delay_ms, 0, MAX_DELAY_MS)?;
        self.spec.check()
    }
}

impl SeveralParams {
    /// Checks each part, and the parts as a whole.
    ///
    /// # Errors
    /// Fails if a part does, with the part's name, or if the parts as a whole are at fault.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let conflict = |reason: &str| {
            Err(WorkloadError::Conflict { key: "several.parts", reason: reason.to_owned() })
        };
        match self.parts.len() {
            0 => return conflict("there is none"),
            n if n > MAX_PARTS => return conflict("there are more than 64"),
            _ => {}
        }
        if self.parts.values().all(|part| part.background) {
            return conflict("all are in the background: the run waits for nobody");
        }
        let check = |(name, part): (&String, &Part)| part.check().map_err(|e| e.of_part(name));
        self.parts.iter().try_for_each(check)
    }

    pub(crate) fn build(&self, seed: u64, scale: f64) -> Result<SeveralWorkload, WorkloadError> {
        let mut parts = Vec::new();
        for (name, part) in &self.parts {
            let built = part.spec.build(seed_of(seed, name), scale);
            parts.push((name.as_str(), part, built.map_err(|e| e.of_part(name))?));
        }
        SeveralWorkload::new(parts)
    }
}

/// A part's own seed, so that two parts of one kind do not draw the same numbers.
fn seed_of(seed: u64, name: &str) -> u64 {
    let lane = name.bytes().fold(0, |hash, byte| splitmix(hash ^ u64::from(byte)));
    Rng::new(seed, lane).next_u64()
}

/// Runs workloads side by side as one.
pub struct SeveralWorkload {
    parts: Vec<Running>,
    layout: Layout,
    /// The part of each task, and its number there.
    tasks: Vec<(usize, TaskId)>,
    /// A part's tasks that have not begun.
    fetched: Vec<Op>,
}

struct Running {
    name: String,
    workload: Box<dyn Workload>,
    numbers: Numbers,
    delay_ns: u64,
    /// Tasks that have begun.
    begun: Vec<bool>,
}

impl SeveralWorkload {
    fn new(parts: Vec<(&str, &Part, Box<dyn Workload>)>) -> Result<Self, WorkloadError> {
        let mut merged = Merged::default();
        let layouts: Vec<Layout> = parts.iter().map(|(_, _, built)| built.layout()).collect();
        merged.groups_of(&layouts);
        let mut several = Self {
            parts: Vec::new(),
            layout: Layout::default(),
            tasks: Vec::new(),
            fetched: vec![],
        };
        for ((name, part, workload), layout) in parts.into_iter().zip(layouts) {
            let at = several.parts.len();
            several.tasks.extend((0..layout.tasks.len() as TaskId).map(|task| (at, task)));
            let begun = vec![false; layout.tasks.len()];
            let numbers = merged.add(name, layout, part.background);
            let numbers = numbers.map_err(|e| e.of_part(name))?;
            let (name, delay_ns) = (name.to_owned(), part.delay_ms * NS_PER_MS);
            several.parts.push(Running { name, workload, numbers, delay_ns, begun });
        }
        several.layout = merged.layout;
        Ok(several)
    }
}

impl Running {
    /// The delay before a task's first operation.
    fn delay(&mut self, task: TaskId) -> Option<Op> {
        let first = !std::mem::replace(&mut self.begun[task as usize], true);
        (first && self.delay_ns > 0).then_some(Op::Think { ns: self.delay_ns })
    }
}

impl Workload for SeveralWorkload {
    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    fn next(&mut self, task: TaskId) -> Op {
        let (part, local) = self.tasks[task as usize];
        let part = &mut self.parts[part];
        match part.delay(local) {
            Some(delay) => delay,
            None => part.numbers.in_all(part.workload.next(local)),
        }
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        let (part, local) = self.tasks[task as usize];
        let part = &mut self.parts[part];
        out.extend(part.delay(local));
        part.workload.fill(local, &mut self.fetched);
        out.extend(self.fetched.drain(..).map(|op| part.numbers.in_all(op)));
    }

    fn string_hash(&self) -> u64 {
        let hashes = self.parts.iter().map(|part| part.workload.string_hash());
        hashes.fold(0, |all, hash| splitmix(all ^ hash))
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let of = |part: &Running| {
            let figures = part.workload.figures().into_iter();
            figures.map(|(name, value)| (format!("{}.{name}", part.name), value)).collect()
        };
        self.parts.iter().flat_map(of as fn(&Running) -> Vec<(String, f64)>).collect()
    }

    fn total_ops(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.workload.total_ops()).sum()
    }
}

#[cfg(test)]
mod tests;
