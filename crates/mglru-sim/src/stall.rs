//! Time lost to memory pressure, per group, as `memory.pressure` counts it: *some* while at least
//! one task waits for memory, *full* while every task that would run does.

use mglru::types::{MemcgId, Nanos};

/// Counts the time lost, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// Counts the time during which at least one task waited.
    pub some: Nanos,
    /// Counts the time during which all tasks that were not idle waited.
    pub full: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    parent: Option<MemcgId>,
    /// Tasks that run, would run or are stalled.
    active: u32,
    stalled: u32,
    since: Nanos,
    total: Stalled,
}

/// Holds the stall times of all groups; each counts its descendants' tasks.
#[derive(Clone, Debug)]
pub struct Stalls {
    groups: Vec<Group>,
}

impl Default for Stalls {
    fn default() -> Self {
        Self { groups: vec![Group::default()] }
    }
}

impl Stalls {
    /// Creates the stall times of the root alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group; ids follow those of the memory cgroups.
    pub fn add(&mut self, parent: MemcgId) -> MemcgId {
        self.groups.push(Group { parent: Some(parent), ..Group::default() });
        MemcgId(self.groups.len() as u32 - 1)
    }

    /// Records that a task starts, or wakes from sleep or I/O that is not for lack of memory.
    pub fn wake(&mut self, group: MemcgId, now: Nanos) {
        self.each_up(group, now, |group| group.active += 1);
    }

    /// Records that a task ends, or sleeps for its own reasons.
    ///
    /// # Panics
    /// When no task of the group was awake.
    pub fn sleep(&mut self, group: MemcgId, now: Nanos) {
        self.each_up(group, now, |group| {
            group.active = group.active.checked_sub(1).expect("more tasks sleep than woke");
        });
    }

    /// Records that a task that is awake begins to wait for memory: reclaims, is throttled, or
    /// reads back what was reclaimed too early.
    pub fn begin(&mut self, group: MemcgId, now: Nanos) {
        self.each_up(group, now, |group| group.stalled += 1);
    }

    /// Records that the wait ends.
    ///
    /// # Panics
    /// When no task of the group was waiting.
    pub fn end(&mut self, group: MemcgId, now: Nanos) {
        self.each_up(group, now, |group| {
            group.stalled = group.stalled.checked_sub(1).expect("more stalls end than began");
        });
    }

    /// Returns the time that a group lost up to `now`.
    pub fn total(&self, group: MemcgId, now: Nanos) -> Stalled {
        let mut group = self.groups[group.index()];
        group.account(now);
        group.total
    }

    fn each_up(&mut self, id: MemcgId, now: Nanos, mut change: impl FnMut(&mut Group)) {
        let mut at = Some(id);
        while let Some(id) = at {
            let group = &mut self.groups[id.index()];
            group.account(now);
            change(group);
            at = group.parent;
        }
    }
}

impl Group {
    fn account(&mut self, now: Nanos) {
        // Tasks of one time slice may report a little out of order; no time counts twice.
        let elapsed = now.saturating_sub(self.since);
        self.since = self.since.max(now);
        if self.stalled > 0 {
            self.total.some += elapsed;
        }
        if self.stalled > 0 && self.stalled >= self.active {
            self.total.full += elapsed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: MemcgId = MemcgId::ROOT;

    #[test]
    fn some_and_full() {
        let mut stalls = Stalls::new();
        let group = stalls.add(ROOT);
        stalls.wake(group, 0);
        stalls.wake(group, 0);
        stalls.begin(group, 10);
        stalls.begin(group, 30);
        stalls.end(group, 60);
        assert_eq!(stalls.total(group, 70), Stalled { some: 60, full: 30 });
        stalls.sleep(group, 70);
        assert_eq!(stalls.total(group, 75), Stalled { some: 65, full: 35 });
        stalls.end(group, 80);
        assert_eq!(stalls.total(group, 1_000), Stalled { some: 70, full: 40 });
    }

    #[test]
    fn a_parent_is_fully_stalled_when_all_its_children_are() {
        let mut stalls = Stalls::new();
        let (a, b) = (stalls.add(ROOT), stalls.add(ROOT));
        stalls.wake(a, 0);
        stalls.wake(b, 0);
        stalls.begin(a, 10);
        stalls.begin(b, 15);
        stalls.end(a, 25);
        stalls.end(b, 40);
        assert_eq!(stalls.total(a, 50), Stalled { some: 15, full: 15 });
        assert_eq!(stalls.total(b, 50), Stalled { some: 25, full: 25 });
        assert_eq!(stalls.total(ROOT, 50), Stalled { some: 30, full: 10 });
    }

    #[test]
    fn time_that_runs_back_counts_once() {
        let mut stalls = Stalls::new();
        stalls.wake(ROOT, 0);
        stalls.begin(ROOT, 100);
        stalls.wake(ROOT, 90);
        stalls.end(ROOT, 150);
        assert_eq!(stalls.total(ROOT, 150).some, 50);
    }

    #[test]
    #[should_panic(expected = "more stalls end")]
    fn ends_need_beginnings() {
        Stalls::new().end(ROOT, 0);
    }
}
