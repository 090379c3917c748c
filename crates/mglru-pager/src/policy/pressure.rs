//! The averages of pressure move, for as long as there is any.

use std::collections::HashMap;

use super::Policy;
use crate::pressure::PERIOD;
use crate::sys::clock;
use crate::sys::tasks::{Folder, Task};

/// State kept from one look at the program's threads to the next.
#[derive(Debug, Default)]
pub(super) struct Watch {
    next: u64,
    /// Processor time of each thread, nanoseconds.
    used_ns: HashMap<u32, u64>,
    /// Opened before the program runs; without /proc every stall is one of all threads.
    folder: Option<Folder>,
}

impl Watch {
    /// Opens what it looks at.
    pub(super) fn new() -> Self {
        Self { folder: Folder::open().ok(), ..Self::default() }
    }

    fn look(&mut self) -> u32 {
        let tasks = self.folder.as_ref().and_then(|folder| folder.tasks().ok());
        self.working(&tasks.unwrap_or_default())
    }

    /// Counts threads of the program that used the processor since the last look.
    fn working(&mut self, tasks: &[Task]) -> u32 {
        let before = std::mem::take(&mut self.used_ns);
        let program = || tasks.iter().filter(|task| !task.own);
        self.used_ns = program().map(|task| (task.id, task.used_ns)).collect();
        let used = |task: &&Task| before.get(&task.id) != Some(&task.used_ns);
        program().filter(used).count() as u32
    }
}

impl Policy {
    /// Two seconds are over: the averages move.
    pub(super) fn tick_pressure(&mut self) {
        let now = clock::monotonic();
        if now < self.watch.next || self.is_calm() {
            return;
        }
        self.watch.next = now + PERIOD;
        let working = self.watch.look();
        self.world.accounts.iter().for_each(|account| account.pressure.tick(now, working));
    }

    /// When they are to move next, if time alone moves them, on the policy's clock.
    pub(super) fn next_tick(&self) -> Option<u64> {
        let left = self.watch.next.saturating_sub(clock::monotonic());
        (!self.is_calm()).then(|| self.world.clock.now() + left)
    }

    /// All pressure is the root's too.
    fn is_calm(&self) -> bool {
        self.world.accounts[0].pressure.is_quiet()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_rest_have_no_work() {
        let task = |id, used_ns, own| Task { id, used_ns, own };
        let mut watch = Watch::default();
        watch.working(&[task(1, 5, false), task(2, 5, false)]);
        let later = [task(1, 5, false), task(2, 6, false), task(3, 0, false), task(4, 9, true)];
        assert_eq!(watch.working(&later), 2, "one went on, one is new");
        assert_eq!(watch.working(&later), 0);
    }
}
