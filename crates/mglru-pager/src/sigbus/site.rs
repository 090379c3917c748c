//! One arena as the thread that faults sees it.

use std::time::Duration;

use super::notes::Notes;
use crate::account::PAGE_COST;
use crate::arena::{Arena, Event};
use crate::engine::Note;
use crate::pages::Presence;
use crate::store::Store;
use crate::sys::signal::Bus;
use crate::sys::{PAGE, clock, idle, raw};

/// How long a thread waits for the handler before it faults again: a note that was overtaken by
/// an eviction is repeated then.
const WAIT: (u32, Duration) = (20, Duration::from_millis(5));

/// Aligned for reads past the page cache.
#[repr(align(4096))]
struct Bytes([u8; PAGE]);

static ZEROS: Bytes = Bytes([0; PAGE]);

/// Holds an arena, and the place for work that is left to its handler.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// Holds the arena of the page.
    pub arena: &'a Arena,
    /// Notes that its handler reads.
    pub notes: &'a Notes,
}

impl Site<'_> {
    /// Serves a signal. False: it is of no page here, or the page is lost.
    pub fn serve(self, bus: Bus) -> bool {
        let offset = (bus.address as u64).wrapping_sub(self.arena.view().address(0));
        let page = offset / PAGE as u64;
        page < self.arena.pages().len().into() && self.bring(page as u32, bus.store)
    }

    /// Makes a page present, and writable for a store, or leaves that to the handler and waits a
    /// while. False: it is lost.
    pub fn bring(self, page: u32, store: Option<bool>) -> bool {
        let since = clock::monotonic();
        let Some(presence) = self.arena.pages().try_lock(page) else {
            idle::hurry();
            return self.left(page, store);
        };
        // If the access type is unknown and the page is mapped, treat it as a store.
        let stored = store.unwrap_or(presence.is_mapped());
        let kind = self.arena.kind_of(page, presence, stored);
        let (after, event) = match presence {
            Presence::Absent => match self.fill(page, stored) {
                Some(filled) => (filled, Some(Event::filled(stored))),
                None => (Presence::Absent, None),
            },
            Presence::Clean if stored => (self.allow_store(page), Some(Event::Dirtied)),
            Presence::Dirty if stored => (self.allow_store(page), None),
            other => (other, None),
        };
        if self.arena.pages().unlock(page, after) {
            self.arena.ring_handlers();
        }
        if let (Some(event), Some(kind)) = (event, kind) {
            self.post(event, page);
            self.arena.account().faults.note(kind, clock::monotonic().saturating_sub(since));
        }
        if after == Presence::Absent { self.left(page, store) } else { after.is_resident() }
    }

    /// Fills the locked page; `None`: it cannot be done here.
    fn fill(self, page: u32, store: bool) -> Option<Presence> {
        self.arena.note_filled(page).ok()?;
        if self.arena.account().try_charge(PAGE_COST).is_err() {
            return None;
        }
        let filled = match self.arena.source(page) {
            Some(from) => self.fill_stored(page, store, &**from),
            None => self.fill_anon(page, store),
        };
        if filled.is_none() {
            self.arena.account().uncharge(PAGE_COST);
        }
        filled
    }

    fn fill_anon(self, page: u32, store: bool) -> Option<Presence> {
        let slot = self.arena.pages().slot(page);
        if slot == 0 {
            return self.install(page, &ZEROS.0, Presence::after(store));
        }
        let (mut content, mut scratch) = (Bytes([0; PAGE]), Bytes([0; PAGE]));
        if !self.arena.swap().load_in_place(slot, &mut content.0, &mut scratch.0) {
            return None;
        }
        let presence = self.install(page, &content.0, Presence::Dirty)?;
        self.arena.counters().add_major();
        self.leave(Note::Free(self.arena.pages().set_slot(page, 0)));
        Some(presence)
    }

    /// Reads the page, if it is to be read alone. The handler meets a failure again and reports it.
    fn fill_stored(self, page: u32, store: bool, from: &dyn Store) -> Option<Presence> {
        let queue = from
            .queue()
            .filter(|queue| page < queue.nr_pages && !self.arena.has_neighbours_read())?;
        let mut content = Bytes([0; PAGE]);
        let missed = self.arena.is_missed(page);
        self.arena.account().shift_stalls(missed.into());
        let read = raw::read_all(queue.fd, &mut content.0, queue.base + self.arena.offset(page));
        self.arena.account().shift_stalls(-i32::from(missed));
        read.ok()?;
        let presence = match Presence::after(store) {
            Presence::Clean if !self.arena.memory().is_changing() => {
                self.install_unmapped(page, &content.0)?
            }
            other => self.install(page, &content.0, other)?,
        };
        self.arena.counters().add_major();
        Some(presence)
    }

    fn install(self, page: u32, content: &[u8], presence: Presence) -> Option<Presence> {
        self.will_be_there();
        self.arena.pages().set(page, presence);
        let protect = presence == Presence::Clean;
        self.arena.uffd().copy(self.arena.view().address(page), content, protect).ok()?;
        Some(presence)
    }

    /// The access maps it when it is tried again. An entry that the kernel installs counts as
    /// stored through, and each run of such that is taken away interrupts the other processors; an
    /// entry of a load does not. Only where it would wait, for an eviction whose thread has
    /// perhaps given way, that is the lesser evil.
    fn install_unmapped(self, page: u32, content: &[u8]) -> Option<Presence> {
        self.will_be_there();
        self.arena.memory().fill(self.arena.offset(page), content).ok()?;
        Some(Presence::Clean)
    }

    fn will_be_there(self) {
        self.arena.wake_policy_if_low();
        self.arena.counters().add_missing();
    }

    /// A store to the locked page, which is there.
    fn allow_store(self, page: u32) -> Presence {
        self.arena.pages().set(page, Presence::Dirty);
        if self.arena.uffd().unprotect(self.arena.view().pages(page, 1)).is_err() {
            raw::say("cannot make a page of a mapping writable");
            std::process::abort();
        }
        if self.arena.is_anon() && self.arena.pages().slot(page) != 0 {
            self.leave(Note::Free(self.arena.pages().set_slot(page, 0)));
        }
        self.arena.counters().add_protect();
        Presence::Dirty
    }

    fn post(self, event: Event, page: u32) {
        if !self.arena.post_in_place(event, page) {
            self.leave(Note::Happened(event, page));
        }
    }

    fn leave(self, note: Note) {
        self.notes.leave(note, self.arena);
    }

    /// Leaves the fault to the handler, and waits until the page is there or a while is over.
    fn left(self, page: u32, store: Option<bool>) -> bool {
        let store = store.unwrap_or(false);
        self.leave(Note::Touched(page, store));
        for _ in 0..WAIT.0 {
            let seen = self.notes.rounds();
            match self.arena.pages().presence(page) {
                Presence::Absent => {}
                Presence::Clean if store => {}
                presence => return presence.is_resident(),
            }
            self.notes.wait(seen, WAIT.1);
        }
        true
    }
}
