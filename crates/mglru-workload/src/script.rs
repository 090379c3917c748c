//! Workloads made of steps: a script appends what a task does next, a request or a transaction at
//! a time, and [`Scripted`] hands it out one operation after the other.

use crate::op::{Layout, Op, TaskId, Workload};

/// Holds the operations of tasks, step by step.
pub trait Script: Send {
    /// Returns the layout that the operations refer to.
    fn layout(&self) -> Layout;

    /// Appends the task's next operations, at least one; the last of all is [`Op::Done`].
    fn step(&mut self, task: TaskId, out: &mut Vec<Op>);

    /// Returns the hash of the reference strings drawn so far.
    fn string_hash(&self) -> u64;

    /// Returns figures the script itself measures.
    fn figures(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Returns the number of operations in all.
    fn total_ops(&self) -> u64;

    /// Returns the upper ends of the latency classes a report counts, ns.
    fn latency_edges_ns(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// Runs a script as a workload.
#[derive(Debug)]
pub struct Scripted<S> {
    script: S,
    /// The operations that each task got and has not done, last first.
    queues: Vec<Vec<Op>>,
}

impl<S: Script> Scripted<S> {
    /// Creates a workload of which nothing is done yet.
    pub fn new(script: S) -> Self {
        let tasks = script.layout().tasks.len();
        Self { script, queues: vec![Vec::new(); tasks] }
    }
}

impl<S: Script> Workload for Scripted<S> {
    fn layout(&self) -> Layout {
        self.script.layout()
    }

    fn next(&mut self, task: TaskId) -> Op {
        let queue = &mut self.queues[task as usize];
        if queue.is_empty() {
            self.script.step(task, queue);
            queue.reverse();
        }
        queue.pop().expect("a step has at least one operation")
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        let queue = &mut self.queues[task as usize];
        match queue.is_empty() {
            true => self.script.step(task, out),
            false => out.extend(queue.drain(..).rev()),
        }
    }

    fn string_hash(&self) -> u64 {
        self.script.string_hash()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        self.script.figures()
    }

    fn total_ops(&self) -> Option<u64> {
        Some(self.script.total_ops())
    }

    fn latency_edges_ns(&self) -> Vec<u64> {
        self.script.latency_edges_ns()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every task's operations, tasks taking turns step by step; barriers are not waited for.
    pub(crate) fn strings(workload: &mut dyn Workload) -> Vec<Vec<Op>> {
        let mut tasks = vec![Vec::new(); workload.layout().tasks.len()];
        while tasks.iter().any(|ops| ops.last() != Some(&Op::Done)) {
            for (task, ops) in (0..).zip(&mut tasks) {
                if ops.last() != Some(&Op::Done) {
                    workload.fill(task, ops);
                }
            }
        }
        tasks
    }

    /// Operations that end, by class.
    pub(crate) fn ends(tasks: &[Vec<Op>], class: u8) -> usize {
        tasks.iter().flatten().filter(|op| **op == Op::End { class }).count()
    }

    struct Count(u32);

    impl Script for Count {
        fn layout(&self) -> Layout {
            let mut layout = Layout::default();
            crate::pages::add_task(&mut layout, 0, "");
            layout
        }

        fn step(&mut self, _: TaskId, out: &mut Vec<Op>) {
            self.0 += 1;
            let own = [Op::Compute { ns: 1 }, Op::End { class: 0 }];
            out.extend(own.into_iter().take_while(|_| self.0 < 3));
            out.extend((self.0 == 3).then_some(Op::Done));
        }

        fn string_hash(&self) -> u64 {
            0
        }

        fn total_ops(&self) -> u64 {
            2
        }
    }

    #[test]
    fn steps_are_handed_out_whole_or_one_by_one() {
        let mut batched = Vec::new();
        let mut workload = Scripted::new(Count(0));
        let first = workload.next(0);
        while batched.last() != Some(&Op::Done) {
            workload.fill(0, &mut batched);
        }
        let (compute, end) = (Op::Compute { ns: 1 }, Op::End { class: 0 });
        assert_eq!((first, batched), (compute, vec![end, compute, end, Op::Done]));
    }
}
