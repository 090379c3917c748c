//! Trace events of a run: what the kernel's own tracepoints would print of it, by their names and
//! with their fields, in order of time. Nobody listens by default, and a run is the same with a
//! listener and without.
//!
//! A task runs ahead of the others for a moment, so that events arrive a little out of order: they
//! wait here until nothing earlier can come.

mod core_events;
mod machine_events;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use mglru::types::{Nanos, NodeId};
use mglru_workload::Layout;

use crate::dirty::Reason;
use crate::error::SimError;
use crate::machine::Machine;
use crate::world::World;

pub use core_events::tracepoint;
pub(crate) use machine_events::Slept;

/// Process numbers of tasks begin here, those of the kernel's threads below.
const FIRST_PID: u32 = 1000;
const KSWAPD_PID: u32 = 50;
const FLUSHER_PID: u32 = 40;
/// Longer names are cut, as the kernel does.
const COMM: usize = 15;
/// Stands for ftrace's flags: none of them is known outside of a kernel.
pub const FLAGS: &str = ".....";
/// Limits how often levels are passed to the sink, ns.
const LEVELS_EVERY: Nanos = 1_000_000;

/// Names the values passed to [`Sink::levels`], pages.
pub const LEVELS: [&str; 5] = ["free", "file", "anon", "dirty", "writeback"];

/// Holds one event, as a tracepoint prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Says when it happened, ns.
    pub at: Nanos,
    /// Marks interrupts and preemption, as ftrace prints them.
    pub flags: &'a str,
    /// Numbers the processor; threads of the kernel have some of their own, after those of tasks.
    pub cpu: u32,
    /// Names the task.
    pub comm: &'a str,
    /// Numbers the task.
    pub pid: u32,
    /// Names the tracepoint.
    pub name: &'a str,
    /// Holds its fields, as ftrace prints them.
    pub fields: &'a str,
}

/// Takes a run's events, in order of time.
pub trait Sink: Send {
    /// Takes one.
    ///
    /// # Errors
    /// Ends the run, which then fails with this text.
    fn event(&mut self, event: &Event<'_>) -> Result<(), String>;

    /// Takes what the machine holds: values of [`LEVELS`], when they have changed.
    ///
    /// # Errors
    /// As [`Sink::event`].
    fn levels(&mut self, at: Nanos, levels: &[u64; LEVELS.len()]) -> Result<(), String> {
        let _ = (at, levels);
        Ok(())
    }

    /// The run is over.
    ///
    /// # Errors
    /// As [`Sink::event`].
    fn finish(&mut self) -> Result<(), String>;
}

/// Names the thread that causes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// Stands for an interrupt.
    Nobody,
    Task(u32),
    Kswapd(u8),
    Flusher,
}

/// An event that waits for its turn.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    at: Nanos,
    nth: u64,
    who: Who,
    name: &'static str,
    fields: String,
}

/// Describes the state in which a thread of the kernel is traced.
#[derive(Clone, Copy, Debug)]
struct Pass {
    reason: Reason,
    pages: u64,
}

/// Puts events in order and hands them on.
pub(crate) struct Tracer {
    sink: Box<dyn Sink>,
    pending: BinaryHeap<Reverse<Pending>>,
    nth: u64,
    who: Who,
    /// Names of tasks.
    comms: Vec<String>,
    cpus: u32,
    nodes: u32,
    /// Whether each node's kswapd is awake.
    awake: Vec<bool>,
    /// Holds the work of each group's flusher.
    passes: Vec<Option<Pass>>,
    levels: [u64; LEVELS.len()],
    levels_due: Nanos,
    error: Option<String>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Makes a tracer without events.
    pub(crate) fn new(sink: Box<dyn Sink>, layout: &Layout, cpus: u32, nodes: u32) -> Self {
        Self {
            sink,
            pending: BinaryHeap::new(),
            nth: 0,
            who: Who::Nobody,
            comms: comms(layout),
            cpus,
            nodes,
            awake: vec![false; nodes as usize],
            passes: vec![None; layout.groups.len() + 1],
            levels: [u64::MAX; LEVELS.len()],
            levels_due: 0,
            error: None,
        }
    }

    fn add(&mut self, at: Nanos, who: Who, name: &'static str, fields: String) {
        self.nth += 1;
        self.pending.push(Reverse(Pending { at, nth: self.nth, who, name, fields }));
    }

    /// Hands on what happened up to `until`: nothing earlier is to come.
    fn settle(&mut self, until: Nanos) {
        while self.error.is_none() && self.pending.peek().is_some_and(|first| first.0.at <= until) {
            let Reverse(first) = self.pending.pop().expect("just seen");
            self.error = self.emit(&first).err();
        }
    }

