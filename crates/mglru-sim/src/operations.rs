//! Operations of a workload: fetched in batches, begun one by one; runs of accesses that the
//! hardware makes by itself are the hot path.

use mglru::types::Nanos;
use mglru_workload::Op;

use crate::machine::Machine;
use crate::sched::TIME_SLICE_NS;
use crate::task::{Doing, Fault, Flow};

impl Machine {
    /// Pays what the task owes, then begins its next operation.
    pub(crate) fn next_op(&mut self, t: usize) -> Flow {
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
        let (world, folios, ops) = (&self.world, self.lru.folios(), &task.ops);
        if ops.iter().fold(true, |ready, &op| ready & world.peek(op)) {
            return;
        }
        std::hint::black_box(ops.iter().fold(0, |near, &op| near ^ world.peek_further(op)));
        std::hint::black_box(ops.iter().fold(0, |near, &op| near ^ world.peek_last(op, folios)));
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
            Op::Lock { region } => self.lock(t, region),
            Op::Unlock { region } => self.unlock_region(region),
            Op::Advise { region, page, nr, advice } => self.advise(t, region, page, nr, advice),
            Op::AdviseFile { file, page, nr, advice } => {
                self.advise_file(t, file, page..page.saturating_add(nr), advice)
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
            Op::Kernel(op) => self.begin_kernel(t, op),
            Op::Done => self.end_task(t),
        }
    }

    /// Uses the processor, a time slice at a time where others may want it.
    pub(crate) fn compute(&mut self, t: usize, left: Nanos) -> Flow {
        let slice =
            if self.sched.is_ample(self.tasks.len()) { left } else { left.min(TIME_SLICE_NS) };
        self.world.now += slice;
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
        // Tasks take turns: one that another's earlier turn woke goes on before it stopped.
        self.recorder.end_op(t, class, now.saturating_sub(began));
        Flow::Done
    }

    /// Has the task do this before its next operation.
    pub(crate) fn push_op(&mut self, t: usize, op: Op) {
        let task = &mut self.tasks[t];
        debug_assert!(task.next > 0, "an operation was begun");
        task.next -= 1;
        task.ops[task.next] = op;
    }

    /// Waits until all counted tasks of its barrier set that have not ended are there.
    fn barrier(&mut self, t: usize, id: u32) -> Flow {
        let now = self.world.now;
        self.tasks[t].barrier = Some(id);
        self.tasks[t].arrived = now;
        self.tasks[t].doing = Doing::Barrier;
        match self.try_barriers(self.tasks[t].barrier_set) {
            Some(at) if at > now => Flow::Sleep(at),
            Some(_) => Flow::Done,
            None => Flow::Wait,
        }
    }

    /// Opens a barrier that all of a set have come to, at the time the last one did: tasks take
    /// turns, so one whose turn is later may have come earlier. That time, if one was opened.
    pub(crate) fn try_barriers(&mut self, barrier_set: Option<u32>) -> Option<Nanos> {
        barrier_set?;
        let members = || self.tasks.iter().filter(|task| task.barrier_set == barrier_set);
        let mut counted = members().filter(|task| !task.has_ended());
        let id = counted.next()?.barrier?;
        if !counted.all(|task| task.barrier == Some(id)) {
            return None;
        }
        let here = members().filter(|task| task.barrier == Some(id));
        let opens = here.map(|task| task.arrived).max()?;
        for t in 0..self.tasks.len() {
            if self.tasks[t].barrier_set == barrier_set && self.tasks[t].barrier == Some(id) {
                self.tasks[t].barrier = None;
                self.tasks[t].doing = Doing::Nothing;
                self.wake_at(t, opens);
            }
        }
        Some(opens)
    }

    fn mark(&mut self, phase: u32) -> Flow {
        let snapshot = self.snapshot();
        self.recorder.mark(phase, self.world.now, snapshot);
        if self.stat_flush > 0 {
            self.sum_up();
        }
        Flow::Done
    }
}
