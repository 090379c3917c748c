//! From a plan as typed to runs that can only succeed or fail by running: sweep, scale, limits and
//! the backend's own checks happen here, all before the first run.

mod hash;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::{Table, Value};

use self::hash::hash;
pub use self::hash::{hex, run_id};
use crate::backend::{Backend, Job, Outcome, Sections};
use crate::dotted::{self, Assignment};
use crate::fit::Notes;
use crate::limits;
use crate::plan::{Brief, Plan};
use crate::record::{POINT, Record, SCHEMA, VERSION};
use crate::sweep;
use crate::trace_events;
use crate::variant::Variant;
use mglru_error::{Error, KeyError};

/// Holds the changes that the command line makes to a plan.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names the variants to run; empty: the plan's.
    pub variants: Vec<String>,
    /// Lists variants that run in place of the plan's and of `variants`; empty: as those say.
    pub given: Vec<Variant>,
    /// Names the variant to compare with.
    pub base: Option<String>,
    /// Sets the number of seeds, from 1.
    pub seeds: Option<u64>,
    /// Sets the scale.
    pub scale: Option<f64>,
    /// Says that the plan's quick part is enough of what is not named above.
    pub is_quick: bool,
    /// Holds notes about variants that do not run.
    pub notes: Notes,
}

impl Selection {
    /// Takes what nobody asked for from a part of the plan.
    #[must_use]
    pub fn or(mut self, part: &Brief) -> Self {
        if self.variants.is_empty() && self.given.is_empty() {
            self.variants.clone_from(&part.variants);
        }
        self.seeds = self.seeds.or(part.seeds);
        self.scale = self.scale.or(part.scale);
        self
    }
}

/// Holds a plan resolved against a backend.
pub struct Experiment {
    /// Holds the plan, with the selection applied.
    pub plan: Plan,
    /// Names the backend.
    pub backend: &'static str,
    /// Sets how many runs are made at a time by default.
    pub default_jobs: usize,
    /// Holds the hash of everything that can change a record, 16 hex digits.
    pub hash: String,
    /// Lists all runs: variant × seed × point.
    pub runs: Vec<RunSpec>,
    /// Lists variants of the plan that do not run as they stand.
    pub notes: Notes,
    /// Lists variants that stand in place of the plan's; empty: the plan's.
    pub given: Vec<Variant>,
}

/// Describes one run, valid by construction.
#[derive(Clone)]
pub struct RunSpec {
    /// Holds the stable name of the run within all plans, 12 hex digits.
    pub id: String,
    /// Holds the variant.
    pub variant: Arc<Variant>,
    /// Holds the workload's seed.
    pub seed: u64,
    /// Names the sweep point, empty without a sweep.
    pub point: Arc<str>,
    /// Holds values of the sweep's axes there.
    pub values: Arc<[Assignment]>,
    /// Holds the job that the backend readied.
    pub job: Arc<dyn Job>,
    /// Names the file for its trace events.
    pub events: Option<PathBuf>,
}

impl Experiment {
    /// Resolves a plan: every run it will make has been checked when this returns.
    ///
    /// # Errors
    /// Names the file and key a run cannot honour.
    pub fn new(
        mut plan: Plan,
        selection: &Selection,
        backend: &'static dyn Backend,
    ) -> Result<Self, Error> {
        let file = plan.file.clone();
        let hash = settle(&mut plan, selection, backend)?;
        select(&mut plan, selection)?;
        let runs = runs(&plan, &hash, backend).map_err(|e| e.in_file(&file))?;
        Ok(Self::of(plan, selection, backend, hash, runs))
    }

    /// Resolves a single run of a plan, by its variant, its seed and the values of its axes.
    ///
    /// # Errors
    /// Names the file and key that the run cannot honour.
    pub fn single(
        mut plan: Plan,
        selection: &Selection,
        backend: &'static dyn Backend,
        (variant, seed, values): (&Variant, u64, &[Assignment]),
    ) -> Result<Self, Error> {
        let file = plan.file.clone();
        let hash = settle(&mut plan, selection, backend)?;
        plan.variants = vec![variant.clone()];
        plan.seeds = vec![seed];
        let runs = match sweep::at(&plan.sections, values.to_vec()) {
            Some(point) => runs_at(&plan, &hash, backend, vec![point]),
            None => Err(KeyError::key("point", "the plan has no such key")),
        };
        let runs = runs.map_err(|e| e.in_file(&file))?;
        Ok(Self::of(plan, selection, backend, hash, runs))
    }

