//! Faults served by the thread that has them: the kernel sends it SIGBUS in place of a message to
//! the arena's handler, which saves two switches of threads.
//!
//! The thread serves what takes one page's buffer and no room that is not there: pages that were
//! never used, pages of the compressed pool, a file's page alone, first stores to clean pages.
//! Everything else it leaves to the handler, with a note, and waits. All of it runs as a signal
//! handler does: it allocates nothing, and takes only locks whose holders never touch managed
//! memory.

mod notes;
mod site;

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use notes::Notes;
use site::Site;

use crate::arena::Arena;
use crate::engine::{Engine, Note};
use crate::error::PagerError;
use crate::sys::signal::{self, Bus};
use crate::sys::thread;
use crate::sys::uffd::Uffd;

/// Arenas at a time whose faults are signalled.
const ARENAS: usize = 256;

/// Serves faults in the threads that have them; the arena's handler does what they leave.
#[derive(Default)]
pub struct Sigbus {
    notes: Arc<Notes>,
    /// Where the signal finds it.
    place: OnceLock<&'static Place>,
}

impl Engine for Sigbus {
    fn open(&self) -> io::Result<Uffd> {
        Uffd::open_sigbus()
    }

    /// Enough for what is left to it.
    fn nr_handlers(&self) -> usize {
        1
    }

    fn begin(&self, arena: &Arc<Arena>) -> Result<(), PagerError> {
        signal::serve_bus(serve)?;
        let served = Box::new(Served { arena: arena.clone(), notes: self.notes.clone() });
        let place = Place::take(served);
        let place =
            place.ok_or(PagerError::Unsupported("more than 256 mappings served by SIGBUS"))?;
        self.place.set(place).map_err(|_| ()).expect("an arena begins once");
        Ok(())
    }

    fn end(&self) {
        self.place.get().into_iter().for_each(|place| place.clear());
    }

    fn left(&self, each: &mut dyn FnMut(Note)) {
        self.notes.take().for_each(each);
    }

    fn round_is_over(&self) {
        self.notes.round_is_over();
    }

    /// One by one: a call that touched them would be given what is not there. As when a signal is
    /// served, no other comes between: its handler could wait for a page that this thread holds.
    fn populate(&self, arena: &Arena, first: u32, n: u32) -> io::Result<()> {
        let site = Site { arena, notes: &self.notes };
        for page in first..first + n {
            while !arena.pages().is_usable(page) {
                if !thread::undisturbed(|| site.bring(page, Some(false))) {
                    return Err(io::Error::from_raw_os_error(libc::EFAULT));
                }
            }
        }
        Ok(())
    }
}

/// An arena that the signal finds, as long as it has a place.
struct Served {
    arena: Arc<Arena>,
    notes: Arc<Notes>,
}

/// Room for one.
struct Place {
    served: AtomicPtr<Served>,
    /// Threads that look at it.
    users: AtomicUsize,
}

static PLACES: [Place; ARENAS] = [const { Place::new() }; ARENAS];

impl Place {
    const fn new() -> Self {
        Self { served: AtomicPtr::new(std::ptr::null_mut()), users: AtomicUsize::new(0) }
    }

    /// Puts it where there is room.
    fn take(served: Box<Served>) -> Option<&'static Self> {
        let (own, none) = (Box::into_raw(served), std::ptr::null_mut());
        let free = |place: &&Place| {
            place.served.compare_exchange(none, own, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let taken = PLACES.iter().find(free);
        if taken.is_none() {
            // SAFETY: nobody was given it.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(own) });
        }
        taken
    }

    /// Is free again when no thread looks at what was there.
    fn clear(&self) {
        let served = self.served.swap(std::ptr::null_mut(), Ordering::SeqCst);
        while self.users.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        if !served.is_null() {
            // SAFETY: it was a box, and the thread that looked at it has gone.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(served) });
        }
    }

    /// Serves a signal that is of this place's arena.
    fn serve(&self, bus: Bus) -> bool {
        self.users.fetch_add(1, Ordering::SeqCst);
        // SAFETY: what is there stays until nobody uses the place.
        #[allow(unsafe_code)]
        let served = unsafe { self.served.load(Ordering::SeqCst).as_ref() };
        let done = served.is_some_and(|served| served.site().serve(bus));
        self.users.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

impl Served {
    fn site(&self) -> Site<'_> {
        Site { arena: &self.arena, notes: &self.notes }
    }
}

/// Serves a signal. False: it is of no arena, or the page is lost.
fn serve(bus: Bus) -> bool {
    PLACES.iter().any(|place| place.serve(bus))
}
