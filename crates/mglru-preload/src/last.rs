//! The end of a program whose first thread ends before others. The C library ends the process with
//! its last thread, for which it takes the pager's as well: they would keep it for ever.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use libc::{c_void, pthread_key_t};
use mglru_pager::threads::{self, as_pager};

use crate::table::say;

/// The first thread has a value of this key: the C library calls its destructor when that thread
/// ends, unless the process ends with it.
static KEY: AtomicU32 = AtomicU32::new(pthread_key_t::MAX);
/// The first thread of this process has ended.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Notes that the calling thread is the first one, here or in a forked child.
pub fn first_begins() {
    HAS_ENDED.store(false, Ordering::Release);
    let mut key = KEY.load(Ordering::Relaxed);
    // SAFETY: the function lives as long as the process; the value means nothing.
    unsafe {
        let is_new = key == pthread_key_t::MAX;
        if !is_new || libc::pthread_key_create(&mut key, Some(first_ends)) == 0 {
            KEY.store(key, Ordering::Relaxed);
            libc::pthread_setspecific(key, std::ptr::dangling());
        }
    }
}

/// Ends the process, as the C library would, once the program has no threads left.
unsafe extern "C" fn first_ends(_: *mut c_void) {
    if HAS_ENDED.swap(true, Ordering::AcqRel) {
        return;
    }
    let end = || {
        // SAFETY: the program has no other threads.
        unsafe { libc::exit(0) }
    };
    if let Err(error) = as_pager(|| threads::once_alone(end)) {
        say("cannot watch for the last thread; the process will not end with it", &error);
    }
}
