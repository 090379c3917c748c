//! Threads of a pager. They take no signals: a handler of the program's could touch memory that
//! only they can bring back.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::own::as_own;

/// Starts a thread that is the pager's own.
pub fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let before = mask_all()?;
    let spawned = Builder::new().name(name.into()).spawn(move || as_own(what));
    set_mask(&before)?;
    spawned
}

fn mask_all() -> io::Result<libc::sigset_t> {
    // SAFETY: both sets are filled in before they are used.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        match libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) {
            0 => Ok(before),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is one that the kernel filled in.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
