//! Which threads, and which signals, are the pager's own. Under `mglru exec` the C library's
//! functions are those of the preload library; called from here they must not ask the pager again.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::signal;
pub use crate::sys::signal::{wait, wake_all};
pub use crate::sys::thread::spawn;

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

static APART: AtomicBool = AtomicBool::new(false);

/// The pager's threads have an allocator that a fork does not hold still. Said before the first
/// heap is made.
pub fn set_allocates_apart() {
    APART.store(true, Ordering::Release);
}

/// Was it said?
pub fn allocates_apart() -> bool {
    APART.load(Ordering::Acquire)
}

/// What is done with SIGBUS of pages that are no pager's, from now on if it is to change. `None`:
/// no pager is served by SIGBUS, and the kernel knows.
pub fn others_bus(change: Option<libc::sigaction>) -> Option<libc::sigaction> {
    signal::others(change)
}

/// Says a line to whoever runs the program, unless the program put another file in the place of
/// standard error.
pub fn say(line: &str) {
    crate::sys::raw::say_line(&format!("{line}\n"));
}

/// Is the calling thread at work for a pager?
pub fn is_own() -> bool {
    OWN.get()
}

/// Does something as a pager would.
pub fn as_own<T>(what: impl FnOnce() -> T) -> T {
    let before = OWN.replace(true);
    let done = what();
    OWN.set(before);
    done
}
