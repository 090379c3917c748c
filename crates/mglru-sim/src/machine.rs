//! The machine: the policy, the world beneath it, and the tasks; it runs them event by event.
//!
//! A task runs on its own clock for a quantum at most, then lets others catch up. Whatever would
//! leave work on a call stack (reclaim, a device, a barrier) is state of the task instead, and the
//! task is asked again when it goes on.

use mglru::Bit;
use mglru::types::{FolioId, MemcgId, Nanos, NodeId};
use mglru::{Lru, Sizes};
use mglru_workload::{GroupId, Workload};

use crate::agenda::Event;
use crate::disk::{DiskId, Purpose};
use crate::error::SimError;
use crate::explain::Watched;
use crate::kswapd::Kswapd;
use crate::outcome::Recorder;
use crate::reclaiming::{Locks, Throttled};
use crate::run::Progress;
use crate::samples::Samples;
use crate::sched::{Sched, TIME_SLICE_NS};
use crate::task::{Doing, Flow, State, Task};
use crate::tracing::Who;
use crate::world::World;

/// Operations a task does before others of the same time have their turn.
const TURN_OPS: u32 = 64;
/// Accesses between two reports of progress.
const PROGRESS_STEP: u64 = 1 << 16;

/// Holds a machine at work.
pub struct Machine {
    /// Holds the policy.
    pub lru: Lru,
    /// Holds the world that it reclaims from.
    pub world: World,
    pub(crate) tasks: Vec<Task>,
    pub(crate) workload: Box<dyn Workload>,
    pub(crate) recorder: Recorder,
    pub(crate) sched: Sched,
    pub(crate) locks: Locks,
    pub(crate) throttled: Vec<Throttled>,
    pub(crate) kswapds: Vec<Kswapd>,
    pub(crate) groups: Vec<MemcgId>,
    /// Removed groups that still hold something.
    pub(crate) removed: Vec<MemcgId>,
    /// Longest readahead, pages.
    pub(crate) readahead_max: u64,
    /// The page that starts the next window when it is read.
    pub(crate) readahead_mark: Bit,
    /// Window of fault-around, pages.
    pub(crate) fault_around: u32,
    /// Pages brought in by a fault on the swap device at most.
    pub(crate) swap_cluster: u32,
    /// Pages charged at a time.
    pub(crate) charge_batch: u64,
    pub(crate) quantum: Nanos,
    /// An access through a descriptor that finds its page, ns.
    pub(crate) page_ns: Nanos,
    /// Tasks that wait for some write to end.
    pub(crate) syncing: Vec<u32>,
    /// Tasks in reclaim that wait for room in the swap device's queue.
    pub(crate) swapping: Vec<u32>,
    pub(crate) flusher_waits: bool,
    /// Processor time of tasks in reclaim, ns.
    pub(crate) reclaim_ns: Nanos,
    pub(crate) oom_kills: u64,
    /// Requests to `memory.reclaim` that fell short.
    pub(crate) short_requests: u64,
    /// Commands that this kernel does not know.
    pub(crate) refused_commands: u64,
    /// How often the statistics of groups are summed up, ns; 0: they are exact.
    pub(crate) stat_flush: Nanos,
    /// Records the life of one page.
    pub(crate) watched: Option<Box<Watched>>,
    /// Looks taken on the way, where they are wanted.
    pub(crate) samples: Option<Samples>,
    /// Folios that nobody wants and a device works on.
    pub(crate) orphans: u64,
    /// Tasks that the run waits for.
    pub(crate) counted: usize,
    pub(crate) error: Option<SimError>,
    pub(crate) woken: Vec<u32>,
}

impl Machine {
    /// Runs until every counted task has ended.
    ///
    /// # Errors
    /// Says what a task did wrong, or that all wait for each other.
    pub fn run(&mut self, progress: Option<Progress<'_>>) -> Result<(), SimError> {
        let mut reported = 0;
        self.start();
        while self.turn()? {
            if self.recorder.accesses >= reported + PROGRESS_STEP {
                reported = self.recorder.accesses;
                progress.inspect(|report| report(reported));
            }
        }
        Ok(())
    }

    /// Has every task want to run, and the clock of statistics tick.
    pub(crate) fn start(&mut self) {
        for t in 0..self.tasks.len() {
            self.wake(t);
        }
        if self.stat_flush > 0 {
            self.sum_up();
            self.world.agenda.push(self.stat_flush / 2, Event::FlushStats);
        }
    }

    /// Carries out the next event; `false`: every counted task has ended.
    pub(crate) fn turn(&mut self) -> Result<bool, SimError> {
        if self.counted == 0 {
            return Ok(false);
        }
        let Some((at, event)) = self.world.agenda.pop() else { return Err(self.deadlock()) };
        self.world.now = at;
        self.dispatch(event);
        self.settle_events(at);
        self.look_if_due();
        self.pass_list_events()?;
        self.error.take().map_or(Ok(true), Err)
    }

