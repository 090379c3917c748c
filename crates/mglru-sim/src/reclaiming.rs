//! A task that reclaims: each step of the policy is one piece of its processor time, holds of an
//! lruvec's lock do not overlap, and throttled tasks sleep until woken or timed out (spec §9.4).

use mglru::types::{LruvecId, MemcgId, Nanos, NodeId};
use mglru::{Reclaim, Step, Throttle, Wakes, Work};

use crate::machine::Machine;
use crate::task::Flow;
use crate::tracing::{Slept, Who};

/// Says how far a task's reclaim has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Says that reclaim goes on later.
    Held(Flow),
    /// Says that reclaim is over, and counts pages reclaimed.
    Done(u64),
}

/// Records when each lruvec's lock is free again.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    free_at: Vec<Nanos>,
    /// Counts the time spent waiting for locks, ns.
    pub waited: Nanos,
    /// Holds in which folios were handled.
    pub holds: u64,
    /// Counts the folios handled in all holds.
    pub held_folios: u64,
    /// Holds the most folios handled in one hold.
    pub held_max: u64,
}

impl Locks {
    /// Takes a lock at `now` to handle `folios` for `each`; the time at which it is given back.
    pub fn hold(&mut self, lruvec: LruvecId, now: Nanos, folios: u32, each: Nanos) -> Nanos {
        let folios = u64::from(folios);
        self.holds += u64::from(folios > 0);
        self.held_folios += folios;
        self.held_max = self.held_max.max(folios);
        if self.free_at.len() <= lruvec.index() {
            self.free_at.resize(lruvec.index() + 1, 0);
        }
        let free_at = &mut self.free_at[lruvec.index()];
        let start = now.max(*free_at);
        self.waited += start - now;
        *free_at = start + folios * each;
        *free_at
    }
}

/// A task asleep in reclaim, and what may wake it early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throttled {
    task: u32,
    slept: Slept,
}

impl Machine {
    /// Enters reclaim: the task stalls for memory until it is over.
    pub(crate) fn begin_reclaim(&mut self, t: usize, reclaim: Reclaim) {
        self.begin_stall(t);
        self.tasks[t].reclaim = Some(Box::new(reclaim));
    }

    /// Runs the task's reclaim until it is over, must wait, or others want their turn.
    pub(crate) fn reclaim_on(&mut self, t: usize) -> Progress {
        let mut reclaim = self.tasks[t].reclaim.take().expect("a reclaim is under way");
        let held = loop {
            let began = self.world.now;
            let step = reclaim.step(&mut self.lru, &mut self.world);
            match step {
                Step::Again(work) => {
                    self.pay(work, began);
                    self.reclaim_ns += self.world.now - began;
                    self.wake_throttled();
                    if self.world.takes_no_more_swap() {
                        // A task that submits a request waits for a free one.
                        self.swapping.push(t as u32);
                        break Flow::Wait;
                    }
                    if self.others_first() {
                        break Flow::Busy;
                    }
                }
                Step::Sleep { reason, at_most } => {
                    let slept = Slept::new(&reclaim, reason, at_most, self.world.now);
                    break self.throttle(t, slept);
                }
                Step::Done { reclaimed } => {
                    self.reclaim_ns += self.world.now - began;
                    self.wake_throttled();
                    self.end_stall(t);
                    self.release_removed();
                    return Progress::Done(reclaimed);
                }
            }
        };
        self.tasks[t].reclaim = Some(reclaim);
        Progress::Held(held)
    }

    /// Spends the processor time of one step that began at `began`. The lock is held first, so that
    /// nobody waits for a hold that lies in another's future.
    pub(crate) fn pay(&mut self, work: Work, began: Nanos) {
        let costs = &self.world.costs;
        let judged = u64::from(work.scanned) * costs.scan_ns;
        if let Some(lruvec) = work.lruvec {
            self.world.now += self.locks.hold(lruvec, began, work.held, costs.lru_lock_ns) - began;
        }
        self.world.spend(judged);
    }

    /// Is something due that comes before what the running task does next?
    #[inline]
    pub(crate) fn others_first(&self) -> bool {
        self.world.agenda.peek_time().is_some_and(|at| at <= self.world.now)
    }

    fn throttle(&mut self, t: usize, slept: Slept) -> Flow {
        let task = t as u32;
        if let Throttle::Folio(folio) = slept.reason {
            self.wait_for(t, folio);
            return Flow::Wait;
        }
        // Deliver pending wake-ups first: they were raised before this task was throttled.
        self.take_all_wakes();
        self.throttled.push(Throttled { task, slept });
        Flow::Sleep(self.timeout(slept.at_most))
    }

    /// Tells what a task is throttled for.
    pub(crate) fn throttled_for(&self, t: usize) -> Option<Throttle> {
        self.throttled.iter().find(|x| x.task == t as u32).map(|x| x.slept.reason)
    }

    /// A task wakes: if it was throttled, it is no longer.
    pub(crate) fn unthrottle(&mut self, t: usize) {
        let (task, world) = (t as u32, &mut self.world);
        self.throttled.retain(|x| {
            if x.task == task {
                world.trace_throttled(Who::Task(task), &x.slept);
            }
            x.task != task
        });
    }

    /// Lets those throttled tasks go on whose reason has passed.
    pub(crate) fn wake_throttled(&mut self) {
        if self.throttled.is_empty() {
            return;
        }
        self.take_all_wakes();
    }

    /// Wakes tasks as [`Self::wake_throttled`] does, and clears what nobody waits for. Thrashing
    /// (`min_ttl`) kills.
    pub(crate) fn take_all_wakes(&mut self) {
        for node in 0..self.world.zones.nodes() as u8 {
            let wakes = self.lru.take_wakes(NodeId(node));
            if wakes.out_of_memory {
                self.kill_largest(MemcgId::ROOT);
            }
            let is_woken = |x: &&Throttled| released(x.slept.reason, &wakes);
            let woken: Vec<u32> = self.throttled.iter().filter(is_woken).map(|x| x.task).collect();
            woken.into_iter().for_each(|task| self.wake(task as usize));
        }
    }
}

fn released(reason: Throttle, wakes: &Wakes) -> bool {
    match reason {
        Throttle::Writeback => wakes.writeback,
        Throttle::Isolated => wakes.isolated,
        Throttle::Noprogress => wakes.noprogress,
        Throttle::Congested | Throttle::Folio(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_of_one_lock_do_not_overlap() {
        let mut locks = Locks::default();
        assert_eq!(locks.hold(LruvecId(3), 100, 5, 10), 150);
        assert_eq!(locks.hold(LruvecId(3), 120, 1, 10), 160);
        assert_eq!(locks.hold(LruvecId(0), 120, 1, 10), 130);
        assert_eq!(locks.hold(LruvecId(3), 200, 0, 10), 200);
        assert_eq!(locks.waited, 30);
        assert_eq!((locks.holds, locks.held_folios, locks.held_max), (3, 7, 5));
    }
}
