//! One run of a sweep as a line of JSON that says all about it, so that another process or machine
//! can make the run and answer with its record.

use serde::{Deserialize, Serialize};

use crate::backend;
use crate::dotted::Assignment;
use crate::fit::Notes;
use crate::plan::Plan;
use crate::record::{Record, VERSION};
use crate::runner::{self, Stop};
use crate::spec::{Experiment, RunSpec, Selection};
use crate::variant::Variant;
use mglru_error::Error;

/// Gives the version of the layout.
pub const SCHEMA: u32 = 1;

/// Backends whose runs need nothing of the machine that they are made on.
const ANYWHERE: [&str; 2] = ["sim", "mock"];

/// Describes a run of a sweep, for the program that makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Holds [`SCHEMA`].
    pub schema: u32,
    /// Holds the version of the program that made the task; another one is refused.
    pub mglru: String,
    /// Names the run within all plans.
    pub run: String,
    /// Holds the hash of the plan; files of another content are refused.
    pub plan_hash: String,
    /// Names the file that the plan was read from, for messages.
    pub file: String,
    /// Holds the text of the plan.
    pub plan: String,
    /// Names the backend.
    pub backend: String,
    /// Holds the scale.
    pub scale: f64,
    /// Holds the variant.
    pub variant: Variant,
    /// Holds the seed.
    pub seed: u64,
    /// Holds values of the sweep's axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub point: Vec<Assignment>,
    /// Lists variants that stand in place of the plan's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Variant>,
    /// Holds notes about variants that do not run.
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
}

impl Task {
    /// Says all about a run of an experiment.
    ///
    /// # Errors
    /// When the runs need more than a processor: guests to boot, or real memory.
    pub fn new(experiment: &Experiment, run: &RunSpec) -> Result<Self, Error> {
        let (file, backend) = (&experiment.plan.file, experiment.backend);
        if !ANYWHERE.contains(&backend) {
            let problem = "only runs of the model can be made elsewhere";
            return Err(Error::Request(format!("{file}: backend {backend}: {problem}")));
        }
        Ok(Self {
            schema: SCHEMA,
            mglru: VERSION.to_string(),
            run: run.id.clone(),
            plan_hash: experiment.hash.clone(),
            file: file.clone(),
            plan: experiment.plan.source.clone(),
            backend: backend.to_string(),
            scale: experiment.plan.scale,
            variant: run.variant.as_ref().clone(),
            seed: run.seed,
            point: run.values.to_vec(),
            given: experiment.given.clone(),
            notes: experiment.notes.clone(),
        })
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Names the place in the line, or the version that this program does not carry out.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |problem: String| Err(Error::Request(format!("task: {problem}")));
        let task: Self = match serde_json::from_str(text) {
            Ok(task) => task,
            Err(e) => return refuse(e.to_string()),
        };
        if task.schema != SCHEMA {
            return refuse(format!("schema {}, this program reads {SCHEMA}", task.schema));
        }
        if task.mglru != VERSION {
            return refuse(format!("made by mglru {}, this is {VERSION}", task.mglru));
        }
        Ok(task)
    }

    /// Returns the task as one line, newline included.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("tasks have string keys only");
        line.push('\n');
        line
    }

    /// Makes the run.
    ///
    /// # Errors
    /// As `mglru run` would for this run, or when a file differs from that of the maker of the
    /// task.
    pub fn run(&self) -> Result<Record, Error> {
        self.run_until(None)
    }

    /// Makes the run, unless it is stopped before its end.
    ///
    /// # Errors
    /// As [`Task::run`], or that it was stopped.
    pub fn run_until(&self, stop: Option<&Stop>) -> Result<Record, Error> {
        let experiment = self.experiment()?;
        if experiment.hash != self.plan_hash {
            let (run, file, hash) = (&self.run, &self.file, &self.plan_hash);
            let problem = "a trace or another file of it has other content here";
            return Err(Error::Request(format!("task {run}: {file}: {problem} (not {hash})")));
        }
        runner::alone(&experiment, stop)
    }

    fn experiment(&self) -> Result<Experiment, Error> {
        let selection = Selection {
            given: self.given.clone(),
            scale: Some(self.scale),
            notes: self.notes.clone(),
            ..Selection::default()
        };
        let plan = Plan::parse(&self.file, &self.plan, &[])?;
        let which = (&self.variant, self.seed, &self.point[..]);
        Experiment::single(plan, &selection, backend::by_name(&self.backend)?, which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{Progress, run_all};
    use crate::store::Store;

    const SWEEP: &str = "name=\"t\"\ntitle=\"t\"\nseeds=2\nscale=0.5\n\
        variants=[\"before\", {name=\"x\", base=\"after\", set={p10=false}}]\n\
        [machine]\nmemory=\"64MiB\"\ncpus=2\n[groups.\"/touch\"]\n\
        memory.max=[\"4MiB\", \"6MiB\"]\n\
        [workload]\nkind=\"touch\"\nengine=\"pread\"\npages=2048\noperations=500\ntasks=[1, 2]\n";

    fn experiment() -> Experiment {
        let plan = Plan::parse("t.toml", SWEEP, &[]).unwrap();
        let sim = backend::by_name("sim").unwrap();
        Experiment::new(plan, &Selection::default(), sim).unwrap()
    }

    #[test]
    fn a_task_alone_gives_the_record_of_the_whole_sweep() {
        let experiment = experiment();
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
        let whole = run_all(&experiment, &mut store, 2, &Progress::hidden()).unwrap();
        assert_eq!(whole.len(), 2 * 2 * 4);
        for (run, record) in experiment.runs.iter().zip(&whole) {
            let line = Task::new(&experiment, run).unwrap().line();
            let task = Task::parse(&line).unwrap();
            assert_eq!(task.run().unwrap().line(), record.line(), "{}", run.title());
        }
    }

    #[test]
    fn tasks_of_another_version_or_content_are_refused() {
        let experiment = experiment();
        let task = Task::new(&experiment, &experiment.runs[0]).unwrap();
        let other = Task { mglru: "0.0.1".into(), ..task.clone() };
        let error = Task::parse(&other.line()).unwrap_err().to_string();
        assert!(error.starts_with("task: made by mglru 0.0.1, this is "), "{error}");
        let changed = Task { plan: task.plan.replace("2048", "2049"), ..task.clone() };
        let error = changed.run().unwrap_err().to_string();
        assert!(error.contains("has other content here"), "{error}");
        let error = Task::parse("{\"schema\": 1").unwrap_err().to_string();
        assert!(error.starts_with("task: EOF while parsing"), "{error}");
    }
}
