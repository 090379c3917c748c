//! A process that carries out tasks of a workload. Generators, tables and threads are made outside
//! the group, so that the group is charged for the workload's own memory and little else; then the
//! process enters it.

use std::collections::BTreeMap;
use std::io::{BufRead, Stdout, Write, stdin, stdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use hdrhistogram::Histogram;
use mglru_guest::report::Measured;
use mglru_workload::{Op, TaskId, Workload, WorkloadSpec};

use crate::ask::{Ask, Message, Start};
use crate::enter;
use crate::steps::Schedule;
use crate::task::{Places, Task};
use crate::until::Watch;

/// Significant digits of latencies, as in the simulated machine.
const LATENCY_DIGITS: u8 = 3;
/// Longer latencies count as this: an hour, in nanoseconds.
const LATENCY_MAX: u64 = 3_600_000_000_000;

/// Holds the state that all tasks of a worker share.
pub struct Shared {
    workload: Mutex<Box<dyn Workload>>,
    pub places: Places,
    pub ops: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub schedule: Schedule,
    pub until: Watch,
    latency: Mutex<Vec<Histogram<u64>>>,
    out: Mutex<Stdout>,
}

/// Locks a mutex, poisoned or not: nothing here is left half-done when a thread panics, and a panic
/// ends the process anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn run() -> Result<(), String> {
    let mut lines = stdin().lock().lines();
    let first = lines.next().ok_or("nobody says what to do")?.map_err(|e| e.to_string())?;
    let start: Start = serde_json::from_str(&first).map_err(|e| format!("order: {e}"))?;
    let shared = match build(&start) {
        Ok(shared) => Arc::new(shared),
        Err(why) => {
            say(&mut stdout(), &Ask::Failed { why: why.clone() });
            return Err(why);
        }
    };
    let tasks = start_tasks(&start, &shared)?;
    enter::enter(&start.me.group)?;
    shared.ask(&Ask::Ready);
    for line in lines {
        let line = line.map_err(|e| e.to_string())?;
        obey(serde_json::from_str(&line).map_err(|e| format!("{line}: {e}"))?, &shared, &tasks);
    }
    Ok(())
}

fn build(start: &Start) -> Result<Shared, String> {
    let order = &start.workload;
    let spec: WorkloadSpec =
        serde_json::from_value(order.spec.clone()).map_err(|e| format!("workload: {e}"))?;
    let workload = spec.build(order.seed, order.scale).map_err(|e| format!("workload: {e}"))?;
    let layout = workload.layout();
    let histogram =
        || Histogram::new_with_max(LATENCY_MAX, LATENCY_DIGITS).map_err(|e| e.to_string());
    let latency = layout.classes.iter().map(|_| histogram()).collect::<Result<_, _>>()?;
    Ok(Shared {
        places: Places::open(&layout, &start.me, order.tlb_flush_every)?,
        workload: Mutex::new(workload),
        ops: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        writes: AtomicU64::new(0),
        schedule: Schedule::new(start.steps),
        until: Watch::new(start.until.clone())?,
        latency: Mutex::new(latency),
        out: Mutex::new(stdout()),
    })
}

/// A line to each task, by its number.
type Tasks = BTreeMap<TaskId, Sender<()>>;

fn start_tasks(start: &Start, shared: &Arc<Shared>) -> Result<Tasks, String> {
    let mut tasks = Tasks::new();
    for task in &start.me.tasks {
        let (sender, receiver) = channel();
        let (id, shared, pin) = (task.id, Arc::clone(shared), start.workload.pin);
        let body = move || run_task(id, &shared, receiver, pin);
        thread::Builder::new().spawn(body).map_err(|e| format!("a thread: {e}"))?;
        tasks.insert(id, sender);
    }
    Ok(tasks)
}

fn run_task(id: TaskId, shared: &Shared, go_on: Receiver<()>, pin: Option<usize>) {
    let mut task = Task::new(id, shared, go_on);
    let result = pin.map_or(Ok(()), pin_to).and_then(|()| task.run());
    match result {
        Ok(()) => shared.ask(&Ask::TaskDone { task: id }),
        Err(why) => shared.ask(&Ask::Failed { why: format!("task {id}: {why}") }),
    }
}

fn pin_to(cpu: usize) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| format!("pin {cpu}: {e}"))
}

fn obey(message: Message, shared: &Shared, tasks: &Tasks) {
    match message {
        Message::Go => {
            shared.until.begin();
            tasks.values().for_each(wake);
        }
        Message::GoOn { task } => tasks.get(&task).into_iter().for_each(wake),
        Message::PassBy => shared.until.pass_by(),
        Message::Count => {
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let (ops, reads, writes) = (of(&shared.ops), of(&shared.reads), of(&shared.writes));
            shared.ask(&Ask::Counted { ops, reads, writes });
        }
        // Tasks in the background are still at work: the process ends under them.
        Message::Finish => {
            shared.ask(&Ask::Measured(shared.measured()));
            std::process::exit(0);
        }
    }
}

/// A task that is done needs no waking.
fn wake(task: &Sender<()>) {
    let _ = task.send(());
}

impl Shared {
    /// Says a line to the first process. When that is gone the machine is stopping.
    pub fn ask(&self, ask: &Ask) {
        say(&mut *locked(&self.out), ask);
    }

    /// Appends the task's next operations.
    pub fn fill(&self, task: TaskId, out: &mut Vec<Op>) {
        locked(&self.workload).fill(task, out);
    }

    /// Counts an operation of a class that took so long.
    pub fn end_op(&self, class: u8, took_ns: u64) {
        self.ops.fetch_add(1, Ordering::Relaxed);
        if let Some(histogram) = locked(&self.latency).get_mut(usize::from(class)) {
            histogram.saturating_record(took_ns);
        }
    }

    fn measured(&self) -> Measured {
        let workload = locked(&self.workload);
        let pairs = |histogram: &Histogram<u64>| {
            let recorded = histogram.iter_recorded();
            recorded.map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
        };
        Measured {
            latency: locked(&self.latency).iter().map(pairs).collect(),
            figures: workload.figures(),
            string_hash: workload.string_hash(),
        }
    }
}

fn say(out: &mut impl Write, ask: &Ask) {
    let mut line = serde_json::to_vec(ask).expect("answers have string keys only");
    line.push(b'\n');
    let _ = out.write_all(&line).and_then(|()| out.flush());
}
