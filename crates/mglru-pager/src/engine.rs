//! Serves an arena's faults: everything in which the engines differ. Those that threads of the
//! arena serve are here; `sigbus` has the other.
//!
//! Whatever the engine, an arena has handlers: threads that read what is missing, and that do what
//! is left to them.

use std::io;
use std::sync::Arc;

use crate::arena::{Arena, Event};
use crate::error::PagerError;
use crate::pages::Slot;
use crate::sys::uffd::Uffd;

/// Handlers of an arena at most.
const MOST_HANDLERS: usize = 4;

/// Selects the engine that serves faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultEngine {
    /// Serves faults by a thread of each mapping. System calls may be given its memory.
    #[default]
    Thread,
    /// Serves faults in the thread that faults, by SIGBUS: cheaper, where all that touches the
    /// memory is the program's code. A system call that is given a page that is not there fails
    /// with EFAULT. Heaps are served by threads all the same. The program blocks SIGBUS nowhere,
    /// and gives its own handler to [`others_bus`](crate::threads::others_bus); `mglru exec` sees
    /// to both.
    Sigbus,
}

impl FaultEngine {
    /// Returns the name that options give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Sigbus => "sigbus",
        }
    }
}

/// Names work that a thread which serves its own faults leaves to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Reports a fault of a page, by a store or not.
    Touched(u32, bool),
    /// Posts an event of a page.
    Happened(Event, u32),
    /// Frees a slot of swap.
    Free(Slot),
}

/// Answers what the thread that serves an arena asks of its engine.
pub trait Engine: Send + Sync {
    /// Opens the file through which the kernel reports faults.
    ///
    /// # Errors
    /// The kernel refuses, or lacks what the engine needs.
    fn open(&self) -> io::Result<Uffd>;

    /// Handlers that the arena needs.
    fn nr_handlers(&self) -> usize;

    /// Its handlers have started: faults may come.
    ///
    /// # Errors
    /// There are too many arenas.
    fn begin(&self, _arena: &Arc<Arena>) -> Result<(), PagerError> {
        Ok(())
    }

    /// No fault will come; returns when no handler serves one any more.
    fn end(&self) {}

    /// Hands a handler what is left to it by threads that serve their own faults.
    fn left(&self, _each: &mut dyn FnMut(Note)) {}

    /// A handler has been through its work.
    fn round_is_over(&self) {}

    /// Makes pages present.
    ///
    /// # Errors
    /// One of them is lost.
    fn populate(&self, arena: &Arena, first: u32, n: u32) -> io::Result<()> {
        arena.view().populate(first, n)
    }
}

/// Serves an arena by several threads, so that no two faulting processors wait for one to submit
/// reads and copy pages: as many as there are processors, and no more than can wait for a device at
/// its best depth.
pub struct Threads;

impl Engine for Threads {
    fn open(&self) -> io::Result<Uffd> {
        Uffd::open()
    }

    fn nr_handlers(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from).min(MOST_HANDLERS)
    }
}

/// Serves a heap by one thread, the only one that may install its pages: it must read the heap's
/// events first.
pub struct OneThread {
    /// Uses the kernel's accessed bits, if it keeps any.
    pub kept_bits: bool,
}

impl Engine for OneThread {
    fn open(&self) -> io::Result<Uffd> {
        Uffd::open_heap(self.kept_bits)
    }

    fn nr_handlers(&self) -> usize {
        1
    }
}
