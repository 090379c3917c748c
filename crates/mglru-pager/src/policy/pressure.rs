//! The averages of pressure move, for as long as there is any.

use std::collections::HashMap;

use super::Policy;
use crate::pressure::PERIOD;
use crate::sys::clock;
use crate::sys::tasks::{self, Task};

/// What is kept from one look at the program's threads to the next.
#[derive(Debug, Default)]
pub(super) struct Watch {
    next: u64,
    /// Processor time of each thread, ticks.
    ticks: HashMap<u32, u64>,
}

impl Watch {
    /// Threads of the program that have work: they used the processor since the last look, or are
    /// about to, or wait for memory.
    fn working(&mut self, tasks: &[Task]) -> u32 {
        let before = std::mem::take(&mut self.ticks);
        let program = || tasks.iter().filter(|task| !task.own);
        self.ticks = program().map(|task| (task.id, task.ticks)).collect();
        let used = |task: &&Task| task.at_work || before.get(&task.id) != Some(&task.ticks);
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
        // Without /proc every stall is one of all threads.
        let working = self.watch.working(&tasks::tasks().unwrap_or_default());
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
        let task = |id, at_work, ticks, own| Task { id, at_work, ticks, own };
        let mut watch = Watch::default();
        watch.working(&[task(1, false, 5, false), task(2, false, 5, false)]);
        let later = [
            task(1, false, 5, false),
            task(2, false, 6, false),
            task(3, true, 0, false),
            task(4, true, 9, true),
        ];
        assert_eq!(watch.working(&later), 2);
        assert_eq!(watch.working(&later), 1);
    }
}
