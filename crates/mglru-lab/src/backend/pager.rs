//! Real memory as a backend: the workload's tasks are threads, its regions and files are arenas of
//! one pager, its groups the pager's groups. Time is the clock's, so records are not repeatable
//! to the byte; counters are those of the same policy core.
//!
//! | file | does |
//! |---|---|
//! | `mapped` | opens pager, groups, files and regions |
//! | `task` | carries a task's operations out |
//! | `workers` | threads, barriers, marks, the end |
//! | `looks` | looks at the pager on the way, for curves |
//! | `counters` | turns the pager's statistics into counters of a record |

mod counters;
mod looks;
mod mapped;
mod task;
mod workers;

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use mglru::Config;
use mglru_sim::MachineSpec;
use mglru_workload::WorkloadSpec;
use serde_json::Value as Json;

use self::workers::Workers;
use super::sim::{self, measured};
use super::workload::Source;
use super::{Backend, Failure, Job, Outcome, Progress, Sections};
use crate::policy;
use crate::samples::Series;
use crate::variant::Variant;
use mglru_error::KeyError;

/// Names in records the way in which the policy learns of used pages.
const YOUNG_BITS: &str = "entries present since their run was last zapped (PAGEMAP_SCAN)";

/// Makes runs on real memory.
pub struct Pager;

struct PagerJob {
    machine: MachineSpec,
    config: Config,
    source: Source,
    scale: f64,
}

impl Backend for Pager {
    fn name(&self) -> &'static str {
        "pager"
    }

    fn variants(&self) -> Vec<(String, String)> {
        policy::variants()
    }

    fn switches(&self) -> Vec<(String, String)> {
        policy::keys()
    }

    fn workloads(&self) -> Vec<(String, String)> {
        let kinds = WorkloadSpec::kinds().iter();
        kinds.map(|(name, about)| (name.to_string(), about.to_string())).collect()
    }

    fn default_jobs(&self) -> usize {
        1
    }

    fn prepare(&self, sections: &Sections, variant: &Variant) -> Result<Arc<dyn Job>, KeyError> {
        super::kernel::check_section(&sections.kernel)?;
        let config = policy::config(&sections.reclaim, variant)?;
        let source = Source::parse(&sections.workload)?;
        let groups = sim::groups(&sections.groups, &source)?;
        let machine = sim::machine(&sections.machine, sections.scale, &groups)?;
        sim::check_groups(&groups, &source, sections.scale)?;
        if !machine.filesystem.is_order0() {
            let problem = "the pager keeps single pages, order0";
            return Err(KeyError::key("machine.filesystem", problem));
        }
        if matches!(source.spec(), WorkloadSpec::Several(_)) {
            let problem = "the pager runs one workload at a time";
            return Err(KeyError::value("workload.kind", "several", problem));
        }
        Ok(Arc::new(PagerJob { machine, config, source, scale: sections.scale }))
    }
}

impl Job for PagerJob {
    fn switches(&self) -> IndexMap<String, Json> {
        policy::switches(&self.config)
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        Ok(self.measured(seed, progress, &std::env::temp_dir())?.0)
    }

    /// Files of the workload have no names; they lie in the folder that records lie in.
    fn run_keeping(&self, seed: u64, progress: Progress, files: &Path) -> Result<Outcome, Failure> {
        let folder = files.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
        let (outcome, series) = self.measured(seed, progress, folder)?;
        series.write(files).map_err(|e| Failure::Machine(e.to_string()))?;
        Ok(outcome)
    }
}

impl PagerJob {
    /// Runs with the workload's files in a folder, and looks at the pager on the way.
    fn measured(
        &self,
        seed: u64,
        progress: Progress,
        folder: &Path,
    ) -> Result<(Outcome, Series), String> {
        let workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let edges = workload.latency_edges_ns();
        let workers = Workers::new(&self.machine, self.config.clone(), workload, folder)?;
        let (found, series) = workers.run(progress)?;
        self.source.check_complete(&found)?;
        let mut outcome = measured::outcome(&found, &edges)?;
        outcome.custom.insert("young_bits".to_string(), Json::from(YOUNG_BITS));
        Ok((outcome, series))
    }
}

#[cfg(test)]
mod tests;
