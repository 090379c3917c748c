//! Runs what is missing, several runs at a time. Workers take the next run from a shared counter
//! and send results to this thread, which alone writes; no run can see another.

use std::fmt::Write;
use std::io::IsTerminal;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::backend::{Failure, Outcome};
use crate::record::Record;
use crate::spec::{Experiment, RunSpec};
use crate::store::{self, Store};
use crate::watch::Watcher;
use mglru_error::Error;

/// Steps of the bar per run.
const STEPS: u64 = 1000;

/// Carries a worker's news to the writing thread.
enum Message {
    Progress { run: usize, steps: u64 },
    Done { run: usize, result: Box<Result<Outcome, Failure>>, wall_s: f64 },
}

/// Asks runs to end before their time, once it is set.
pub type Stop = Arc<AtomicBool>;

/// Unwinds a run that is to end.
struct Stopped;

/// Shows a bar on stderr, if that is a terminal; and holds a way to stop.
pub struct Progress {
    bar: ProgressBar,
    stop: Option<Stop>,
}

impl Progress {
    /// Shows progress when stderr is a terminal.
    pub fn on_terminal() -> Self {
        match std::io::stderr().is_terminal() {
            true => Self { bar: ProgressBar::new(0), stop: None },
            false => Self::hidden(),
        }
    }

    /// Creates a bar that is never shown.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), stop: None }
    }

    /// Creates a hidden bar; runs unwind when `stop` is set, so that panics of the build must.
    pub fn stoppable(stop: &Stop) -> Self {
        Self { stop: Some(stop.clone()), ..Self::hidden() }
    }

    /// Counts a run that was made elsewhere.
    pub(crate) fn one_more(&self) {
        self.bar.inc(STEPS);
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(crate) fn start(&self, runs: usize) {
        let style = ProgressStyle::with_template("{wide_bar} {percent}% {msg}{left}");
        let style = style.expect("the template is fixed").with_key("left", write_left);
        self.bar.set_style(style);
        self.bar.set_length(runs as u64 * STEPS);
    }
}

/// Writes how long the rest may take, once a fiftieth is done: sooner it is a guess.
fn write_left(state: &ProgressState, out: &mut dyn Write) {
    if state.pos() * 50 >= state.len().unwrap_or(0) {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// Runs every run without a record and returns all selected records in run order.
///
/// # Errors
/// The first run, in run order, that fails or whose record cannot be written; records of the
/// others stay.
pub fn run_all(
    experiment: &Experiment,
    store: &mut Store,
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<Record>, Error> {
    let runs = store.missing(experiment);
    progress.start(runs.len());
    let result = run_missing(experiment, store, &runs, jobs, progress);
    progress.finish();
    result?;
    store.finish(experiment)
}

fn run_missing(
    experiment: &Experiment,
    store: &mut Store,
    runs: &[RunSpec],
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let dir = store.dir().to_path_buf();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..jobs.clamp(1, runs.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(|| work(runs, &next, &dir, progress.stop.as_ref(), sender));
        }
        drop(sender);
        let mut steps = vec![0; runs.len()];
        let mut failed: Option<(usize, Error)> = None;
        for message in receiver {
            let (run, result, wall_s) = match message {
                Message::Progress { run, steps: now } => {
                    advance(&progress.bar, &mut steps[run], now);
                    continue;
                }
                Message::Done { run, result, wall_s } => (run, *result, wall_s),
            };
            advance(&progress.bar, &mut steps[run], STEPS);
            progress.bar.set_message(format!("{} runs", runs.len()));
            if let Err(e) = keep(experiment, store, &runs[run], result, wall_s) {
                next.store(runs.len(), Ordering::Relaxed);
                // A later run may fail sooner; every run before it has started and will report.
                failed = failed.filter(|(first, _)| *first < run).or(Some((run, e)));
            }
        }
        failed.map_or(Ok(()), |(_, e)| Err(e))
    })
}

fn advance(bar: &ProgressBar, have: &mut u64, now: u64) {
    bar.inc(now.saturating_sub(*have));
    *have = now.max(*have);
}

fn work(
    runs: &[RunSpec],
    next: &AtomicUsize,
    dir: &Path,
    stop: Option<&Stop>,
    sender: Sender<Message>,
) {
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        let Some(spec) = runs.get(run) else { return };
        let start = Instant::now();
        let shown = AtomicU64::new(0);
        let report = |share: f64| {
            heed(stop);
            let steps = (share.clamp(0.0, 1.0) * STEPS as f64) as u64;
            if shown.fetch_max(steps, Ordering::Relaxed) < steps {
                let _ = sender.send(Message::Progress { run, steps });
            }
        };
        let files = store::files(dir, &spec.id);
        let made = || match &spec.events {
            None => spec.job.run_keeping(spec.seed, &report, &files),
            Some(events) => spec.job.run_traced(spec.seed, &report, &files, events),
        };
        let result = Box::new(stopped_or(stop, made));
        let wall_s = start.elapsed().as_secs_f64();
        let _ = sender.send(Message::Done { run, result, wall_s });
    }
}

