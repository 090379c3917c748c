//! A sweep whose runs are made elsewhere, and one such run.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;

use crate::asked::{Asked, Folder, report};
use crate::interrupt::interruptible;
use crate::raised;
use mglru_error::Error;
use mglru_lab::answers::Answers;
use mglru_lab::render;
use mglru_lab::spec::Experiment;
use mglru_lab::store::{self, Store};
use mglru_lab::task::Task;

/// Makes the run of a task; its record as a line.
#[pyfunction]
pub fn run_task(py: Python<'_>, task: &str) -> PyResult<String> {
    interruptible(py, |stop| {
        let record = Task::parse(task)?.run_until(Some(stop))?;
        Ok::<_, Error>(record.line())
    })
}

/// Holds a sweep whose records come from elsewhere.
#[pyclass(frozen)]
pub struct Sweep {
    open: Mutex<Open>,
}

struct Open {
    experiment: Experiment,
    store: Store,
    answers: Answers,
    /// Goes after the store.
    _folder: Folder,
}

#[pymethods]
impl Sweep {
    #[new]
    fn new(py: Python<'_>, asked: &str) -> PyResult<Self> {
        let open = interruptible(py, |_| open(&Asked::parse(asked)?))?;
        Ok(Self { open: Mutex::new(open) })
    }

    /// Tasks without a record, in run order, a line each.
    fn tasks(&self) -> PyResult<Vec<String>> {
        let open = self.locked();
        let missing = open.store.missing(&open.experiment);
        let tasks = missing.iter().map(|run| Task::new(&open.experiment, run));
        tasks.map(|task| Ok(task.map_err(raised)?.line())).collect()
    }

    /// Takes a record; false: it has come before.
    fn take(&self, line: &str) -> PyResult<bool> {
        let Open { store, answers, .. } = &mut *self.locked();
        answers.take(line, store).map_err(raised)
    }

    /// Puts records in run order and judges them, once all have come.
    fn report(&self) -> PyResult<String> {
        let Open { experiment, store, answers, .. } = &mut *self.locked();
        if let missing @ 1.. = answers.missing() {
            return Err(raised(format!("{missing} runs have no record")));
        }
        let records = store.finish(experiment).map_err(raised)?;
        Ok(render::json(&report(experiment, records)))
    }
}

impl Sweep {
    fn locked(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn open(asked: &Asked) -> Result<Open, Error> {
    let experiment = asked.experiment()?;
    let folder = asked.folder()?;
    let (store, _) = Store::open(folder.path(), &experiment)?;
    store::replace(&folder.path().join("plan.toml"), &experiment.plan.source)?;
    let answers = Answers::new(&experiment, &store);
    Ok(Open { experiment, store, answers, _folder: folder })
}
