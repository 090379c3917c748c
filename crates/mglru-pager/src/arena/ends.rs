//! Says which party may do what to an arena: each party holds an end of its own, which cannot be
//! copied, and what that party alone does is a method of the end. Everything else is a method of
//! [`Arena`].

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use super::inbox::Posted;
use super::{Access, Arena};
use crate::sys::wake::Wake;

/// Holds the interfaces to one arena, one for each user.
pub struct Ends {
    /// Serves the policy thread.
    pub policy: ForPolicy,
    /// Serves the handlers, one each.
    pub handlers: Vec<ForHandler>,
    /// Serves the caller that mapped the arena.
    pub owner: ForOwner,
}

impl Ends {
    pub(super) fn of(arena: &Arc<Arena>) -> Self {
        let handler = |nth| ForHandler { arena: arena.clone(), nth };
        Self {
            policy: ForPolicy(arena.clone()),
            handlers: (0..arena.signals.nr_handlers()).map(handler).collect(),
            owner: ForOwner(arena.clone()),
        }
    }
}

/// Lets the policy thread learn of an arena's pages and decide on its waiting faults.
pub struct ForPolicy(Arc<Arena>);

impl ForPolicy {
    /// Takes what was posted, leaving the empty `into` to be filled next.
    pub fn take_posted(&self, into: &mut Vec<Posted>) {
        self.0.inbox.take(into);
    }

    /// Notes when a page was evicted, 0 that it is no longer, and returns what was noted before.
    pub fn set_evicted(&self, page: u32, number: u32) -> u32 {
        self.0.evictions.set(page, number)
    }

    /// Retries faults that wait for room: there is room again.
    pub fn retry_waiting(&self) {
        self.0.signals.retry_waiting();
    }

    /// Fails faults that wait for room: there will be none.
    pub fn fail_waiting(&self) {
        self.0.signals.fail_waiting();
    }

    /// Notes an I/O error, which the next flush reports.
    pub fn note_error(&self, error: &io::Error) {
        self.0.failure.note(error);
    }

    /// Gives back what was charged for tables: the arena is gone.
    pub fn uncharge_tables(&self) {
        self.0.account().uncharge(self.0.late_table_bytes());
    }
}

impl Deref for ForPolicy {
    type Target = Arc<Arena>;

    fn deref(&self) -> &Arc<Arena> {
        &self.0
    }
}

/// Lets one handler sleep and say that its faults wait for room.
pub struct ForHandler {
    arena: Arc<Arena>,
    nth: usize,
}

impl ForHandler {
    /// Returns the number of the handler among the arena's.
    pub fn nth(&self) -> usize {
        self.nth
    }

    /// Returns what wakes it.
    pub fn wake(&self) -> &Wake {
        self.arena.signals.wake(self.nth)
    }

    /// Wakes the other handlers of the arena.
    pub fn ring_others(&self) {
        self.arena.signals.ring_others(self.nth);
    }

    /// Records that a fault waits for room, and asks the policy to make some.
    pub fn wait_for_room(&self) {
        self.arena.signals.wait_for_room();
        self.arena.policy.summon();
    }

    /// Tells, once, that there will be no room.
    pub fn take_hopeless(&self) -> bool {
        self.arena.signals.take_hopeless(self.nth)
    }

    /// Forgets that there would be no room.
    pub fn clear_hopeless(&self) {
        self.arena.signals.clear_hopeless(self.nth);
    }
}

impl Deref for ForHandler {
    type Target = Arc<Arena>;

    fn deref(&self) -> &Arc<Arena> {
        &self.arena
    }
}

/// Lets the caller that mapped an arena say how it will be used and ask whether it was written.
pub struct ForOwner(Arc<Arena>);

impl ForOwner {
    /// Says how it will be used.
    pub fn set_access(&self, access: Access) {
        self.0.advised.set(access);
    }

    /// Takes the error noted since the last call.
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.failure.take()
    }
}

impl Deref for ForOwner {
    type Target = Arc<Arena>;

    fn deref(&self) -> &Arc<Arena> {
        &self.0
    }
}
