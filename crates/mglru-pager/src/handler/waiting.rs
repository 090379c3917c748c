//! Faults that could not be served at once: the page was locked, or there was no room.

use super::Touch;

/// What a fault waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody else works on the page.
    Lock,
    /// The group is full.
    Room,
    /// All buffers are in use.
    Buffer,
    /// The address space changes; its events must be read first.
    Change,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    touch: Touch,
    why: Why,
}

/// Faults that wait, and whether it is time to look at them again.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    entries: Vec<Entry>,
    due: bool,
}

impl Waiting {
    /// None.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All of them, and what for.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Touch, Why)> + '_ {
        self.entries.iter().map(|entry| (entry.touch, entry.why))
    }

    /// How many wait for this.
    pub(super) fn count(&self, why: Why) -> usize {
        self.entries.iter().filter(|entry| entry.why == why).count()
    }

    /// There is reason to look at them.
    pub(super) fn is_due(&self) -> bool {
        self.due && !self.entries.is_empty()
    }

    /// Something they may have waited for happened.
    pub(super) fn set_due(&mut self) {
        self.due = true;
    }

    pub(super) fn add(&mut self, touch: Touch, why: Why) {
        self.entries.push(Entry { touch, why });
    }

    /// Takes all of them, to be tried again.
    pub(super) fn take(&mut self) -> Vec<(Touch, Why)> {
        self.due = false;
        std::mem::take(&mut self.entries).into_iter().map(|e| (e.touch, e.why)).collect()
    }
}
