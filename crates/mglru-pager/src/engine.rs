//! Serves an arena's faults: everything in which the engines differ.
//!
//! Whatever the engine, an arena has handlers: threads that read what is missing, and that do what
//! is left to them.

use std::io;
use std::sync::Arc;

use crate::arena::{Arena, Backing};
use crate::error::PagerError;
use crate::sigbus::{Note, Sigbus};
use crate::sys::uffd::Uffd;

/// Handlers of an arena at most.
const MOST_HANDLERS: usize = 4;

/// The engine that serves faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultEngine {
    /// A thread of each mapping. System calls may be given its memory.
    #[default]
    Thread,
    /// The thread that faults, by SIGBUS: cheaper, where all that touches the memory is the
    /// program's own code. A system call that is given a page that is not there fails with EFAULT.
    /// Heaps are served by threads all the same. The program blocks SIGBUS nowhere, and gives a
    /// handler of its own to [`others_bus`](crate::threads::others_bus); `mglru exec` sees to both.
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

/// The questions that an arena asks its engine.
pub trait Engine: Send + Sync {
    /// Opens what the kernel tells of faults through.
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

    /// No fault will come; returns when none is being served by who had it.
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
        arena.view.populate(arena.view.pages(first, n))
    }
}

/// Creates the engine of an arena.
pub fn of(backing: &Backing, faults: FaultEngine, kept_bits: bool) -> Box<dyn Engine> {
    match (backing, faults) {
        (Backing::Heap(_), _) => Box::new(OneThread { kept_bits }),
        (_, FaultEngine::Thread) => Box::new(Threads),
        (_, FaultEngine::Sigbus) => Box::new(Sigbus::default()),
    }
}

/// Threads of the arena's, so that no two faulting processors wait for one to submit reads and
/// copy pages: as many as there are processors, and no more than can wait for a device at its best
/// depth.
struct Threads;

impl Engine for Threads {
    fn open(&self) -> io::Result<Uffd> {
        Uffd::open()
    }

    fn nr_handlers(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from).min(MOST_HANDLERS)
    }
}

/// Only one thread may install pages of a heap, whose events it must read first.
struct OneThread {
    kept_bits: bool,
}

impl Engine for OneThread {
    fn open(&self) -> io::Result<Uffd> {
        Uffd::open_heap(self.kept_bits)
    }

    fn nr_handlers(&self) -> usize {
        1
    }
}
