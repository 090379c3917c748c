//! The seam above the policy: what runs a workload and yields counters. A backend first reads a
//! point of the plan and refuses what it cannot honour; only then does anything run.

mod failure;
pub mod kernel;
pub mod mock;
mod pager;
pub mod sim;
pub(crate) mod workload;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use mglru_guest::order::{Steps, Until};
use mglru_guest::report::Step;
use mglru_sim::spec::GroupSpec;
use serde_json::Value as Json;
use toml::{Table, Value};

pub use failure::Failure;

use crate::explain::Life;
use crate::fit::Fit;
use crate::record::{Group, Metrics};
use crate::variant::Variant;
use crate::watch::Watcher;
use mglru_error::{Error, KeyError};

/// Holds the sections of a plan at one point of its sweep: every value is a single one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sections {
    /// Holds `[machine]`, keys as the backend defines them.
    pub machine: Table,
    /// Holds `[groups."/name"]`, in plan order, already scaled.
    pub groups: IndexMap<String, GroupSpec>,
    /// Holds `[workload]`.
    pub workload: Table,
    /// Holds `[reclaim]`: keys of the core for all variants.
    pub reclaim: Table,
    /// Holds `[kernel]`: the booted machine, which only the kernel backend knows.
    pub kernel: Table,
    /// Holds the plan's scale, which the backend applies to machine and workload.
    pub scale: f64,
}

/// Runs plans.
pub trait Backend: Sync {
    /// Name in records and on the command line.
    fn name(&self) -> &'static str;

    /// Named variants, each with a line of description.
    fn variants(&self) -> Vec<(String, String)>;

    /// Keys a variant may set, each with a line of description.
    fn switches(&self) -> Vec<(String, String)>;

    /// Workload kinds, each with a line of description.
    fn workloads(&self) -> Vec<(String, String)>;

    /// Checks everything about a run and readies it. Must be cheap: it is called for every
    /// variant and point before the first run starts.
    ///
    /// # Errors
    /// Names the key the backend cannot honour.
    fn prepare(&self, sections: &Sections, variant: &Variant) -> Result<Arc<dyn Job>, KeyError>;

    /// Variants that run when neither the command line nor a plan written for this backend names
    /// any; empty: those of the plan.
    fn own_variants(&self) -> Vec<Variant> {
        Vec::new()
    }

    /// Tells which variants of a plan this backend can carry out; the others are said to be left
    /// out.
    fn fit(&self, variant: &Variant) -> Fit {
        let _ = variant;
        Fit::AsIs
    }

    /// Runs to make at a time by default: one per CPU where time is virtual, one where
    /// runs would take each other's time.
    fn default_jobs(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Names the variant of a model that runs beside this backend, under the
    /// same name.
    fn modelled(&self, variant: &Variant) -> Variant {
        variant.clone()
    }
}

/// Describes a run without its seed, valid by construction.
pub trait Job: Send + Sync {
    /// Switches in force, as recorded.
    fn switches(&self) -> IndexMap<String, Json>;

    /// Runs to the end.
    ///
    /// # Errors
    /// Returns what went wrong while running, such as a trace that cannot be read.
    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String>;

    /// The same run where it can be stopped; none: this backend cannot.
    fn stepping(&self) -> Option<&dyn Stepping> {
        None
    }

    /// As [`Job::run`], for a backend that keeps files of its own: their paths begin with `files`,
    /// which no other run has.
    ///
    /// # Errors
    /// As [`Job::run`], and whether a machine failed or what it was given.
    fn run_keeping(&self, seed: u64, progress: Progress, files: &Path) -> Result<Outcome, Failure> {
        let _ = files;
        Ok(self.run(seed, progress)?)
    }

    /// Tells whether [`Job::run_traced`] can be asked for.
    fn can_trace(&self) -> bool {
        false
    }

    /// Runs, and reports the life of a page; `run` names the run.
    ///
    /// # Errors
    /// When there is no such page, or the backend does not see single pages.
    fn explain(&self, seed: u64, run: String, page: &str) -> Result<Life, String> {
        let _ = (seed, run, page);
        Err("only the model knows the life of a page (--backend sim)".to_string())
    }