    /// Sums the statistics of groups up, and again after a period, unless nothing else is to come.
    fn flush_stats(&mut self) {
        self.sum_up();
        if !self.world.agenda.is_empty() {
            self.world.agenda.push(self.world.now + self.stat_flush, Event::FlushStats);
        }
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::Task { task, epoch } => {
                if self.tasks[task as usize].epoch == epoch {
                    self.resume(task as usize);
                }
            }
            Event::CpuFree => {
                if let Some(task) = self.sched.leave() {
                    self.go(task as usize);
                }
            }
            Event::Disk(disk) => self.look_at(disk),
            Event::Flusher => self.run_flushers(),
            Event::FlusherTick => self.flusher_tick(),
            Event::Commit => self.commit(),
            Event::FlushStats => self.flush_stats(),
            Event::Kswapd(node) => self.run_kswapd(node),
        }
    }

    /// The time of a task's event has come.
    fn resume(&mut self, t: usize) {
        match self.tasks[t].state {
            State::Blocked => self.wake(t),
            State::Running => self.run_task(t),
            State::Queued | State::Ended => {}
        }
    }

    /// A blocked task wants to go on.
    pub(crate) fn wake(&mut self, t: usize) {
        if self.tasks[t].state != State::Blocked {
            return;
        }
        self.unthrottle(t);
        self.world.waiters.forget(t as u32);
        let task = &mut self.tasks[t];
        if !task.stalled {
            self.world.stalls.wake(task.memcg, self.world.now);
        }
        task.state = State::Queued;
        if self.sched.enter(t as u32) {
            self.go(t);
        }
    }

    /// A blocked task wants to go on, now or later.
    pub(crate) fn wake_at(&mut self, t: usize, at: Nanos) {
        if at <= self.world.now {
            self.wake(t);
        } else if self.tasks[t].state == State::Blocked {
            let epoch = self.next_epoch(t);
            self.world.agenda.push(at, Event::Task { task: t as u32, epoch });
        }
    }

    /// A task has a CPU.
    fn go(&mut self, t: usize) {
        let task = &mut self.tasks[t];
        task.state = State::Running;
        task.on_cpu_since = self.world.now;
        let mm = self.world.spaces.mm(task.mm).id;
        self.lru.mm_ran(mm, task.node);
        self.schedule(t);
    }

    /// Has the running task go on at its own time.
    fn schedule(&mut self, t: usize) {
        let epoch = self.next_epoch(t);
        self.world.agenda.push(self.world.now, Event::Task { task: t as u32, epoch });
    }

    fn next_epoch(&mut self, t: usize) -> u32 {
        self.tasks[t].epoch = self.tasks[t].epoch.wrapping_add(1);
        self.tasks[t].epoch
    }

    /// Runs a task until it blocks or its turn is over.
    fn run_task(&mut self, t: usize) {
        self.world.run_on(t);
        self.world.acts(Who::Task(t as u32));
        self.lru.run_on_cpu(self.sched.home(t));
        let deadline = self.world.now + self.quantum;
        let mut ops = 0;
        loop {
            let flow = self.step(t);
            match flow {
                Flow::Again | Flow::Busy => {}
                Flow::Done => {
                    self.tasks[t].doing = Doing::Nothing;
                    ops += 1;
                }
                Flow::Sleep(at) => return self.block(t, Some(at)),
                Flow::Wait => return self.block(t, None),
            }
            if self.tasks[t].has_ended() || self.error.is_some() {
                return;
            }
            if ops >= TURN_OPS || self.world.now >= deadline || flow == Flow::Busy {
                return self.yield_turn(t);
            }
        }
    }

    /// Lets others run; a task whose time slice is over gives its CPU to one that waits for it, or
    /// to a thread of the kernel for a moment, and is switched in again.
    fn yield_turn(&mut self, t: usize) {
        let used = self.world.now - self.tasks[t].on_cpu_since;
        if used < TIME_SLICE_NS {
            return self.schedule(t);
        }
        if !self.sched.is_contended() {
            return self.go(t);
        }
        self.tasks[t].state = State::Queued;
        self.next_epoch(t);
        if let Some(next) = self.sched.replace(t as u32) {
            self.go(next as usize);
        }
    }

    /// The task leaves its CPU, until `until` or until somebody wakes it.
    fn block(&mut self, t: usize, until: Option<Nanos>) {
        let epoch = self.next_epoch(t);
        let now = self.world.now;
        let task = &mut self.tasks[t];
        task.state = State::Blocked;
        if !task.stalled {
            self.world.stalls.sleep(task.memcg, now);
        }
        if let Some(at) = until {
            self.world.agenda.push(at, Event::Task { task: t as u32, epoch });
        }
        self.leave_cpu();
    }

    fn leave_cpu(&mut self) {
        if self.sched.is_ample(self.tasks.len()) {
            self.sched.leave();
        } else {
            self.world.agenda.push(self.world.now, Event::CpuFree);
        }
    }

    /// One step of whatever the task is in.
    fn step(&mut self, t: usize) -> Flow {
        if self.is_dying(t) {
            return self.die(t);
        }
        match self.tasks[t].doing {
            Doing::Nothing => self.next_op(t),
            Doing::Fault(fault) => self.fault(t, fault),
            Doing::Read(read) => self.read(t, read),
            Doing::Write(write) => self.write(t, write),
            Doing::Sync(ref sync) => {
                let sync = sync.clone();
                self.sync(t, sync)
            }
            Doing::Truncate { file, page } => self.truncate(t, file, page),
            Doing::Compute { left } => self.compute(t, left),
            Doing::Block(_) => self.try_for_block(t),
            Doing::Barrier => Flow::Wait,
            Doing::Control { control, retries } => self.control(t, control, retries),
            Doing::High { pages, retries } => self.high(t, pages, retries),
        }
    }

    /// The task ends; the last one of an address space takes its memory along, unless the run is
    /// over with it.
    pub(crate) fn end_task(&mut self, t: usize) -> Flow {
        self.abandon_charge(t);
        self.drain_stock(t);
        self.abandon_fill(t);
        self.end_stall(t);
        self.world.waiters.forget(t as u32);
        self.world.stalls.sleep(self.tasks[t].memcg, self.world.now);
        let task = &mut self.tasks[t];
        task.state = State::Ended;
        task.barrier = None;
        let mm = task.mm;
        self.counted -= usize::from(!task.background);
        self.leave_cpu();
        if self.counted > 0 {
            if !self.tasks.iter().any(|task| task.mm == mm && !task.has_ended()) {
                self.world.spaces.mm_mut(mm).dead = true;
                self.unmap_all(mm);
                self.lru.remove_mm(self.world.spaces.mm(mm).id);
            }
            self.try_barriers(self.tasks[t].barrier_set);
        }
        Flow::Done
    }

    fn look_at(&mut self, which: DiskId) {
        let finished = self.world.take_finished(which);
        for &purpose in &finished {
            match purpose {
                Purpose::Read { file, page, pages } => self.end_read(file, page, pages),
                Purpose::Writeback { file, page, pages } => self.end_write(file, page, pages),
                Purpose::Commit => self.committed(),
                Purpose::SwapIn(folio) => self.unlock(folio),
                Purpose::SwapOut(folio) => self.swapped_out(folio),
            }
        }
        self.world.give_back(finished);
        self.wake_swapping();
    }

    /// Wakes tasks that wait for room in the swap device's queue, when there is some.
    fn wake_swapping(&mut self) {
        if self.swapping.is_empty() && self.kswapds.iter().all(|kswapd| !kswapd.awaits_swap) {
            return;
        }
        if self.world.has_swap_room() {
            let waiting = std::mem::take(&mut self.swapping);
            waiting.into_iter().for_each(|task| self.wake(task as usize));
            self.wake_swapping_kswapds();
        }
    }

    fn swapped_out(&mut self, folio: FolioId) {
        self.lru.end_writeback(folio);
        self.wake_waiters(folio);
        self.reap_orphan(folio);
        self.wake_throttled();
    }

    /// The run cannot go on.
    pub(crate) fn fail(&mut self, error: SimError) -> Flow {
        self.error = Some(error);
        Flow::Wait
    }

    /// Length of a timer tick, ns.
    pub(crate) fn tick(&self) -> Nanos {
        self.lru.config().tick_ns
    }

    /// When a sleep of at most so long is over: timers of the kernel end with a tick, and none ends
    /// early (a booted 6.12 throttled for one tick of 4 ms was asleep 7.5 ms in the mean).
    pub(crate) fn timeout(&self, at_most: Nanos) -> Nanos {
        let until = self.world.now.saturating_add(at_most);
        until.checked_next_multiple_of(self.tick()).unwrap_or(until)
    }

    /// The memcg of a group of the layout.
    pub(crate) fn group(&self, group: GroupId) -> MemcgId {
        self.groups[group as usize]
    }

    /// Sizes of every group's lists on a node.
    pub(crate) fn all_sizes(&self, node: NodeId) -> impl Iterator<Item = Sizes> + '_ {
        let memcgs = 0..self.world.memcgs.len() as u32;
        memcgs.map(move |memcg| self.lru.sizes(MemcgId(memcg), node))
    }

    fn deadlock(&self) -> SimError {
        let blocked: Vec<&Task> = self.tasks.iter().filter(|t| !t.has_ended()).collect();
        let waits = blocked.first().map_or(String::new(), |t| format!("{:?}", t.doing));
        SimError::Deadlock { blocked: blocked.len(), waits }
    }
}
