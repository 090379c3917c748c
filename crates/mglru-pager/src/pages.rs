//! The state of each page of an arena, shared between the threads that fault it in and the
//! one that takes it away.
//!
//! **Invariant I**: while a page is absent or clean, each view's entry of it carries write
//! protection (present, or as a marker where nothing is present). An entry without protection
//! exists only while the page is dirty, or locked on its way to dirty.
//!
//! A thread that changes content, presence or protection of a page holds its lock. Taking a page's
//! entries away (sampling) changes none of the three and needs no lock.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::sys::table::Table;

const STATE: u8 = 0b111;
const LOCKED: u8 = 0x80;
/// A fault waits for the lock.
const WAITED: u8 = 0x40;
const PINNED: u8 = 0x20;
/// It was used again after it was staged.
const YOUNG: u8 = 0x10;

/// Says where a page's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Keeps the content in the store, or nowhere: then it is zeros.
    Absent,
    /// Keeps the content in memory, and the same in the store.
    Clean,
    /// Keeps the content in memory only.
    Dirty,
    /// Has no content: its read failed or it found no room. Access is SIGBUS.
    Poisoned,
    /// Keeps a heap page in memory that was taken from the program. Its content is saved if it has
    /// a slot.
    Staged,
    /// Has left the pager: the program gave its addresses up, for good.
    Gone,
}

impl Presence {
    /// Returns the state of a page once it was brought for a store or a load.
    pub fn after(store: bool) -> Self {
        if store { Self::Dirty } else { Self::Clean }
    }

    fn bits(self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Clean => 1,
            Self::Dirty => 2,
            Self::Poisoned => 3,
            Self::Staged => 4,
            Self::Gone => 5,
        }
    }

    fn of(state: u8) -> Self {
        match state & STATE {
            0 => Self::Absent,
            1 => Self::Clean,
            2 => Self::Dirty,
            4 => Self::Staged,
            5 => Self::Gone,
            _ => Self::Poisoned,
        }
    }

    /// Tells whether the page is in memory.
    pub fn is_resident(self) -> bool {
        matches!(self, Self::Clean | Self::Dirty | Self::Staged)
    }

    /// Tells whether the program can use the page without a fault, stores perhaps excepted.
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::Clean | Self::Dirty)
    }
}

/// Numbers a slot in the swap of its pager; 0 is none.
pub type Slot = u32;

/// Holds the states and swap slots of the pages of one arena.
#[derive(Debug)]
pub struct Pages {
    states: Table<AtomicU8>,
    /// Slots of an anonymous arena's absent or clean pages in swap. Changed under the
    /// page's lock.
    slots: Table<AtomicU32>,
}

impl Pages {
    /// Makes a table of `nr_pages` absent pages; with slots if they can be swapped.
    pub fn new(nr_pages: u32, swaps: bool) -> io::Result<Self> {
        let nr_slots = if swaps { nr_pages as usize } else { 0 };
        Ok(Self { states: Table::new(nr_pages as usize)?, slots: Table::new(nr_slots)? })
    }

    /// Counts the pages.
    pub fn len(&self) -> u32 {
        self.states.len() as u32
    }

    /// Counts the bytes of this table.
    pub fn table_bytes(&self) -> u64 {
        (self.states.len() + self.slots.len() * size_of::<AtomicU32>()) as u64
    }

    /// Reads where the page is now.
    pub fn presence(&self, page: u32) -> Presence {
        Presence::of(self.state(page).load(Ordering::Acquire))
    }

    /// Tells whether the program can use the page without a fault and no thread holds its lock. The
    /// state of a page that is being brought says mapped before it is: the lock covers that.
    pub fn is_usable(&self, page: u32) -> bool {
        let state = self.state(page).load(Ordering::Acquire);
        state & LOCKED == 0 && Presence::of(state).is_mapped()
    }

    /// Tells whether the page may not be evicted.
    pub fn is_pinned(&self, page: u32) -> bool {
        self.state(page).load(Ordering::Acquire) & PINNED != 0
    }

    /// Keeps the page from eviction, or no longer. True when that is a change.
    pub fn set_pinned(&self, page: u32, pinned: bool) -> bool {
        let state = self.state(page);
        let before = if pinned {
            state.fetch_or(PINNED, Ordering::AcqRel)
        } else {
            state.fetch_and(!PINNED, Ordering::AcqRel)
        };
        (before & PINNED != 0) != pinned
    }