    fn of(
        plan: Plan,
        selection: &Selection,
        backend: &'static dyn Backend,
        hash: String,
        runs: Vec<RunSpec>,
    ) -> Self {
        Self {
            plan,
            backend: backend.name(),
            default_jobs: backend.default_jobs(),
            hash,
            runs,
            notes: selection.notes.clone(),
            given: selection.given.clone(),
        }
    }

    /// Returns the variants that a selection of the plan runs.
    ///
    /// # Errors
    /// A name that is no variant.
    pub fn variants(plan: &Plan, selection: &Selection) -> Result<Vec<Variant>, Error> {
        let mut plan = plan.clone();
        if !selection.given.is_empty() {
            return Ok(selection.given.clone());
        }
        select(&mut plan, &Selection { base: None, ..selection.clone() })?;
        Ok(plan.variants)
    }

    /// Makes the record of a finished run.
    ///
    /// # Errors
    /// When a figure is not finite.
    pub fn record(&self, run: &RunSpec, outcome: Outcome) -> Result<Record, String> {
        if !outcome.metrics.all_finite() {
            return Err("a metric is not a finite number".to_string());
        }
        let mut custom = outcome.custom;
        if !run.point.is_empty() {
            custom.insert(POINT.to_string(), run.point.as_ref().into());
        }
        self.notes.add_to(&mut custom);
        Ok(Record {
            schema: SCHEMA,
            plan: self.plan.name.clone(),
            plan_hash: self.hash.clone(),
            mglru: VERSION.to_string(),
            backend: self.backend.to_string(),
            variant: run.variant.name.clone(),
            switches: run.job.switches(),
            seed: run.seed,
            scale: self.plan.scale,
            metrics: outcome.metrics,
            counters: outcome.counters,
            groups: outcome.groups,
            custom,
        })
    }
}

impl Experiment {
    /// Has every run that can write its trace events: one to this file, of several each to one with
    /// the run's name in its name. Bounds, which are no policy of a machine, have none. Returns the
    /// files.
    ///
    /// # Errors
    /// When no run can.
    pub fn trace(&mut self, file: &Path, apart: bool) -> Result<Vec<PathBuf>, Error> {
        let backend = self.backend;
        let can = |run: &&mut RunSpec| run.job.can_trace();
        let mut runs: Vec<&mut RunSpec> = self.runs.iter_mut().filter(can).collect();
        if runs.is_empty() {
            let plan = &self.plan.file;
            let why = format!("no run of the backend {backend} has any");
            return Err(Error::Request(format!("{plan}: --trace-events: {why}")));
        }
        let apart = apart || runs.len() > 1;
        for run in &mut runs {
            run.events = Some(match apart {
                false => file.to_path_buf(),
                true => trace_events::file_of(file, &run.name(backend)),
            });
        }
        Ok(runs.iter().filter_map(|run| run.events.clone()).collect())
    }
}

impl Experiment {
    /// Tells whether its runs are traced, and are others for it.
    pub fn is_changed_by_tracing(&self) -> bool {
        self.runs.iter().any(|run| run.events.is_some() && run.job.is_changed_by_tracing())
    }
}

impl RunSpec {
    /// `sim-after-3`, with the point of a sweep, for names of files.
    fn name(&self, backend: &str) -> String {
        let point = if self.point.is_empty() { "" } else { "-" };
        format!("{backend}-{}-{}{point}{}", self.variant.name, self.seed, self.point)
    }

    /// Returns `after seed 3 (workload.theta=0.9)`, for messages.
    pub fn title(&self) -> String {
        let point =
            if self.point.is_empty() { String::new() } else { format!(" ({})", self.point) };
        format!("{} seed {}{point}", self.variant.name, self.seed)
    }
}

/// The plan as it is on the backend, at the scale and with the variants asked for; its hash.
fn settle(plan: &mut Plan, selection: &Selection, backend: &dyn Backend) -> Result<String, Error> {
    *plan = plan.clone().on(backend.name());
    plan.scale = selection.scale.unwrap_or(plan.scale);
    if !selection.given.is_empty() {
        plan.variants.clone_from(&selection.given);
        plan.base.clone_from(&plan.variants[0].name);
    }
    hash(plan, backend.name()).map_err(|e| e.in_file(&plan.file))
}

fn select(plan: &mut Plan, selection: &Selection) -> Result<(), Error> {
    if let Some(base) = &selection.base {
        plan.base.clone_from(base);
    }
    if let Some(seeds) = selection.seeds {
        plan.seeds = (1..=seeds).collect();
    }
    if selection.variants.is_empty() || !selection.given.is_empty() {
        return known_base(plan, selection);
    }
    let pick = |name: &String| match plan.variants.iter().find(|v| v.name == *name) {
        Some(variant) => Ok(variant.clone()),
        None => Variant::parse(name).map_err(|e| Error::Request(format!("--variant {name}: {e}"))),
    };
    // A variant named twice would run twice, and tell nothing more.
    let once: indexmap::IndexSet<&String> = selection.variants.iter().collect();
    plan.variants = once.into_iter().map(pick).collect::<Result<_, _>>()?;
    known_base(plan, selection)
}

