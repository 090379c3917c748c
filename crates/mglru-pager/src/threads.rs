//! Which threads, and which signals, are the pager's own. Under `mglru exec` the C library's
//! functions are those of the preload library; called from here they must not ask the pager again.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use crate::sys::own::{OnMap, as_pager, is_pager, on_map};
pub use crate::sys::raw::{limit, longest_file};
pub use crate::sys::signal::{wait, wake_all};
use crate::sys::{own, signal, tasks, thread};

static APART: AtomicBool = AtomicBool::new(false);

/// Declares that the pager's threads have an allocator that a fork does not hold still. Called
/// before the first heap is made.
pub fn set_allocates_apart() {
    APART.store(true, Ordering::Release);
}

/// Says whether that was declared.
pub fn allocates_apart() -> bool {
    APART.load(Ordering::Acquire)
}

/// Reads the action for SIGBUS of pages that are no pager's, and changes it if asked to. `None`: no
/// pager is served by SIGBUS, and the kernel knows it.
pub fn others_bus(change: Option<libc::sigaction>) -> Option<libc::sigaction> {
    signal::others(change)
}

/// Says a line to the person who runs the program, unless the program put another file in the place
/// of standard error.
pub fn say(line: &str) {
    crate::sys::raw::say_line(&format!("{line}\n"));
}

/// Has something done, by a thread that is not at work for a pager, once all others are.
///
/// # Errors
/// The thread cannot be started.
pub fn once_alone(what: impl FnOnce() + Send + 'static) -> io::Result<()> {
    const OFTEN: Duration = Duration::from_millis(1);
    const SELDOM: Duration = Duration::from_millis(50);
    let watch = tasks::Watch::open()?;
    let wait = move || {
        let mut pause = OFTEN;
        while !watch.only_own_left() {
            std::thread::sleep(pause);
            pause = (pause * 2).min(SELDOM);
        }
        own::leave();
        what();
    };
    thread::spawn("mglru-last", wait).map(drop)
}

/// Starts a thread that is the pager's own: it takes no signals, and what it calls is not asked
/// about. Its name must begin with `mglru-`.
///
/// # Errors
/// The system starts no more threads.
pub fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::spawn(name, what).map(drop)
}
