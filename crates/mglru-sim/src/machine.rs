//! The machine: the policy, the world beneath it, and the tasks; it runs them event by event.
//!
//! A task runs on its own clock for a quantum at most, then lets others catch up. Whatever would
//! leave work on a call stack (reclaim, a device, a barrier) is state of the task instead, and the
//! task is asked again when it goes on.

use mglru::folio::Bit;
use mglru::types::{FolioId, MemcgId, Nanos, NodeId};
use mglru::{Lru, Sizes};
use mglru_workload::{GroupId, Op, Workload};

use crate::agenda::Event;
use crate::disk::{DiskId, Purpose};
use crate::error::SimError;
use crate::kswapd::Kswapd;
use crate::outcome::Recorder;
use crate::reclaiming::{Locks, Throttled};
use crate::run::Progress;
use crate::sched::{Sched, TIME_SLICE_NS};
use crate::task::{Doing, Fault, Flow, State, Task};
use crate::world::World;

/// Operations a task does before others of the same time have their turn.
const TURN_OPS: u32 = 64;
/// Accesses between two reports of progress.
const PROGRESS_STEP: u64 = 1 << 16;

/// A machine at work.
pub struct Machine {
    /// The policy.
    pub lru: Lru,
    /// What it reclaims from.
    pub world: World,
    pub(crate) tasks: Vec<Task>,
    pub(crate) workload: Box<dyn Workload>,
    pub(crate) recorder: Recorder,
    pub(crate) sched: Sched,
    pub(crate) locks: Locks,
    pub(crate) throttled: Vec<Throttled>,
    pub(crate) kswapds: Vec<Kswapd>,
    pub(crate) groups: Vec<MemcgId>,
    /// Longest readahead, pages.
    pub(crate) readahead_max: u64,
    /// Window of fault-around, pages.
    pub(crate) fault_around: u32,
    pub(crate) quantum: Nanos,
    /// An access through a descriptor that finds its page, ns.
    pub(crate) page_ns: Nanos,
    /// Tasks that wait for some write to end.
    pub(crate) syncing: Vec<u32>,
    pub(crate) flusher_waits: bool,
    /// Processor time of tasks in reclaim, ns.
    pub(crate) reclaim_ns: Nanos,
    pub(crate) oom_kills: u64,
    /// Requests to `memory.reclaim` that fell short.
    pub(crate) short_requests: u64,
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
    /// What a task did wrong, or that all wait for each other.
    pub fn run(&mut self, progress: Option<Progress<'_>>) -> Result<(), SimError> {
        let mut told = 0;
        for t in 0..self.tasks.len() {
            self.wake(t);
        }
        while self.counted > 0 {
            let Some((at, event)) = self.world.agenda.pop() else { return Err(self.deadlock()) };
            self.world.now = at;
            self.dispatch(event);
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if self.recorder.accesses >= told + PROGRESS_STEP {
                told = self.recorder.accesses;
                progress.inspect(|tell| tell(told));
            }
        }
        Ok(())
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

    /// Lets others run; a task whose time slice is over gives its CPU to one that waits for it.
    fn yield_turn(&mut self, t: usize) {
        let used = self.world.now - self.tasks[t].on_cpu_since;
        if !self.sched.is_contended() || used < TIME_SLICE_NS {
            return self.schedule(t);
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
        if self.is_dying(t) && self.tasks[t].reclaim.is_none() {
            return self.end_task(t);
        }
        match self.tasks[t].doing.clone() {
            Doing::Nothing => self.next_op(t),
            Doing::Fault(fault) => self.fault(t, fault),
            Doing::Read(read) => self.read(t, read),
            Doing::Write(write) => self.write(t, write),
            Doing::Sync(sync) => self.sync(t, sync),
            Doing::Truncate { file, page } => self.truncate(t, file, page),
            Doing::Compute { left } => self.compute(t, left),
            Doing::Barrier => Flow::Wait,
            Doing::Control { control, retries } => self.control(t, control, retries),
            Doing::High { pages, retries } => self.high(t, pages, retries),
        }
    }

    fn next_op(&mut self, t: usize) -> Flow {
        if self.tasks[t].over_high > 0
            && let Some(flow) = self.settle_high(t)
        {
            return flow;
        }
        if let Some(flow) = self.balance_dirty(t) {
            return flow;
        }
        self.end_stall(t);
        if self.tasks[t].next == self.tasks[t].ops.len() {
            self.fetch(t);
        }
        if self.run_hits(t) > 0 {
            return Flow::Done;
        }
        let task = &mut self.tasks[t];
        let op = task.ops[task.next];
        task.next += 1;
        self.begin(t, op)
    }

    /// Fetches operations, and brings what they will look at into the host's cache meanwhile.
    fn fetch(&mut self, t: usize) {
        let task = &mut self.tasks[t];
        task.ops.clear();
        task.next = 0;
        self.workload.fill(t as u32, &mut task.ops);
        let (world, ops) = (&self.world, &task.ops);
        std::hint::black_box(ops.iter().fold(0, |near, &op| near ^ world.peek(op)));
        std::hint::black_box(ops.iter().fold(0, |near, &op| near ^ world.peek_further(op)));
    }

    /// The accesses at the head of the batch that the hardware makes by itself.
    #[inline]
    fn run_hits(&mut self, t: usize) -> u64 {
        let task = &mut self.tasks[t];
        let first = task.next;
        for op in &task.ops[first..] {
            let Op::Touch { region, page, write } = *op else { break };
            if !self.world.spaces.vma_mut(region).table.access(page, write) {
                break;
            }
            task.next += 1;
        }
        let hits = (task.next - first) as u64;
        self.recorder.accesses += hits;
        self.world.now += self.world.costs.resident(hits);
        hits
    }

    fn begin(&mut self, t: usize, op: Op) -> Flow {
        match op {
            Op::Touch { region, page, write } => {
                self.recorder.accesses += 1;
                self.begin_fault(t, Fault { region, page, write, major: false })
            }
            Op::Read { file, off, len } => {
                self.recorder.accesses += 1;
                self.begin_read(t, file, off, len)
            }
            Op::Write { file, off, len } => {
                self.recorder.accesses += 1;
                self.begin_write(t, file, off, len)
            }
            Op::Fsync { file } => self.begin_sync(t, file),
            Op::Truncate { file, len } => self.begin_truncate(t, file, len),
            Op::Map { region } => {
                self.world.spaces.map(region);
                Flow::Done
            }
            Op::Unmap { region } => {
                self.unmap(region);
                Flow::Done
            }
            Op::Free { region, page, nr } => {
                self.zap(region, page, page.saturating_add(nr));
                Flow::Done
            }
            Op::Compute { ns } => {
                self.tasks[t].doing = Doing::Compute { left: ns };
                Flow::Again
            }
            Op::Think { ns } => Flow::Sleep(self.world.now + ns),
            Op::End { class } => self.end_op(t, class),
            Op::Barrier { id } => self.barrier(t, id),
            Op::Mark { phase } => self.mark(phase),
            Op::Control(control) => self.begin_control(t, control),
            Op::Done => self.end_task(t),
        }
    }

    fn compute(&mut self, t: usize, left: Nanos) -> Flow {
        let slice =
            if self.sched.is_ample(self.tasks.len()) { left } else { left.min(TIME_SLICE_NS) };
        self.world.spend(slice);
        if slice == left {
            self.tasks[t].doing = Doing::Nothing;
        } else {
            self.tasks[t].doing = Doing::Compute { left: left - slice };
        }
        Flow::Busy
    }

    fn end_op(&mut self, t: usize, class: u8) -> Flow {
        let now = self.world.now;
        let began = std::mem::replace(&mut self.tasks[t].began, now);
        self.recorder.end_op(t, class, now - began);
        Flow::Done
    }

    /// Waits until all counted tasks that have not ended are there.
    fn barrier(&mut self, t: usize, id: u32) -> Flow {
        self.tasks[t].barrier = Some(id);
        self.tasks[t].doing = Doing::Barrier;
        self.try_barriers();
        match self.tasks[t].barrier {
            None => Flow::Done,
            Some(_) => Flow::Wait,
        }
    }

    /// Lets those go on whose barrier is complete.
    fn try_barriers(&mut self) {
        let mut counted = self.tasks.iter().filter(|task| !task.background && !task.has_ended());
        let Some(id) = counted.next().and_then(|task| task.barrier) else { return };
        if !counted.all(|task| task.barrier == Some(id)) {
            return;
        }
        for t in 0..self.tasks.len() {
            if self.tasks[t].barrier == Some(id) {
                self.tasks[t].barrier = None;
                self.tasks[t].doing = Doing::Nothing;
                self.wake(t);
            }
        }
    }

    fn mark(&mut self, phase: u32) -> Flow {
        let snapshot = self.snapshot();
        self.recorder.mark(phase, self.world.now, snapshot);
        Flow::Done
    }

    /// The task ends; the last one of an address space takes its memory along, unless the run is
    /// over with it.
    fn end_task(&mut self, t: usize) -> Flow {
        self.abandon_charge(t);
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
            self.try_barriers();
        }
        Flow::Done
    }

    fn look_at(&mut self, which: DiskId) {
        let finished = self.world.take_finished(which);
        for &purpose in &finished {
            match purpose {
                Purpose::Read { file, page, pages } => self.end_read(file, page, pages),
                Purpose::Writeback { file, page, pages } => self.end_write(file, page, pages),
                Purpose::SwapIn(folio) => self.unlock(folio),
                Purpose::SwapOut(folio) => self.swapped_out(folio),
            }
        }
        self.world.give_back(finished);
    }

    fn swapped_out(&mut self, folio: FolioId) {
        self.lru.end_writeback(folio);
        self.wake_waiters(folio);
        self.reap_orphan(folio);
        self.wake_throttled();
    }

    /// A folio's data has come.
    pub(crate) fn unlock(&mut self, folio: FolioId) {
        self.lru.folios_mut()[folio].flags.clear(Bit::LOCKED);
        self.wake_waiters(folio);
        self.reap_orphan(folio);
    }

    /// Those who wait for the folio go on.
    pub(crate) fn wake_waiters(&mut self, folio: FolioId) {
        if !self.lru.folios_mut()[folio].flags.take(Bit::HOST) {
            return;
        }
        let mut woken = std::mem::take(&mut self.woken);
        self.world.waiters.take(folio, &mut woken);
        woken.drain(..).for_each(|task| self.wake(task as usize));
        self.woken = woken;
    }

    /// The task waits for the folio to be unlocked or written.
    pub(crate) fn wait_for(&mut self, t: usize, folio: FolioId) {
        self.lru.folios_mut()[folio].flags.set(Bit::HOST);
        self.world.waiters.add(folio, t as u32);
    }

    /// The task waits for the folio's data; for a page of the working set that is a stall.
    pub(crate) fn wait_for_data(&mut self, t: usize, folio: FolioId) -> Flow {
        if self.lru.folios()[folio].flags.has(Bit::WORKINGSET) {
            self.begin_stall(t);
        }
        self.wait_for(t, folio);
        Flow::Wait
    }

    /// The task begins to lose time to memory pressure.
    pub(crate) fn begin_stall(&mut self, t: usize) {
        if !std::mem::replace(&mut self.tasks[t].stalled, true) {
            self.world.stalls.begin(self.tasks[t].memcg, self.world.now);
        }
    }

    /// It goes on.
    #[inline]
    pub(crate) fn end_stall(&mut self, t: usize) {
        if std::mem::replace(&mut self.tasks[t].stalled, false) {
            self.world.stalls.end(self.tasks[t].memcg, self.world.now);
        }
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
