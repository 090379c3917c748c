//! Threads of a pager. They take no signals: a handler of the program's could touch memory that
//! only they can bring back.

use std::io;
use std::sync::{Arc, Barrier};
use std::thread::{Builder, JoinHandle};

use super::own::as_pager;
use super::{checked, tasks};

/// Starts a thread that is the pager's own, and waits until it is at work: starting, a thread
/// allocates with the program's malloc, whose memory it may be about to serve.
pub fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let started = Arc::new(Barrier::new(2));
    let at_work = started.clone();
    let begin = move || {
        let _own = as_pager(tasks::Own::mark);
        at_work.wait();
        drop(at_work);
        as_pager(what);
    };
    undisturbed(|| {
        let spawned = Builder::new().name(name.into()).spawn(begin)?;
        started.wait();
        Ok(spawned)
    })
}

/// Keeps the calling thread on the `nth` of the `of` processors that it may use, if there are just
/// as many.
pub fn stay_on(nth: usize, of: usize) -> io::Result<()> {
    // SAFETY: the sets are plain bits, and as large as the calls say.
    unsafe {
        let (mut all, mut one): (libc::cpu_set_t, libc::cpu_set_t) = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        checked(libc::sched_getaffinity(0, size, &mut all))?;
        let mut usable = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &all));
        if libc::CPU_COUNT(&all) as usize != of {
            return Ok(());
        }
        libc::CPU_SET(usable.nth(nth).expect("there are as many"), &mut one);
        checked(libc::sched_setaffinity(0, size, &one)).map(drop)
    }
}

/// Does something that no handler of a signal comes upon.
pub fn undisturbed<T>(what: impl FnOnce() -> T) -> T {
    let before = mask_all().expect("a full set is one");
    let done = what();
    set_mask(&before).expect("the set is one that was in force");
    done
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
