//! The end of a fault: the page becomes resident, or writable, or poison; the waiting threads go
//! on.

use std::io;

use super::{Touch, Waiting, Why};
use crate::account::PAGE_COST;
use crate::arena::{Event, ForHandler};
use crate::pages::Presence;
use crate::sys::direct::Buffer;
use crate::sys::uffd::is_again;
use crate::sys::{PAGE, clock, raw};

/// Installs the pages of one arena.
pub(super) struct Installer {
    pub(super) arena: ForHandler,
    pub(super) waiting: Waiting,
    pub(super) zeros: Buffer,
}

impl Installer {
    pub(super) fn new(arena: ForHandler) -> io::Result<Self> {
        let (waiting, zeros) = (Waiting::default(), Buffer::new(PAGE)?);
        Ok(Self { arena, waiting, zeros })
    }

    /// Makes the locked page resident and visible, in one step, and wakes the threads that wait for
    /// it. Its state is set, counted and reported first, because a woken thread may ask at once for
    /// its store to be flushed.
    pub(super) fn install(&mut self, touch: Touch, content: &[u8], presence: Presence) {
        let page = touch.page;
        self.arena.counters().add_missing();
        self.arena.counters().add_major();
        let protect = presence == Presence::Clean;
        self.arena.pages().set(page, presence);
        self.arena.post(Event::filled(touch.write), page);
        match self.arena.uffd().copy(self.arena.view().address(page), content, protect) {
            Ok(()) => self.filled(page, presence),
            Err(error) => self.not_installed(page, &error),
        }
    }

    /// A heap changes under way: until its events are read nothing can be installed, and what the
    /// program unmapped cannot be at all.
    fn not_installed(&mut self, page: u32, error: &io::Error) {
        if self.arena.is_heap() {
            self.give_up(page);
            self.try_again(page, error);
        } else {
            self.failed(page, error);
        }
        // The policy heard already of a page that is absent by now.
        self.arena.post(Event::Dropped, page);
    }

    /// Threads that wait for the page fault again: now, or once the heap's events are read.
    pub(super) fn try_again(&mut self, page: u32, error: &io::Error) {
        if is_again(error) {
            let since = clock::monotonic();
            self.waiting.add(Touch { page, write: false, protected: false, since }, Why::Change);
            self.waiting.set_due();
        } else {
            self.wake(page);
        }
    }

    /// As [`Self::install`], for a page that never held anything.
    pub(super) fn install_zeros(&mut self, touch: Touch) {
        let (page, presence) = (touch.page, self.arena.brought(touch.write));
        self.arena.counters().add_missing();
        self.arena.pages().set(page, presence);
        self.arena.post(Event::filled(touch.write), page);
        match self.arena.uffd().copy(
            self.arena.view().address(page),
            &self.zeros,
            presence == Presence::Clean,
        ) {
            Ok(()) => self.filled(page, presence),
            Err(error) => self.not_installed(page, &error),
        }
    }

    /// Makes a neighbour resident without mapping it, so that its first access is seen as one.
    /// Its marker keeps it protected.
    pub(super) fn install_unmapped(&mut self, page: u32, content: &[u8]) {
        match self.arena.memory().fill(self.arena.offset(page), content) {
            Ok(()) => {
                self.unlock(page, Presence::Clean);
                self.arena.post(Event::Joined, page);
            }
            Err(_) => self.give_up(page),
        }
    }

    /// Frees the slot of a page that was swapped in to be written: swap no longer holds it.
    fn filled(&mut self, page: u32, presence: Presence) {
        if presence == Presence::Dirty && self.arena.is_anon() {
            self.arena.free_slot(self.arena.pages().set_slot(page, 0));
        }
        self.unlock(page, presence);
    }

    /// The locked, charged page stays absent after all.
    pub(super) fn give_up(&mut self, page: u32) {
        self.arena.account().uncharge(PAGE_COST);
        self.unlock(page, Presence::Absent);
    }

    /// The first store to a clean page, or another thread's while that was being served. The page
    /// is dirty before the store can happen.
    pub(super) fn allow_store(&mut self, page: u32, was: Presence) {
        let arena = self.arena.clone();
        arena.pages().set(page, Presence::Dirty);
        if let Err(error) = arena.uffd().unprotect(arena.view().pages(page, 1)) {
            assert!(arena.is_heap(), "an arena's page: {error}");
            self.unlock(page, was);
            return self.try_again(page, &error);
        }
        if was == Presence::Clean && arena.is_anon() {
            arena.free_slot(arena.pages().set_slot(page, 0));
        }
        if was == Presence::Clean {
            arena.counters().add_protect();
            arena.post(Event::Dirtied, page);
        }
        self.unlock(page, Presence::Dirty);
    }

    /// Lets go of a page, for which this handler or another may wait.
    pub(super) fn unlock(&mut self, page: u32, presence: Presence) {
        if self.arena.pages().unlock(page, presence) {
            self.waiting.set_due();
            self.arena.ring_others();
        }
    }

    pub(super) fn wake(&self, page: u32) {
        let woken = self.arena.uffd().wake(self.arena.view().pages(page, 1));
        // Nobody waits for a page that the program unmapped meanwhile.
        assert!(woken.is_ok() || self.arena.is_heap(), "an arena's page");
    }

    /// There is no room for the page and there will be none: access is SIGBUS.
    pub(super) fn refuse(&mut self, touch: Touch) {
        let Some(presence) = self.arena.pages().lock_or_wait(touch.page) else {
            return self.waiting.add(touch, Why::Lock);
        };
        let absent = presence == Presence::Absent;
        let after = if absent { self.poison(touch.page) } else { presence };
        self.unlock(touch.page, after);
        self.wake(touch.page);
    }

    /// Gives up on loading the locked, charged page.
    pub(super) fn failed(&mut self, page: u32, error: &io::Error) {
        self.arena.account().uncharge(PAGE_COST);
        self.lose(page, error);
    }

    /// Gives up on the locked page: a thread that touches it gets an error. A file's end is not
    /// reported.
    pub(super) fn lose(&mut self, page: u32, error: &io::Error) {
        if error.raw_os_error() != Some(libc::ENXIO) {
            raw::say(&format!("cannot load page {page} of a mapping: {error}"));
        }
        let after = self.poison(page);
        self.unlock(page, after);
        self.wake(page);
    }

    /// Makes access to the locked, absent page fail. Where the kernel cannot do that, the process
    /// gets a message and is stopped: zeros in place of data would be a lie.
    fn poison(&self, page: u32) -> Presence {
        if let Err(error) = self.arena.uffd().poison(self.arena.view().pages(page, 1)) {
            if self.arena.is_heap() {
                // It changes, or was unmapped: a thread that comes back meets the same error.
                return Presence::Absent;
            }
            raw::say(&format!("cannot mark the lost page {page}: {error}"));
            std::process::abort();
        }
        Presence::Poisoned
    }
}
