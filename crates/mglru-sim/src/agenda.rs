//! Keeps events to come, and which task waits for which of them.

use mglru::types::{FolioId, NodeId};

use crate::disk::DiskId;

/// Names an event of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Lets a task go on, unless it has been woken otherwise since (`epoch`).
    Task {
        /// Names the task.
        task: u32,
        /// The wait that this event ends.
        epoch: u32,
    },
    /// Frees a CPU.
    CpuFree,
    /// Asks a device whether it has finished a request.
    Disk(DiskId),
    /// Wakes the flushers to find work.
    Flusher,
    /// Wakes the flushers to find data that has been dirty for long.
    FlusherTick,
    /// Commits the journal's transaction, which has been open for long enough.
    Commit,
    /// Sums up the statistics of groups.
    FlushStats,
    /// Wakes the kswapd of a node to find work.
    Kswapd(NodeId),
}

/// Holds the tasks that wait for a folio to be unlocked or written, in order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    waiting: Vec<(FolioId, u32)>,
}

impl Waiters {
    /// Adds a task that waits for a folio.
    pub fn add(&mut self, folio: FolioId, task: u32) {
        self.waiting.push((folio, task));
    }

    /// Takes the tasks that wait for a folio.
    pub fn take(&mut self, folio: FolioId, out: &mut Vec<u32>) {
        self.waiting.retain(|&(f, task)| {
            if f == folio {
                out.push(task);
            }
            f != folio
        });
    }

    /// Tells which folio a task waits for.
    pub fn awaited_by(&self, task: u32) -> Option<FolioId> {
        self.waiting.iter().find(|(_, t)| *t == task).map(|(folio, _)| *folio)
    }

    /// Removes a task that waits no more.
    pub fn forget(&mut self, task: u32) {
        self.waiting.retain(|&(_, t)| t != task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_woken_in_order_and_once() {
        let mut waiters = Waiters::default();
        waiters.add(FolioId(1), 10);
        waiters.add(FolioId(2), 11);
        waiters.add(FolioId(1), 12);
        waiters.add(FolioId(1), 13);
        waiters.forget(12);
        let mut woken = Vec::new();
        waiters.take(FolioId(1), &mut woken);
        waiters.take(FolioId(1), &mut woken);
        assert_eq!(woken, [10, 13]);
    }
}
