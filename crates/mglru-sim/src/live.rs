//! Drives a run event by event, and reports what the machine does at the moment: sizes, rates,
//! which task reclaims, and what each waits for. A run is the same however it is driven, and a look
//! changes nothing.

use mglru::folio::Bit;
use mglru::types::{MemcgId, Nanos, NodeId, Reclaimer};
use mglru::{Reclaim, Sizes, Throttle};
use mglru_workload::Workload;

use crate::custom::Rules;
use crate::error::SimError;
use crate::machine::Machine;
use crate::outcome::{Figures, Outcome};
use crate::samples::{Sample, Samples};
use crate::spec::{MachineSpec, PAGE_SIZE};
use crate::stall::Stalled;
use crate::task::{Doing, State};
use crate::tracing::comms;

/// Holds a run under way.
pub struct Live {
    machine: Machine,
    /// Names of tasks, as trace events have them.
    names: Vec<String>,
}

/// Tells what a machine holds and does at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Holds sizes and counters of the machine and of its first groups.
    pub sample: Sample,
    /// Counts page accesses, reads and writes begun.
    pub accesses: u64,
    /// Holds the sizes of each sampled group's own lists on the first node, pages.
    pub lists: Vec<Sizes>,
    /// Holds the time that each sampled group lost to memory pressure.
    pub pressure: Vec<Stalled>,
    /// Lists threads of the kernel, then tasks.
    pub actors: Vec<Actor>,
}

/// Tells what a thread does at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Holds its name.
    pub name: String,
    /// Names its group, as an index into the sampled ones and beyond; the root's for the kernel.
    pub group: usize,
    /// Says what it does.
    pub act: Act,
    /// Says what it waits for; none: it runs.
    pub wait: Option<Wait>,
}

/// Says what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It reclaims: for which caller, for which group (none: the machine), at which priority.
    Reclaims {
        /// Names the kind of caller.
        by: Reclaimer,
        /// Holds the index of the group whose limit is enforced.
        target: Option<usize>,
        /// Ranges from 12 (least urgent) to 0.
        priority: u8,
    },
    /// It moves pages to make large blocks.
    Compacts,
    /// It does something else, in a word.
    Other(&'static str),
    /// It has nothing to do, or has ended.
    Idle,
}

/// Says what a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Waits for a free processor.
    Processor,
    /// Sleeps because reclaim throttles it: the reason.
    Throttled(Throttle),
    /// Waits for the data of a page.
    Data,
    /// Waits for the end of a page's write.
    Write,
    /// Waits for room in the queue of the swap device.
    SwapQueue,
    /// Waits for files to be written back.
    Sync,
    /// Waits until there are fewer dirty pages.
    DirtyLimit,
    /// Waits for the others at a barrier.
    Barrier,
    /// Waits for a moment to come.
    Time,
}

impl Live {
    /// Creates a run that has not begun.
    ///
    /// # Errors
    /// A machine or layout that contradicts itself.
    pub fn new(
        spec: &MachineSpec,
        rules: impl Into<Rules>,
        workload: Box<dyn Workload>,
        seed: u64,
    ) -> Result<Self, SimError> {
        let layout = workload.layout();
        let mut machine = Machine::new(spec, rules, workload, seed)?;
        machine.samples = Some(Samples::default());
        machine.start();
        Ok(Self { machine, names: comms(&layout) })
    }

    /// Carries out the next event (a turn of a task, the end of an I/O, a step of kswapd); `false`:
    /// the run is over.
    ///
    /// # Errors
    /// As a run's.
    pub fn turn(&mut self) -> Result<bool, SimError> {
        self.machine.turn()
    }

    /// Returns the time of the machine, ns.
    pub fn now(&self) -> Nanos {
        self.machine.world.now
    }

    /// Counts page accesses, reads and writes begun.
    pub fn accesses(&self) -> u64 {
        self.machine.recorder.accesses
    }

    /// Lists the paths of groups, the root first.
    pub fn groups(&self) -> &[String] {
        self.machine.recorder.group_names()
    }

    /// Reads the counters of the machine.
    pub fn counters(&self) -> Figures {
        self.machine.machine_counters()
    }

    /// Reads `memory.stat` of a group, by its index.
    pub fn stat(&self, group: usize) -> Figures {
        self.machine.memory_stat(MemcgId(group as u32))
    }

