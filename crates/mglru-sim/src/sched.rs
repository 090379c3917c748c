//! The processors: as many tasks run at once as there are CPUs; the others queue, first come,
//! first served.

use std::collections::VecDeque;

use mglru::types::Nanos;

/// Bounds the time that a task keeps a CPU which others want.
pub const TIME_SLICE_NS: Nanos = 3_000_000;

/// Holds the CPUs and the queue before them.
#[derive(Clone, Debug)]
pub struct Sched {
    cpus: u32,
    idle: u32,
    queue: VecDeque<u32>,
}

impl Sched {
    /// Creates the scheduler of a machine of `cpus` idle CPUs.
    pub fn new(cpus: u32) -> Self {
        Self { cpus, idle: cpus, queue: VecDeque::new() }
    }

    /// Returns the processor that a task keeps to.
    #[inline]
    pub fn home(&self, task: usize) -> u32 {
        task as u32 % self.cpus
    }

    /// Counts the processors.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Gives a CPU to a task that wants to run; `true`: it has one now, otherwise it is queued.
    pub fn enter(&mut self, task: u32) -> bool {
        if self.idle > 0 && self.queue.is_empty() {
            self.idle -= 1;
            return true;
        }
        self.queue.push_back(task);
        false
    }

    /// Frees a CPU; returns the task that gets it, if one waits.
    pub fn leave(&mut self) -> Option<u32> {
        let next = self.queue.pop_front();
        self.idle += u32::from(next.is_none());
        next
    }

    /// Ends a task's time slice and names the task that gets its CPU.
    pub fn replace(&mut self, task: u32) -> Option<u32> {
        self.queue.push_back(task);
        self.queue.pop_front()
    }

    /// Tells whether so many tasks never wait for a CPU.
    #[inline]
    pub fn is_ample(&self, tasks: usize) -> bool {
        tasks <= self.cpus as usize
    }

    /// Does anybody wait for a CPU?
    #[inline]
    pub fn is_contended(&self) -> bool {
        !self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_beyond_the_cpus_queue_in_order() {
        let mut sched = Sched::new(2);
        assert!(sched.enter(0) && sched.enter(1));
        assert!(!sched.enter(2) && !sched.enter(3));
        assert!(sched.is_contended());
        assert_eq!([sched.leave(), sched.leave(), sched.leave()], [Some(2), Some(3), None]);
        assert!(!sched.is_contended() && sched.enter(4) && !sched.enter(5));
        assert_eq!(sched.replace(4), Some(5));
        assert!(sched.is_ample(2) && !sched.is_ample(3));
    }
}
