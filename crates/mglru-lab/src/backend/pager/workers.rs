//! The threads of a run: they start together, meet at barriers, and the run is over when the last
//! counted one is done, or one has failed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mglru::Config;
use mglru_sim::outcome::Phase;
use mglru_sim::samples::GROUPS;
use mglru_sim::{MachineSpec, Outcome as Found};
use mglru_workload::{Layout, Op, TaskId, Workload};

use super::looks::Looks;
use super::mapped::Mapped;
use super::task::Task;
use crate::backend::Progress;
use crate::samples::Series;

/// Significant digits of latencies, as in the simulated machine.
const LATENCY_DIGITS: u8 = 3;
/// Longer latencies count as this: an hour, in nanoseconds.
const LATENCY_MAX: u64 = 3_600_000_000_000;
/// Sets how often progress is reported.
const REPORT: Duration = Duration::from_millis(200);

/// Holds a run that is about to start.
pub struct Workers {
    shared: Shared,
    total_ops: u64,
}

/// Holds the state that all tasks share.
pub struct Shared {
    workload: Mutex<Box<dyn Workload>>,
    pub mapped: Mapped,
    pub layout: Layout,
    ops: AtomicU64,
    accesses: AtomicU64,
    over: AtomicBool,
    record: Mutex<Record>,
    waiting: Mutex<Waiting>,
    moved: Condvar,
    start: Instant,
}

struct Record {
    latency: Vec<Histogram<u64>>,
    task_ops: Vec<u64>,
    phases: Vec<Phase>,
    failed: Option<String>,
}

/// Counted tasks at work, and those that stand at a barrier, by its number.
struct Waiting {
    working: usize,
    at: Vec<(TaskId, u32)>,
}

/// Locks even a poisoned mutex: no holder leaves its state half-done, and a panic ends the run
/// anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    pub fn new(
        machine: &MachineSpec,
        config: Config,
        workload: Box<dyn Workload>,
        folder: &Path,
    ) -> Result<Self, String> {
        let layout = workload.layout();
        let histogram =
            || Histogram::new_with_max(LATENCY_MAX, LATENCY_DIGITS).map_err(|e| e.to_string());
        let record = Record {
            latency: layout.classes.iter().map(|_| histogram()).collect::<Result<_, _>>()?,
            task_ops: vec![0; layout.tasks.len()],
            phases: Vec::new(),
            failed: None,
        };
        let working = layout.tasks.iter().filter(|task| !task.background).count();
        let total_ops = workload.total_ops().unwrap_or(u64::MAX).max(1);
        let shared = Shared {
            mapped: Mapped::open(machine, config, &layout, folder)?,
            workload: Mutex::new(workload),
            layout,
            ops: AtomicU64::new(0),
            accesses: AtomicU64::new(0),
            over: AtomicBool::new(false),
            record: Mutex::new(record),
            waiting: Mutex::new(Waiting { working, at: Vec::new() }),
            moved: Condvar::new(),
            start: Instant::now(),
        };
        Ok(Self { shared, total_ops })
    }

    /// Runs to the end, and looks at the pager on the way.
    pub fn run(mut self, progress: Progress) -> Result<(Found, Series), String> {
        self.shared.start = Instant::now();
        let (shared, total) = (&self.shared, self.total_ops as f64);
        let mut looks = Looks::new();
        std::thread::scope(|scope| {
            for id in 0..shared.layout.tasks.len() as TaskId {
                scope.spawn(move || shared.work(id));
            }
            while !shared.is_over() {
                progress(shared.ops() as f64 / total);
                shared.look(&mut looks);
                shared.wait_for_change(looks.wait(shared.now_ns()).min(REPORT));
            }
        });
        Ok((self.shared.into_outcome()?, looks.series()))
    }
}

impl Shared {
    fn work(&self, id: TaskId) {
        let result = Task::new(id, self).run();
        if let Err(why) = result {
            locked(&self.record).failed.get_or_insert(format!("task {id}: {why}"));
            self.over.store(true, Ordering::Release);
        }
        let mut waiting = locked(&self.waiting);
        if !self.layout.tasks[id as usize].background {
            waiting.working -= 1;
        }
        if waiting.working == 0 {
            self.over.store(true, Ordering::Release);
        }
        self.moved.notify_all();
    }

    /// Fills `out` with the task's next operations.
    pub fn fill(&self, task: TaskId, out: &mut Vec<Op>) {
        locked(&self.workload).fill(task, out);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub fn accessed(&self) {
        self.accesses.fetch_add(1, Ordering::Relaxed);
    }

    pub fn ops(&self) -> u64 {
        self.ops.load(Ordering::Relaxed)
    }

    fn wait_for_change(&self, at_most: Duration) {
        let waiting = locked(&self.waiting);
        let _ = self.moved.wait_timeout(waiting, at_most);
    }

    /// Looks if it is time. A pager that fails is reported by its tasks.
    fn look(&self, looks: &mut Looks) {
        let now = self.now_ns();
        if looks.is_due(now) {
            looks.push(now, self.ops(), self.mapped.snapshot_of(GROUPS).ok());
        }
    }

    /// Returns the time since the start.
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Counts an operation of a class and records how long it took.
    pub fn end_op(&self, task: TaskId, class: u8, took_ns: u64) {
        self.ops.fetch_add(1, Ordering::Relaxed);
        let mut record = locked(&self.record);
        record.task_ops[task as usize] += 1;
        if let Some(histogram) = record.latency.get_mut(usize::from(class)) {
            histogram.saturating_record(took_ns);
        }
    }

    /// Waits until every counted task that is at work stands at this barrier.
    pub fn wait_at(&self, task: TaskId, id: u32) {
        let mut waiting = locked(&self.waiting);
        waiting.at.push((task, id));
        self.moved.notify_all();
        loop {
            let here = waiting.at.iter().filter(|(_, at)| *at == id).count();
            if here >= waiting.working {
                waiting.at.retain(|(_, at)| *at != id);
                self.moved.notify_all();
            }
            if self.is_over() || !waiting.at.contains(&(task, id)) {
                return;
            }
            waiting = self.moved.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Begins a phase.
    pub fn mark(&self, phase: u32) -> Result<(), String> {
        let phase = Phase {
            name: self.layout.phases.get(phase as usize).cloned().unwrap_or_default(),
            sequence: self.layout.sequence(phase),
            at: self.now_ns(),
            ops: self.ops(),
            accesses: self.accesses.load(Ordering::Relaxed),
            snapshot: self.mapped.snapshot()?,
        };
        locked(&self.record).phases.push(phase);
        Ok(())
    }

    fn into_outcome(self) -> Result<Found, String> {
        let virtual_ns = self.now_ns();
        let snapshot = self.mapped.snapshot()?;
        let (ops, accesses) = (self.ops(), self.accesses.load(Ordering::Relaxed));
        let record = self.record.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = record.failed {
            return Err(why);
        }
        let workload = self.workload.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Found {
            ops,
            accesses,
            virtual_ns,
            latency: self.layout.classes.into_iter().zip(record.latency).collect(),
            task_ops: record.task_ops,
            counters: snapshot.counters,
            groups: snapshot.groups,
            phases: record.phases,
            figures: workload.figures(),
            blocks: Vec::new(),
            string_hash: workload.string_hash(),
        })
    }
}