    /// Notes that the page was used again.
    pub fn set_young(&self, page: u32) {
        self.state(page).fetch_or(YOUNG, Ordering::AcqRel);
    }

    /// Tells whether the page was used again since the last call, and clears that.
    pub fn take_young(&self, page: u32) -> bool {
        let state = self.state(page);
        state.load(Ordering::Acquire) & YOUNG != 0
            && state.fetch_and(!YOUNG, Ordering::AcqRel) & YOUNG != 0
    }

    /// Tells whether the page was never used: absent, not locked, never swapped.
    pub fn is_blank(&self, page: u32) -> bool {
        self.state(page).load(Ordering::Acquire) == 0 && self.slot(page) == 0
    }

    /// Locks the page and returns where it is; `None`: somebody else holds it.
    pub fn try_lock(&self, page: u32) -> Option<Presence> {
        let before = self.state(page).fetch_or(LOCKED, Ordering::Acquire);
        (before & LOCKED == 0).then(|| Presence::of(before))
    }

    /// Locks as [`Self::try_lock`] does; if it fails, [`Self::unlock`] reports that a thread waits.
    pub fn lock_or_wait(&self, page: u32) -> Option<Presence> {
        if let Some(presence) = self.try_lock(page) {
            return Some(presence);
        }
        let before = self.state(page).fetch_or(WAITED | LOCKED, Ordering::AcqRel);
        // If it was let go of meanwhile the mark stays: another handler's would look the same.
        (before & LOCKED == 0).then(|| Presence::of(before))
    }

    /// Sets where the locked page is, without letting go of it.
    pub fn set(&self, page: u32, presence: Presence) {
        let bits = presence.bits();
        let update = |state| Some((state & !STATE) | bits);
        let _ = self.state(page).fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
    }

    /// Unlocks the page, which is now there. True when somebody waits for it.
    #[must_use]
    pub fn unlock(&self, page: u32, presence: Presence) -> bool {
        let bits = presence.bits();
        let update = |state: u8| Some((state & (PINNED | YOUNG)) | bits);
        let before = self.state(page).fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
        before.is_ok_and(|state| state & WAITED != 0)
    }

    /// Returns the page's swap slot; 0 is none.
    pub fn slot(&self, page: u32) -> Slot {
        self.slots.get(page as usize).map_or(0, |slot| slot.load(Ordering::Acquire))
    }

    /// Sets the locked page's swap slot and returns the one it had.
    pub fn set_slot(&self, page: u32, slot: Slot) -> Slot {
        self.slots[page as usize].swap(slot, Ordering::AcqRel)
    }

    fn state(&self, page: u32) -> &AtomicU8 {
        &self.states[page as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_page_keeps_that_a_thread_waits() {
        let pages = Pages::new(4, true).unwrap();
        assert_eq!(pages.try_lock(1), Some(Presence::Absent));
        assert_eq!(pages.try_lock(1), None);
        pages.set(1, Presence::Clean);
        assert!(!pages.is_usable(1), "it may be on its way");
        assert!(!pages.unlock(1, Presence::Clean), "nobody waits");
        assert!(pages.is_usable(1));
        assert_eq!(pages.lock_or_wait(1), Some(Presence::Clean));
        assert_eq!(pages.lock_or_wait(1), None);
        pages.set(1, Presence::Dirty);
        assert!(pages.unlock(1, Presence::Dirty));
        assert_eq!(pages.try_lock(1), Some(Presence::Dirty));
        assert!(!pages.unlock(1, Presence::Absent), "waiting ended with the unlock");
        assert_eq!(pages.presence(0), Presence::Absent, "neighbours are left alone");
    }

    #[test]
    fn a_pin_survives_every_change() {
        let pages = Pages::new(1, false).unwrap();
        assert!(pages.set_pinned(0, true) && !pages.set_pinned(0, true));
        for presence in [Presence::Clean, Presence::Dirty, Presence::Absent] {
            pages.try_lock(0).unwrap();
            let _ = pages.unlock(0, presence);
            assert!(pages.is_pinned(0));
            assert_eq!(pages.presence(0), presence);
        }
        assert_eq!(pages.slot(0), 0, "no slots, no swap");
    }
}
