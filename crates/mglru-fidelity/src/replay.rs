//! Measured jobs as an experiment of the lab: each is prepared once per seed and LRU, whatever
//! stands in its way is found before anything runs.

mod machine;

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use mglru::Config;
use mglru_sim::MachineSpec;
use mglru_sim::outcome::GroupOutcome;
use mglru_workload::job::{GROUP_NAME, Job as JobSpec, JobWorkload};
use serde_json::Value as Json;
use toml::{Table, Value};

use self::machine::machine;
pub(super) use self::machine::{CHARGE_BATCH, STAT_FLUSH_MS};
use super::generations;
use super::paced::Paced;
use super::program::Program;
use super::truth::Run;
use mglru_lab::backend::kernel::version;
use mglru_lab::backend::{self, Backend, Job, Outcome, Progress};
use mglru_lab::fit::Notes;
use mglru_lab::plan::Plan;
use mglru_lab::policy;
use mglru_lab::record::Metrics;
use mglru_lab::spec::{self, Experiment, RunSpec};
use mglru_lab::variant::Variant;

/// Hash of the model's own source: records of another model are not these.
const MODEL: &str = env!("MGLRU_MODEL");
/// Switches the multi-gen LRU of a variant off.
const CLASSIC: &str = "+lru=classic";

/// Holds all measured runs of the same kernel, job, seed and LRU: repetitions of one thing.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Names the version of the kernel.
    pub version: String,
    /// Names the job: `experiment.variant`.
    pub job: String,
    /// Holds the seed.
    pub seed: u64,
    /// Says that the multi-gen LRU was on.
    pub mglru: bool,
    /// Holds the repetitions.
    pub runs: Vec<Run>,
}

impl Measured {
    /// Makes the variant of the policy that replays it.
    ///
    /// # Errors
    /// When the model has no rules of that kernel.
    pub fn policy(&self) -> Result<Variant, String> {
        let rules = version::rules(&self.version)?;
        Variant::parse(&format!("{rules}{}", if self.mglru { "" } else { CLASSIC }))
    }

    /// Returns the program that was run when it was no job.
    pub fn program(&self) -> Option<Result<Program, String>> {
        let run = &self.runs[0];
        run.spec.is_empty().then(|| Program::of(run))
    }

    /// Returns `7.2.12 experiment.variant on seed 1`, for messages.
    pub fn title(&self) -> String {
        format!("{} {} seed {}", self.point(), on_off(self.mglru), self.seed)
    }

    /// `7.2.12 experiment.variant`: one variant replays several versions.
    fn point(&self) -> String {
        format!("{} {}", self.version, self.job)
    }
}

/// Returns `on` or `off`.
pub fn on_off(mglru: bool) -> &'static str {
    if mglru { "on" } else { "off" }
}

/// Puts repetitions together, in the order of versions, jobs, LRUs and seeds.
pub fn measured(runs: Vec<Run>) -> Vec<Measured> {
    let mut all: BTreeMap<_, Vec<Run>> = BTreeMap::new();
    for run in runs {
        let version = run.version().to_string();
        let key = (version::numbers(&version), version, run.job(), run.mglru == 0, run.seed);
        all.entry(key).or_default().push(run);
    }
    let all = all.into_iter().map(|((_, version, job, classic, seed), runs)| {
        let mglru = !classic;
        Measured { version, job, seed, mglru, runs }
    });
    all.collect()
}

/// A job readied for the model.
#[derive(Debug)]
struct Replay {
    machine: MachineSpec,
    config: Config,
    job: JobSpec,
    pace: Vec<u64>,
}

impl Job for Replay {
    fn switches(&self) -> IndexMap<String, Json> {
        policy::switches(&self.config)
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        let workload = Paced::new(JobWorkload::new(self.job.clone()), self.pace.clone());
        let total = self.job.ops().max(1) as f64;
        let report = |done: u64| progress(done as f64 / total);
        let (config, workload) = (self.config.clone(), Box::new(workload));
        let found = mglru_sim::run(&self.machine, config, workload, seed, Some(&report));
        let found = found.map_err(|e| e.to_string())?;
        if found.accesses != self.job.ops() {
            let (did, of) = (found.accesses, self.job.ops());
            return Err(format!("the task was killed after {did} of {of} accesses"));
        }
        let virtual_s = found.virtual_ns as f64 / 1e9;
        let ops_per_s = found.accesses as f64 / virtual_s.max(1e-9);
        let counters = found.counters.iter().map(|(name, n)| (name.to_string(), *n)).collect();
        Ok(Outcome {
            metrics: Metrics { ops: found.accesses, ops_per_s, latency_us: None, virtual_s },
            counters,
            custom: [(generations::TEXTS.to_string(), texts(&found).into())].into(),
            ..Outcome::default()
        })
    }
}

/// The job's group's generations after each step.
fn texts(found: &mglru_sim::Outcome) -> Vec<Json> {
    let ends = found.phases.iter().skip(1).map(|phase| &phase.snapshot.groups);
    let of = |groups: &Vec<GroupOutcome>| {
        let group = groups.iter().find(|group| group.name == GROUP_NAME);
        Json::from(group.map_or("", |group| &group.lru_gen))
    };
    ends.chain([&found.groups]).map(of).collect()
}

/// Holds the jobs that can be replayed, and those that cannot, by reason.
pub struct Prepared {
    /// Holds the runs of the model.
    pub experiment: Experiment,
    /// Holds the measurement with which each of them is compared, in the same order.
    pub jobs: Vec<Measured>,
    /// Lists measurements left out, each with its reason.
    pub left_out: Vec<(Measured, String)>,
}

