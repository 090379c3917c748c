//! Faults that could not be served at once: the page was locked, or there was no room.

use super::Touch;

/// Why a fault waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Waits because another thread works on the page.
    Lock,
    /// Waits because the group is full.
    Room,
    /// Waits because all buffers are in use.
    Buffer,
    /// Waits because the address space changes; its events must be read first.
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

    /// Reports again a fault whose holder handles it: it is judged again. False: it does not wait.
    pub(super) fn hear_again(&mut self, page: u32, write: bool) -> bool {
        let known = self.entries.iter_mut().find(|entry| entry.touch.page == page);
        let known = known.map(|entry| entry.touch.write |= write).is_some();
        self.due |= known;
        known
    }

    /// Takes all of them, to be tried again.
    pub(super) fn take(&mut self) -> Vec<(Touch, Why)> {
        self.due = false;
        std::mem::take(&mut self.entries).into_iter().map(|e| (e.touch, e.why)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_is_reported_again_waits_once() {
        let touch = |page| Touch { page, write: false, protected: false, since: 1 };
        let mut waiting = Waiting::default();
        waiting.add(touch(3), Why::Room);
        assert!(!waiting.hear_again(4, true) && !waiting.is_due());
        assert!(waiting.hear_again(3, false) && waiting.is_due());
        assert!(waiting.hear_again(3, true));
        assert_eq!(waiting.take(), [(Touch { write: true, ..touch(3) }, Why::Room)]);
        assert!(!waiting.hear_again(3, false));
    }
}
