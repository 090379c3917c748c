//! A workload whose writes are reads, as they are for a flat cache: a whole page written is a page
//! the device never had to give.

use crate::op::{Layout, Op, TaskId, Workload};

/// Makes every write of another workload a read.
pub struct ReadsOnly<W>(pub W);

impl<W: Workload> Workload for ReadsOnly<W> {
    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn next(&mut self, task: TaskId) -> Op {
        match self.0.next(task) {
            Op::Write { file, off, len } => Op::Read { file, off, len },
            Op::Touch { region, page, .. } => Op::Touch { region, page, write: false },
            op => op,
        }
    }

    fn string_hash(&self) -> u64 {
        self.0.string_hash()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        self.0.figures()
    }

    fn total_ops(&self) -> Option<u64> {
        self.0.total_ops()
    }
}