/// Readies every measured job.
pub fn prepare(all: Vec<Measured>) -> Prepared {
    let (mut jobs, mut runs, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut text = format!("control\nmodel {MODEL}\n");
    for measured in all {
        match ready(&measured) {
            Ok((variant, job, says)) => {
                let title = measured.title();
                let id = spec::hex(&format!("{} {title}", variant.name), 6);
                text += &format!("{} {title} {says}\n", variant.name);
                runs.push(run_spec(&measured, id, variant, job));
                jobs.push(measured);
            }
            Err(reason) => left_out.push((measured, reason)),
        }
    }
    let hash = spec::hex(&text, 8);
    let backend: &dyn Backend = &backend::sim::Sim;
    let (name, default_jobs) = (backend.name(), backend.default_jobs());
    let notes = Notes::default();
    let plan = plan(&runs);
    let given = Vec::new();
    let experiment = Experiment { plan, backend: name, default_jobs, hash, runs, notes, given };
    Prepared { experiment, jobs, left_out }
}

/// Prepares a job for the model: its variant, the job, and everything about it as text.
fn ready(measured: &Measured) -> Result<(Variant, Arc<dyn Job>, String), String> {
    let variant = measured.policy()?;
    let Some(program) = measured.program() else {
        let replay = replay(measured, &variant)?;
        let says = format!("{replay:?}");
        return Ok((variant, Arc::new(replay), says));
    };
    let program = program?;
    let run = &measured.runs[0];
    if program.measured(run).is_empty() {
        return Err("the record says nothing of what came of it".to_string());
    }
    let sections = program.paced_sections(run, program.pace(&measured.runs))?;
    let sim = backend::by_name("sim").map_err(|e| e.to_string())?;
    let job = sim.prepare(&sections, &variant).map_err(|e| e.to_string())?;
    Ok((variant, job, format!("{sections:?}")))
}

fn run_spec(measured: &Measured, id: String, variant: Variant, job: Arc<dyn Job>) -> RunSpec {
    let (variant, point) = (Arc::new(variant), measured.point().into());
    let values = Arc::from([]);
    RunSpec { id, variant, seed: measured.seed, point, values, job, events: None }
}

/// The experiment's plan: all it needs is a name, and variants; it must have one even of no run.
fn plan(runs: &[RunSpec]) -> Plan {
    let named = runs.iter().map(|run| run.variant.name.as_str());
    let none = runs.is_empty().then_some("before");
    let variants: IndexSet<&str> = named.chain(none).collect();
    let text = format!(
        "name = \"control\"\ntitle = \"measured jobs replayed in the model\"\n\
         variants = {:?}\n",
        Vec::from_iter(variants)
    );
    Plan::parse("control", &text, &[]).expect("a plan of ours")
}

fn replay(measured: &Measured, variant: &Variant) -> Result<Replay, String> {
    let run = &measured.runs[0];
    let job = JobSpec::parse(&run.spec).map_err(|e| format!("its job: {e}"))?;
    let steps = job.steps.len();
    if measured.runs.iter().any(|run| run.steps.len() != steps) {
        return Err(format!("its job has {steps} steps, a record has another number"));
    }
    let config = policy::config(&Table::new(), variant).map_err(|e| e.to_string())?;
    let mut replay = Replay { machine: machine(run, &job), config, job, pace: pace(measured) };
    for line in run.pre.lines().filter(|line| !line.trim().is_empty()) {
        set(&mut replay, variant, line)?;
    }
    replay.machine = replay.machine.check().map_err(|e| e.to_string())?;
    Ok(replay)
}

/// Nanoseconds per operation of each step: the mean of the repetitions.
fn pace(measured: &Measured) -> Vec<u64> {
    let per_op = |step: usize| {
        let of = |run: &Run| run.steps[step].sec * 1e9 / run.steps[step].ops.max(1) as f64;
        let sum: f64 = measured.runs.iter().map(of).sum();
        (sum / measured.runs.len() as f64) as u64
    };
    (0..measured.runs[0].steps.len()).map(per_op).collect()
}

/// One line of a record's `pre`: `echo VALUE > FILE`.
fn set(replay: &mut Replay, variant: &Variant, line: &str) -> Result<(), String> {
    let unknown = || format!("`{}` is no setting of the model", line.trim());
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["echo", value, ">", file] = words[..] else { return Err(unknown()) };
    let number: u32 = value.parse().map_err(|_| unknown())?;
    let machine = &mut replay.machine;
    match file {
        "/proc/sys/vm/swappiness" => machine.swappiness = number.min(200) as u8,
        "/proc/sys/vm/page-cluster" => machine.page_cluster = number,
        "/sys/kernel/debug/fault_around_bytes" => machine.fault_around_kb = number / 1024,
        "/sys/kernel/mm/lru_gen/enabled" => return enabled(&mut replay.config, variant, number),
        "/sys/kernel/mm/lru_gen/min_ttl_ms" => replay.config.min_ttl_ms = u64::from(number),
        _ if file.starts_with("/sys/block/") && file.ends_with("/queue/read_ahead_kb") => {
            machine.readahead_kb = number;
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Bits of `lru_gen/enabled`: the core, walks of page tables, accessed bits above the leaves.
fn enabled(config: &mut Config, variant: &Variant, bits: u32) -> Result<(), String> {
    if !config.is_mglru() {
        return Ok(());
    }
    let key = |key: &str, value: bool| (key.to_string(), Value::Boolean(value));
    let mut keys = Table::from_iter([key("nonleaf_young", bits & 4 != 0)]);
    if bits & 2 == 0 {
        keys.insert("young_source".to_string(), Value::String("rmap".to_string()));
    }
    *config = policy::config(&keys, variant).map_err(|e| e.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests;
