//! Chooses what runs in the guest, and writes it into the order: groups, files and work.

use std::path::PathBuf;

use indexmap::IndexMap;
use mglru_guest::Order;
use mglru_guest::order::{Work, Workload as Carried};
use mglru_sim::spec::GroupSpec;
use mglru_workload::Layout;
use serde_json::Value as Json;

use super::carried::{self, JobExtras};
use super::order;
use super::program::ProgramSpec;
use super::spec::Switches;
use crate::backend::workload::Source;
use crate::backend::{Sections, sim, word};
use mglru_error::KeyError;

/// Seed for looking at a workload's layout, which does not depend on it.
const ANY_SEED: u64 = 1;

/// Chooses the program in the guest.
pub(super) enum Task {
    /// Runs a workload of the plan, with its layout.
    Workload { spec: Json, layout: Layout, job: JobExtras },
    /// Runs a program of the host.
    Program(ProgramSpec),
}

/// A task with its groups' limits and the files it needs in the guest.
pub(super) type Bound = (Task, IndexMap<String, GroupSpec>, Vec<(PathBuf, String)>);

pub(super) fn task(sections: &Sections) -> Result<Bound, KeyError> {
    if word(&sections.workload, "kind") == Some("program") {
        let program = ProgramSpec::read(&sections.workload, sections.scale)?;
        return Ok((Task::Program(program), sections.groups.clone(), Vec::new()));
    }
    let source = Source::parse(&sections.workload)?;
    let limits = sim::groups(&sections.groups, &source)?;
    let layout = source.build(ANY_SEED, sections.scale)?.layout();
    let (table, packed) = carried::carried(&sections.workload)?;
    let spec = serde_json::to_value(&table).map_err(|e| KeyError::key("workload", e))?;
    let job = carried::extras(&source)?;
    Ok((Task::Workload { spec, layout, job }, limits, packed))
}

impl Task {
    /// Groups, files and work of the order.
    pub(super) fn add_to(
        &self,
        order: &mut Order,
        limits: &IndexMap<String, GroupSpec>,
        switches: &Switches,
    ) -> Result<(), KeyError> {
        let layout = self.layout();
        let set = match self {
            Self::Workload { job, .. } => &job.settings[..],
            Self::Program(_) => &[][..],
        };
        carried::check_leaves(&layout)?;
        let known: Vec<&str> = layout.groups.iter().map(|group| group.name.as_str()).collect();
        if let Some(name) = limits.keys().find(|name| !known.contains(&name.as_str())) {
            let problem = format!("the workload has no such group (it has: {})", known.join(", "));
            return Err(KeyError::key(format!("groups.{name}"), problem));
        }
        let (groups, swappiness) = order::groups(&layout, limits, set)?;
        order.groups = groups;
        order.files = layout.files.iter().map(|file| file.bytes).collect();
        if let (Some(value), None) = (swappiness, switches.swappiness) {
            let all = order.settings.iter_mut();
            all.filter(|setting| setting.path.ends_with("/swappiness"))
                .for_each(|setting| setting.value = value.to_string());
        }
        order.work = self.work(ANY_SEED, 1.0);
        Ok(())
    }

    pub(super) fn layout(&self) -> Layout {
        match self {
            Self::Workload { layout, .. } => layout.clone(),
            Self::Program(program) => program.layout(),
        }
    }

    pub(super) fn work(&self, seed: u64, scale: f64) -> Work {
        match self {
            Self::Program(program) => Work::Program(program.order(seed)),
            Self::Workload { spec, layout, job } => Work::Workload(Carried {
                spec: spec.clone(),
                seed,
                scale,
                pin: job.pin,
                tlb_flush_every: job.tlb_flush_every,
                barrier_sets: (0..layout.tasks.len() as u32)
                    .map(|task| layout.barrier_set(task))
                    .collect(),
                workers: order::workers(layout),
            }),
        }
    }
}
