//! A job at the pace it was measured at: what the kernel does by the clock (statistics, flushers)
//! then falls between the same accesses.

use mglru_workload::job::JobWorkload;
use mglru_workload::{Layout, Op, TaskId, Workload, fill_batch};

/// Time owed before it is spent, ns.
const PORTION: u64 = 200_000;

/// A job whose accesses take as long as they took.
#[derive(Debug)]
pub(super) struct Paced {
    job: JobWorkload,
    /// Nanoseconds per access, by step.
    pace: Vec<u64>,
    step: usize,
    owed: u64,
}

impl Paced {
    /// `pace`: nanoseconds per access, by step of the job.
    pub(super) fn new(job: JobWorkload, pace: Vec<u64>) -> Self {
        Self { job, pace, step: 0, owed: 0 }
    }
}

impl Workload for Paced {
    fn layout(&self) -> Layout {
        self.job.layout()
    }

    fn next(&mut self, task: TaskId) -> Op {
        if self.owed >= PORTION {
            return Op::Compute { ns: std::mem::take(&mut self.owed) };
        }
        let op = self.job.next(task);
        match op {
            Op::Mark { phase } => self.step = phase as usize,
            Op::Touch { .. } | Op::Read { .. } | Op::Write { .. } => {
                self.owed += self.pace.get(self.step).copied().unwrap_or(0);
            }
            _ => {}
        }
        op
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        fill_batch(self, task, out);
    }

    fn string_hash(&self) -> u64 {
        self.job.string_hash()
    }

    fn total_ops(&self) -> Option<u64> {
        self.job.total_ops()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_workload::job::Job;

    #[test]
    fn accesses_take_as_long_as_they_took() {
        let text = "seed 1\nregion kind=anon pages=8\n\
                    stream region=0 gen=seq n=8 base=0 start=0 wr=1000\n\
                    phase a ops=10 mix=0:1\nsleep 1\nphase b ops=4 mix=0:1\n";
        let job = JobWorkload::new(Job::parse(text).unwrap());
        let mut paced = Paced::new(job, vec![100_000, 0, 250_000]);
        let mut ops = Vec::new();
        while ops.last() != Some(&Op::Done) {
            paced.fill(0, &mut ops);
        }
        let spent: Vec<u64> = ops
            .iter()
            .filter_map(|op| if let Op::Compute { ns } = op { Some(*ns) } else { None })
            .collect();
        assert_eq!(spent, [vec![200_000; 5], vec![250_000; 4]].concat());
    }
}