    /// Checks the invariants of the lists.
    ///
    /// # Errors
    /// Names the first that does not hold.
    pub fn invariants(&self) -> Result<(), String> {
        self.machine.lru.invariants()
    }

    /// Returns a group's limit, bytes; none: it has none.
    pub fn limit(&self, group: usize) -> Option<u64> {
        let max = self.machine.world.memcgs.limits(MemcgId(group as u32)).max;
        (max != u64::MAX).then(|| max.saturating_mul(PAGE_SIZE))
    }

    /// Looks at the machine.
    pub fn look(&self) -> Look {
        let machine = &self.machine;
        let sample = machine.sample();
        let groups = || (0..sample.groups.len() as u32).map(MemcgId);
        let now = machine.world.now;
        let kswapds = (0..machine.kswapds.len()).map(|node| machine.kswapd_act(node));
        let tasks = self.names.iter().enumerate().map(|(t, name)| machine.task_act(t, name));
        Look {
            accesses: machine.recorder.accesses,
            lists: groups().map(|memcg| machine.lru.sizes(memcg, NodeId(0))).collect(),
            pressure: groups().map(|memcg| machine.world.stalls.total(memcg, now)).collect(),
            actors: kswapds.chain(tasks).collect(),
            sample,
        }
    }

    /// Returns the results of a run that is over, and the looks that were kept on the way.
    pub fn finish(mut self) -> (Outcome, Vec<Sample>) {
        let rows = self.machine.end_samples();
        (self.machine.outcome(), rows)
    }
}

impl Machine {
    fn kswapd_act(&self, node: usize) -> Actor {
        let kswapd = &self.kswapds[node];
        let act = match kswapd.under_way() {
            Some(reclaim) => reclaims(reclaim),
            None if kswapd.compacts() => Act::Compacts,
            None => Act::Idle,
        };
        let throttled = kswapd.sleeps_for().map(Wait::Throttled);
        let wait = throttled.or(kswapd.awaits_swap.then_some(Wait::SwapQueue));
        Actor { name: format!("kswapd{node}"), group: 0, act, wait }
    }

    fn task_act(&self, t: usize, name: &str) -> Actor {
        let task = &self.tasks[t];
        let act = match &task.reclaim {
            Some(reclaim) => reclaims(reclaim),
            None if task.has_ended() => Act::Idle,
            None => Act::Other(word(&task.doing)),
        };
        let name = format!("{name}-{t}");
        Actor { name, group: task.memcg.index(), act, wait: self.wait_of(t) }
    }

    fn wait_of(&self, t: usize) -> Option<Wait> {
        let task = &self.tasks[t];
        let number = t as u32;
        match task.state {
            State::Running | State::Ended => None,
            State::Queued => Some(Wait::Processor),
            State::Blocked => Some(match (self.throttled_for(t), &task.doing) {
                (Some(reason), _) => Wait::Throttled(reason),
                _ if self.swapping.contains(&number) => Wait::SwapQueue,
                _ if self.syncing.contains(&number) => Wait::Sync,
                (None, Doing::Barrier) => Wait::Barrier,
                _ if task.held_dirty => Wait::DirtyLimit,
                _ => self.folio_wait(number).unwrap_or(Wait::Time),
            }),
        }
    }

    fn folio_wait(&self, task: u32) -> Option<Wait> {
        let folio = self.world.waiters.awaited_by(task)?;
        let is_written = self.lru.folios()[folio].flags.has(Bit::WRITEBACK);
        Some(if is_written { Wait::Write } else { Wait::Data })
    }
}

fn reclaims(reclaim: &Reclaim) -> Act {
    Act::Reclaims {
        by: reclaim.reclaimer(),
        target: reclaim.target().map(MemcgId::index),
        priority: reclaim.priority(),
    }
}

fn word(doing: &Doing) -> &'static str {
    match doing {
        Doing::Nothing => "works",
        Doing::Fault(fault) if fault.write => "faults to write",
        Doing::Fault(_) => "faults",
        Doing::Read(_) => "reads",
        Doing::Write(_) => "writes",
        Doing::Sync(_) => "syncs",
        Doing::Truncate { .. } => "truncates",
        Doing::Compute { .. } => "computes",
        Doing::Block(_) => "wants a block",
        Doing::Barrier => "is done",
        Doing::Control { .. } => "administers",
        Doing::High { .. } => "is above memory.high",
    }
}