    /// Tells whether [`Job::run_watched`] can be asked for.
    fn can_watch(&self) -> bool {
        false
    }

    /// Runs as [`Job::run_keeping`] does, driven by a watcher; none: the watcher left before the
    /// end.
    ///
    /// # Errors
    /// As [`Job::run_keeping`], or that the run cannot be watched.
    fn run_watched(
        &self,
        seed: u64,
        files: &Path,
        watcher: &mut dyn Watcher,
    ) -> Result<Option<Outcome>, Failure> {
        let _ = (seed, files, watcher);
        Err(Failure::Input("--watch: this run cannot be watched".to_string()))
    }

    /// Tells whether the machine is another while it is traced: a record made then is kept apart.
    fn is_changed_by_tracing(&self) -> bool {
        false
    }

    /// As [`Job::run_keeping`], and writes the run's trace events to a file. The outcome is the
    /// same, unless the machine is changed by it.
    ///
    /// # Errors
    /// As [`Job::run_keeping`], and names a file that cannot be written.
    fn run_traced(
        &self,
        seed: u64,
        progress: Progress,
        files: &Path,
        events: &Path,
    ) -> Result<Outcome, Failure> {
        let _ = (seed, progress, files, events);
        Err(Failure::Input("--trace-events: this backend has none".to_string()))
    }
}

/// Describes a run that can be stopped after any access, to read the machine's state.
pub trait Stepping: Send + Sync {
    /// Runs to the end and returns what was seen at each stop, in order. What the guest's kernel
    /// says goes to the file `console`.
    ///
    /// # Errors
    /// Says why the guest gave no result.
    fn step(&self, seed: u64, steps: Steps, console: &Path) -> Result<Vec<Step>, String>;

    /// Runs until the moment has come, and returns what was seen then. A machine that a debugger is
    /// to see waits for it at a port, and until it leaves.
    ///
    /// # Errors
    /// Says why the guest gave no result, or that its work was over before.
    fn stop(
        &self,
        seed: u64,
        until: &Until,
        console: &Path,
        debugger: Option<(u16, Announce)>,
    ) -> Result<Step, String>;

    /// Names fields of `mglru diverge` that it cannot report.
    fn lacks(&self) -> &'static [&'static str] {
        &[]
    }

    /// Tells whether it can end at a moment, with [`Stepping::stop`].
    fn can_stop(&self) -> bool {
        true
    }
}

/// Announces a machine that stands still for a debugger.
pub type Announce<'a> = &'a mut dyn FnMut(&Standing) -> Result<(), String>;

/// Describes a machine that stands still and waits for a debugger.
pub struct Standing<'a> {
    /// Holds the state at its moment.
    pub at: &'a Step,
    /// Holds the address where the debugger finds it.
    pub address: SocketAddr,
    /// Holds its kernel's release.
    pub kernel: &'a str,
    /// Holds the address where the kernel's code begins; 0: unknown.
    pub text: u64,
}

/// Receives the share of a run that is done, 0 to 1.
pub type Progress<'a> = &'a (dyn Fn(f64) + Sync);

/// Holds the measurements of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Holds operations, rates, latency and virtual time.
    pub metrics: Metrics,
    /// Holds kernel counters that the backend knows; one that it cannot know is absent.
    pub counters: IndexMap<String, u64>,
    /// Holds per group its `memory.stat`.
    pub groups: IndexMap<String, Group>,
    /// Holds figures that only this workload has.
    pub custom: IndexMap<String, Json>,
}

/// Lists names that `--backend` takes, with what each needs.
pub const NAMES: [&str; 3] = ["sim", "pager", "kernel"];

/// Returns the backend of that name.
///
/// # Errors
/// When there is none, or this build does not contain it.
pub fn by_name(name: &str) -> Result<&'static dyn Backend, Error> {
    match name {
        "sim" => Ok(&sim::Sim),
        "mock" => Ok(&mock::Mock),
        "kernel" => Ok(&kernel::Kernel),
        "pager" => Ok(&pager::Pager),
        _ => Err(Error::Request(format!(
            "--backend {name}: unknown{}",
            mglru_error::did_you_mean(name, NAMES)
        ))),
    }
}

/// A word of a table, for telling kinds apart.
fn word<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Value::as_str)
}