/// Unwinds out of a run if it is to stop.
fn heed(stop: Option<&Stop>) {
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        panic::resume_unwind(Box::new(Stopped));
    }
}

/// Returns the result of a run that can be stopped; its panics go on.
fn stopped_or<T>(
    stop: Option<&Stop>,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if stop.is_none() {
        return run();
    }
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|cause| match cause.is::<Stopped>() {
        true => Err(Failure::Input("stopped".to_string())),
        false => panic::resume_unwind(cause),
    })
}

fn keep(
    experiment: &Experiment,
    store: &mut Store,
    run: &RunSpec,
    result: Result<Outcome, Failure>,
    wall_s: f64,
) -> Result<(), Error> {
    let record = judged(experiment, run, result)?;
    // A run made again for its trace events has its record.
    if run.events.is_some() && store.has(run) {
        return Ok(());
    }
    store.push(record)?;
    store.push_timing(run, wall_s)
}

/// The record of a run, or its failure with the run's name.
fn judged(
    experiment: &Experiment,
    run: &RunSpec,
    result: Result<Outcome, Failure>,
) -> Result<Record, Error> {
    let at = |why: String| format!("{}: {}: {why}", experiment.plan.file, run.title());
    let record = result.and_then(|outcome| Ok(experiment.record(run, outcome)?));
    record.map_err(|failure| match failure.map_message(at) {
        Failure::Input(why) => Error::Request(why),
        Failure::Machine(why) => Error::Machine(why),
    })
}

/// Makes every run, one after the other, each driven by the watcher, and keeps the records that are
/// missing; `false`: the watcher left before the end.
///
/// # Errors
/// As [`run_all`], or that a run cannot be watched.
pub fn watch_all(
    experiment: &Experiment,
    store: &mut Store,
    watcher: &mut dyn Watcher,
) -> Result<bool, Error> {
    let of = experiment.runs.len();
    for (nth, run) in experiment.runs.iter().enumerate() {
        watcher.next(&run.title(), nth + 1, of);
        let start = Instant::now();
        let files = store::files(store.dir(), &run.id);
        let result = run.job.run_watched(run.seed, &files, watcher).transpose();
        let Some(result) = result else { return Ok(false) };
        match store.has(run) {
            true => drop(judged(experiment, run, result)?),
            false => keep(experiment, store, run, result, start.elapsed().as_secs_f64())?,
        }
    }
    Ok(true)
}

/// Makes an experiment's first run and keeps no files of it.
///
/// # Errors
/// As that run fails, or that it was stopped.
pub(crate) fn alone(experiment: &Experiment, stop: Option<&Stop>) -> Result<Record, Error> {
    let run = &experiment.runs[0];
    let made = || run.job.run(run.seed, &|_| heed(stop)).map_err(Failure::from);
    let result = stopped_or(stop, made);
    judged(experiment, run, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::mock::Mock;
    use crate::plan::Plan;
    use crate::spec::Selection;

    #[test]
    fn a_failing_run_is_named() {
        let text = "name=\"t\"\ntitle=\"t\"\nbackend=\"mock\"\nvariants=[\"before\"]\nseeds=2\n\
                    [workload]\nkind=\"mock\"\nops=1\nops_per_s=1.0\nfail=\"no trace\"";
        let plan = Plan::parse("t.toml", text, &[]).unwrap();
        let experiment = Experiment::new(plan, &Selection::default(), &Mock).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
        // Two workers: the second run's failure may be reported first.
        for _ in 0..50 {
            let error = run_all(&experiment, &mut store, 2, &Progress::hidden()).unwrap_err();
            assert_eq!(error.to_string(), "t.toml: before seed 1: no trace");
        }
    }

    #[test]
    fn a_run_that_is_stopped_ends_at_its_next_report() {
        let text = "name=\"t\"\ntitle=\"t\"\nbackend=\"mock\"\nvariants=[\"before\"]\nseeds=2\n\
                    [workload]\nkind=\"mock\"\nops=1\nops_per_s=1.0";
        let plan = Plan::parse("t.toml", text, &[]).unwrap();
        let experiment = Experiment::new(plan, &Selection::default(), &Mock).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
        let stop = Stop::default();
        stop.store(true, Ordering::Relaxed);
        let error = run_all(&experiment, &mut store, 2, &Progress::stoppable(&stop)).unwrap_err();
        assert!(error.to_string().ends_with(": stopped"), "{error}");
        assert_eq!(store.missing(&experiment).len(), 2);
        stop.store(false, Ordering::Relaxed);
        run_all(&experiment, &mut store, 2, &Progress::stoppable(&stop)).unwrap();
    }
}