    fn emit(&mut self, pending: &Pending) -> Result<(), String> {
        let (comm, pid) = self.actor(pending.who);
        let comm = comm.into_owned();
        let cpu = match pending.who {
            Who::Nobody => 0,
            Who::Task(t) => t % self.cpus,
            Who::Kswapd(node) => self.cpus + u32::from(node),
            Who::Flusher => self.cpus + self.nodes,
        };
        let Pending { at, name, ref fields, .. } = *pending;
        self.sink.event(&Event { at, flags: FLAGS, cpu, comm: &comm, pid, name, fields })
    }

    /// Name and number of the task or thread that acts.
    fn actor(&self, who: Who) -> (Cow<'_, str>, u32) {
        match who {
            Who::Nobody => (Cow::Borrowed("<idle>"), 0),
            Who::Task(t) => (Cow::Borrowed(&self.comms[t as usize]), FIRST_PID + t),
            Who::Kswapd(node) => {
                (Cow::Owned(format!("kswapd{node}")), KSWAPD_PID + u32::from(node))
            }
            Who::Flusher => (Cow::Borrowed("kworker/u:flush"), FLUSHER_PID),
        }
    }
}

/// Names tasks after their groups.
pub(crate) fn comms(layout: &Layout) -> Vec<String> {
    layout.tasks.iter().map(|task| comm(layout, task.group)).collect()
}

fn comm(layout: &Layout, group: Option<u32>) -> String {
    let path = group.map_or("", |group| &layout.groups[group as usize].name);
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("task");
    name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).take(COMM).collect()
}

impl World {
    /// Traces an event, if there is a sink.
    #[inline]
    pub(crate) fn trace(&mut self, name: &'static str, fields: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(tracer) = &mut self.tracer {
            let who = tracer.who;
            tracer.add(now, who, name, fields());
        }
    }

    /// Names `who` as the actor of the events that follow.
    #[inline]
    pub(crate) fn acts(&mut self, who: Who) {
        if let Some(tracer) = &mut self.tracer {
            tracer.who = who;
        }
    }
}

impl Machine {
    /// Passes the run's events to a sink.
    pub(crate) fn listen(&mut self, sink: Box<dyn Sink>) {
        let layout = self.workload.layout();
        let nodes = self.world.zones.nodes() as u32;
        let tracer = Tracer::new(sink, &layout, self.sched.cpus(), nodes);
        self.world.tracer = Some(Box::new(tracer));
    }

    /// Passes on all trace events before a machine event that was carried out.
    #[inline]
    pub(crate) fn settle_events(&mut self, began: Nanos) {
        if self.world.tracer.is_some() {
            self.hand_on(began);
        }
    }

    fn hand_on(&mut self, began: Nanos) {
        let due = self.world.tracer.as_ref().is_some_and(|tracer| began >= tracer.levels_due);
        let levels = due.then(|| self.levels());
        let Some(tracer) = &mut self.world.tracer else { return };
        tracer.settle(began);
        let who = std::mem::replace(&mut tracer.who, Who::Nobody);
        if let Some(levels) = levels.filter(|levels| *levels != tracer.levels) {
            (tracer.levels, tracer.levels_due) = (levels, began + LEVELS_EVERY);
            let result = tracer.sink.levels(began, &levels);
            tracer.error = tracer.error.take().or(result.err());
        }
        if let Some(error) = tracer.error.take() {
            self.error.get_or_insert(SimError::Sink(error));
        }
        self.look_at_page(who);
    }

    /// Name and number of the task or thread that acts.
    pub(crate) fn actor(&self, who: Who) -> (String, u32) {
        let known = self.world.tracer.as_ref().map(|tracer| tracer.actor(who));
        known.map_or((String::new(), 0), |(comm, pid)| (comm.into_owned(), pid))
    }

    /// Measures what the machine holds now.
    fn levels(&self) -> [u64; LEVELS.len()] {
        let groups = (0..self.world.memcgs.len() as u32).map(mglru::types::MemcgId);
        let (mut file, mut anon) = (0, 0);
        for held in groups.map(|memcg| self.world.held(memcg)) {
            file += held.file;
            anon += held.anon + held.shmem;
        }
        let writeback = self.world.writeback.all_under_way();
        [self.world.zones.free_pages(), file, anon, self.dirty_pages(), writeback]
    }

    /// The run is over: the rest is handed on.
    ///
    /// # Errors
    /// The sink's.
    pub(crate) fn end_events(&mut self) -> Result<(), SimError> {
        let Some(mut tracer) = self.world.tracer.take() else { return Ok(()) };
        tracer.settle(Nanos::MAX);
        let error = tracer.error.take();
        error.map_or_else(|| tracer.sink.finish(), Err).map_err(SimError::Sink)
    }
}

/// A node's name in events.
fn nid(node: NodeId) -> u8 {
    node.0
}