/// A base asked for by name must be among the variants that run.
fn known_base(plan: &Plan, selection: &Selection) -> Result<(), Error> {
    let names: Vec<&str> = plan.variants.iter().map(|v| v.name.as_str()).collect();
    match &selection.base {
        Some(base) if !names.contains(&base.as_str()) => Err(Error::Request(format!(
            "--base {base}: does not run (variants: {})",
            names.join(", ")
        ))),
        _ => Ok(()),
    }
}

fn runs(plan: &Plan, hash: &str, backend: &dyn Backend) -> Result<Vec<RunSpec>, KeyError> {
    let first = &plan.variants[0];
    let accepts = |table: &Table| backend.prepare(&resolve(table, plan)?, first).map(|_| ());
    let points = sweep::expand(&plan.sections, &accepts)?;
    runs_at(plan, hash, backend, points)
}

fn runs_at(
    plan: &Plan,
    hash: &str,
    backend: &dyn Backend,
    points: Vec<sweep::Point>,
) -> Result<Vec<RunSpec>, KeyError> {
    let named = |point: sweep::Point| {
        let (name, values) = (Arc::from(point.name.as_str()), Arc::from(point.values));
        (name, values, point.sections)
    };
    let points: Vec<(Arc<str>, Arc<[Assignment]>, Table)> = points.into_iter().map(named).collect();
    let mut runs = Vec::new();
    for variant in plan.variants.iter().cloned().map(Arc::new) {
        let jobs: Vec<Arc<dyn Job>> = points
            .iter()
            .map(|(_, _, table)| {
                backend.prepare(&resolve(&changed(table, &variant)?, plan)?, &variant)
            })
            .collect::<Result<_, _>>()?;
        for &seed in &plan.seeds {
            for ((point, values, _), job) in points.iter().zip(&jobs) {
                let id = run_id(hash, &variant.name, seed, point);
                let (variant, job) = (variant.clone(), job.clone());
                let (point, values) = (point.clone(), values.clone());
                runs.push(RunSpec { id, variant, seed, point, values, job, events: None });
            }
        }
    }
    Ok(runs)
}

/// One point's tables with what a variant changes in them.
fn changed(table: &Table, variant: &Variant) -> Result<Table, KeyError> {
    let mut table = table.clone();
    for set in &variant.with {
        match dotted::get_mut(&mut table, &set.key) {
            Some(value) => *value = set.value.clone(),
            None => add(&mut table, set)?,
        }
    }
    Ok(table)
}

/// Adds a key that the plan does not give. A group's limits are one flat table, by the names of
/// cgroup files.
fn add(table: &mut Table, set: &Assignment) -> Result<(), KeyError> {
    let limit = set.key.strip_prefix("groups.").and_then(|rest| rest.split_once('.'));
    let Some((group, limit)) = limit else {
        return dotted::set(table, set).map_err(|e| e.within("with"));
    };
    let empty = || Value::Table(Table::new());
    let groups = table.entry("groups").or_insert_with(empty).as_table_mut();
    let limits = groups.map(|groups| groups.entry(group).or_insert_with(empty));
    let limits = limits.and_then(Value::as_table_mut);
    let limits = limits.ok_or_else(|| KeyError::key(format!("with.{}", set.key), "is no limit"))?;
    limits.insert(limit.to_string(), set.value.clone());
    Ok(())
}

/// One point's tables as the backend gets them, with limits read and scaled.
fn resolve(table: &Table, plan: &Plan) -> Result<Sections, KeyError> {
    let mut table = table.clone();
    let mut take = |name: &str| match table.remove(name) {
        Some(Value::Table(section)) => section,
        _ => Table::new(),
    };
    let groups = take("groups");
    let limits = |(name, group): (&String, &Value)| {
        let group = group.as_table().cloned().unwrap_or_default();
        let limits = limits::parse(&group, plan.scale);
        Ok((name.clone(), limits.map_err(|e| e.within(&format!("groups.{name}")))?))
    };
    let groups = groups.iter().map(limits).collect::<Result<_, KeyError>>()?;
    Ok(Sections {
        machine: take("machine"),
        groups,
        workload: take("workload"),
        reclaim: take("reclaim"),
        kernel: take("kernel"),
        scale: plan.scale,
    })
}

#[cfg(test)]
mod tests;
