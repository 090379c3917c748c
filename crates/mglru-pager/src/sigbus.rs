//! Faults served by the thread that has them: the kernel sends it SIGBUS in place of a message to
//! the arena's handler, which saves two switches of threads.
//!
//! The thread serves what takes one page's buffer and no room that is not there: pages that were
//! never used, pages of the compressed pool, a file's page alone, first stores to clean pages.
//! Everything else it leaves to the handler, with a note, and waits. All of it runs in a signal
//! handler: it allocates nothing, and takes only locks whose holders never touch managed memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::account::PAGE_COST;
use crate::arena::{Arena, Backing, Event};
use crate::error::PagerError;
use crate::pages::{Presence, Slot};
use crate::store::Store;
use crate::sys::signal::{self, Bus};
use crate::sys::{PAGE, clock, courtesy, raw};

/// Arenas at a time whose faults are signalled.
const ARENAS: usize = 256;
/// Notes that an arena has room for; who finds none waits for the handler to read them.
const NOTES: usize = 256;
/// Notes that wake the handler: at most 64 slots, 256 KiB of the pool, are freed later than they
/// could be.
const SOME: usize = 64;
/// How long a thread waits for the handler before it faults again: a note that was overtaken by
/// an eviction is repeated then.
const WAIT: (u32, Duration) = (20, Duration::from_millis(5));

/// Who serves faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultEngine {
    /// A thread of each mapping. System calls may be given its memory.
    #[default]
    Thread,
    /// The thread that faults, by SIGBUS: cheaper, where all that touches the memory is the
    /// program's own code. A system call that is given a page that is not there fails with EFAULT.
    /// Heaps are served by threads all the same. The program blocks SIGBUS nowhere, and gives a
    /// handler of its own to [`own::others_bus`](crate::own::others_bus); `mglru exec` sees to
    /// both.
    Sigbus,
}

impl FaultEngine {
    /// As options name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Sigbus => "sigbus",
        }
    }
}

/// What is left to the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A fault of a page, by a store or not.
    Touched(u32, bool),
    /// What happened to a page is to be posted.
    Happened(Event, u32),
    /// A slot of swap is free.
    Free(Slot),
}

impl Note {
    fn word(self) -> u64 {
        let (kind, value) = match self {
            Self::Touched(page, write) => (1 + u64::from(write), page),
            Self::Happened(Event::Filled, page) => (3, page),
            Self::Happened(Event::Dirtied, page) => (4, page),
            Self::Happened(Event::Dropped, page) => (5, page),
            Self::Free(slot) => (6, slot),
            Self::Happened(Event::Joined, page) => (7, page),
            Self::Happened(Event::Used, page) => (8, page),
        };
        kind << 32 | u64::from(value)
    }

    fn of(word: u64) -> Option<Self> {
        let value = word as u32;
        Some(match word >> 32 {
            1 => Self::Touched(value, false),
            2 => Self::Touched(value, true),
            3 => Self::Happened(Event::Filled, value),
            4 => Self::Happened(Event::Dirtied, value),
            5 => Self::Happened(Event::Dropped, value),
            6 => Self::Free(value),
            7 => Self::Happened(Event::Joined, value),
            8 => Self::Happened(Event::Used, value),
            _ => return None,
        })
    }
}

/// What an arena whose faults are signalled has besides.
#[derive(Debug)]
pub struct Notes {
    words: [AtomicU64; NOTES],
    /// Rounds of the handler.
    rounds: AtomicU32,
}

impl Default for Notes {
    fn default() -> Self {
        Self { words: [const { AtomicU64::new(0) }; NOTES], rounds: AtomicU32::new(0) }
    }
}

impl Notes {
    /// The handler is woken for a fault; the rest can wait until there is some of it.
    fn leave(&self, note: Note, arena: &Arena) {
        let taken = |word: &AtomicU64| {
            word.compare_exchange(0, note.word(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let nth = loop {
            match self.words.iter().position(taken) {
                Some(nth) => break nth,
                None => arena.ring_handlers(),
            }
            std::thread::yield_now();
        };
        if nth >= SOME || matches!(note, Note::Touched(..)) {
            arena.ring_handlers();
        }
    }

    /// Takes what was left.
    pub fn take(&self) -> impl Iterator<Item = Note> + '_ {
        let full = self.words.iter().filter(|word| word.load(Ordering::Relaxed) != 0);
        full.filter_map(|word| Note::of(word.swap(0, Ordering::AcqRel)))
    }

    /// The handler has been through its work: who waits looks again.
    pub fn round_is_over(&self) {
        self.rounds.fetch_add(1, Ordering::AcqRel);
        signal::wake_all(&self.rounds);
    }
}

/// An arena that the signal finds.
struct Place {
    arena: AtomicPtr<Arena>,
    /// Threads that look at it.
    users: AtomicUsize,
}

static PLACES: [Place; ARENAS] =
    [const { Place { arena: AtomicPtr::new(std::ptr::null_mut()), users: AtomicUsize::new(0) } };
        ARENAS];

/// Has the faults of an arena served.
///
/// # Errors
/// There are too many.
pub fn enlist(arena: &Arc<Arena>) -> Result<(), PagerError> {
    signal::serve_bus(serve)?;
    let own = Arc::as_ptr(arena).cast_mut();
    let none = std::ptr::null_mut();
    let free = |place: &&Place| {
        place.arena.compare_exchange(none, own, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    match PLACES.iter().find(free) {
        Some(_) => Ok(()),
        None => Err(PagerError::Unsupported("more than 256 mappings served by SIGBUS")),
    }
}

/// No longer has them served; returns when no thread looks at the arena.
pub fn discharge(arena: &Arc<Arena>) {
    let own = Arc::as_ptr(arena).cast_mut();
    for place in PLACES.iter().filter(|place| place.arena.load(Ordering::Acquire) == own) {
        place.arena.store(std::ptr::null_mut(), Ordering::SeqCst);
        while place.users.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

/// Serves a signal. False: it is of no arena, or the page is lost.
fn serve(bus: Bus) -> bool {
    PLACES.iter().any(|place| {
        place.users.fetch_add(1, Ordering::SeqCst);
        // SAFETY: an arena stays until nobody uses its place.
        #[allow(unsafe_code)]
        let arena = unsafe { place.arena.load(Ordering::SeqCst).as_ref() };
        let served = arena.is_some_and(|arena| serve_of(arena, bus));
        place.users.fetch_sub(1, Ordering::SeqCst);
        served
    })
}

fn serve_of(arena: &Arena, bus: Bus) -> bool {
    let offset = (bus.address as u64).wrapping_sub(arena.view.address(0));
    let page = offset / PAGE as u64;
    page < arena.pages.len().into() && bring(arena, page as u32, bus.store)
}

/// Makes a page present, and writable for a store, or leaves that to the handler and waits a
/// while. False: it is lost.
pub fn bring(arena: &Arena, page: u32, store: Option<bool>) -> bool {
    let since = clock::monotonic();
    let Some(presence) = arena.pages.try_lock(page) else {
        courtesy::hurry();
        return left(arena, page, store);
    };
    // Who does not say whether it stored, and finds the page there, stored.
    let stored = store.unwrap_or(presence.is_mapped());
    let kind = arena.kind_of(page, presence);
    let (after, event) = match presence {
        Presence::Absent => match fill(arena, page, stored) {
            Some(filled) => (filled, Some(Event::Filled)),
            None => (Presence::Absent, None),
        },
        Presence::Clean if stored => (allow_store(arena, page), Some(Event::Dirtied)),
        Presence::Dirty if stored => (allow_store(arena, page), None),
        other => (other, None),
    };
    if arena.pages.unlock(page, after) {
        arena.ring_handlers();
    }
    if let Some(event) = event {
        post(arena, event, page);
        arena.account.faults.note(kind, clock::monotonic().saturating_sub(since));
    }
    if after == Presence::Absent { left(arena, page, store) } else { after.is_resident() }
}

/// Fills the locked page; `None`: it cannot be done here.
fn fill(arena: &Arena, page: u32, store: bool) -> Option<Presence> {
    if arena.account.try_charge(PAGE_COST).is_err() {
        return None;
    }
    let filled = match &arena.backing {
        Backing::Anon => fill_anon(arena, page, store),
        Backing::Store(from) => fill_stored(arena, page, store, &**from),
        Backing::Heap(_) => None,
    };
    if filled.is_none() {
        arena.account.uncharge(PAGE_COST);
    }
    filled
}

/// Aligned for reads past the page cache.
#[repr(align(4096))]
struct Bytes([u8; PAGE]);

static ZEROS: Bytes = Bytes([0; PAGE]);

fn fill_anon(arena: &Arena, page: u32, store: bool) -> Option<Presence> {
    let slot = arena.pages.slot(page);
    if slot == 0 {
        return install(arena, page, &ZEROS.0, Presence::after(store));
    }
    let (mut content, mut scratch) = (Bytes([0; PAGE]), Bytes([0; PAGE]));
    if !arena.swap.load_in_place(slot, &mut content.0, &mut scratch.0) {
        return None;
    }
    let presence = install(arena, page, &content.0, Presence::Dirty)?;
    arena.counters.major.fetch_add(1, Ordering::Relaxed);
    leave(arena, Note::Free(arena.pages.set_slot(page, 0)));
    Some(presence)
}

/// Reads the page, if it is to be read alone. What fails the handler meets again, and says.
fn fill_stored(arena: &Arena, page: u32, store: bool, from: &dyn Store) -> Option<Presence> {
    let queue =
        from.queue().filter(|queue| page < queue.nr_pages && !arena.has_neighbours_read())?;
    let mut content = Bytes([0; PAGE]);
    let missed = arena.is_missed(page);
    arena.account.shift_stalls(missed.into());
    let read = raw::read_all(queue.fd, &mut content.0, queue.base + arena.offset(page));
    arena.account.shift_stalls(-i32::from(missed));
    read.ok()?;
    let presence = match Presence::after(store) {
        Presence::Clean => install_unmapped(arena, page, &content.0)?,
        other => install(arena, page, &content.0, other)?,
    };
    arena.counters.major.fetch_add(1, Ordering::Relaxed);
    Some(presence)
}

fn install(arena: &Arena, page: u32, content: &[u8], presence: Presence) -> Option<Presence> {
    will_be_there(arena, page);
    arena.pages.set(page, presence);
    let protect = presence == Presence::Clean;
    arena.uffd.copy(arena.view.address(page), content, protect).ok()?;
    Some(presence)
}

/// The access maps it when it is tried again. An entry that the kernel installs counts as stored
/// through, and each run of such that is taken away interrupts the other processors; an entry of
/// a load does not.
fn install_unmapped(arena: &Arena, page: u32, content: &[u8]) -> Option<Presence> {
    will_be_there(arena, page);
    arena.memory.fill(arena.offset(page), content).ok()?;
    Some(Presence::Clean)
}

fn will_be_there(arena: &Arena, page: u32) {
    arena.wake_policy_if_low();
    arena.note_filled(page);
    arena.counters.missing.fetch_add(1, Ordering::Relaxed);
}

/// A store to the locked page, which is there.
fn allow_store(arena: &Arena, page: u32) -> Presence {
    arena.pages.set(page, Presence::Dirty);
    if arena.uffd.unprotect(arena.view.pages(page, 1)).is_err() {
        raw::say("a page of a mapping cannot be made writable");
        std::process::abort();
    }
    if arena.is_anon() && arena.pages.slot(page) != 0 {
        leave(arena, Note::Free(arena.pages.set_slot(page, 0)));
    }
    arena.counters.protect.fetch_add(1, Ordering::Relaxed);
    Presence::Dirty
}

fn post(arena: &Arena, event: Event, page: u32) {
    if !arena.post_in_place(event, page) {
        leave(arena, Note::Happened(event, page));
    }
}

fn leave(arena: &Arena, note: Note) {
    if let Some(notes) = &arena.notes {
        notes.leave(note, arena);
    }
}

/// Leaves the fault to the handler, and waits until the page is there or a while is over.
fn left(arena: &Arena, page: u32, store: Option<bool>) -> bool {
    let Some(notes) = &arena.notes else { return false };
    let store = store.unwrap_or(false);
    notes.leave(Note::Touched(page, store), arena);
    for _ in 0..WAIT.0 {
        let seen = notes.rounds.load(Ordering::Acquire);
        match arena.pages.presence(page) {
            Presence::Absent => {}
            Presence::Clean if store => {}
            presence => return presence.is_resident(),
        }
        signal::wait(&notes.rounds, seen, WAIT.1);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        for note in [
            Note::Touched(0, false),
            Note::Touched(u32::MAX, true),
            Note::Happened(Event::Filled, 7),
            Note::Happened(Event::Dirtied, 8),
            Note::Happened(Event::Dropped, 9),
            Note::Happened(Event::Joined, 10),
            Note::Free(1),
        ] {
            assert_eq!(Note::of(note.word()), Some(note));
        }
        assert_eq!(Note::of(0), None);
    }
}
