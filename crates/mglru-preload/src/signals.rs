//! Where faults are served by SIGBUS, that signal is shared with the program: it cannot be blocked
//! (the kernel ends a process whose fault cannot be signalled), and the program's own handler gets
//! what is no managed page's.

use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sighandler_t, sigset_t, size_t, timespec};
use mglru_pager::{FaultEngine, threads};

use std::mem::zeroed;

use crate::next::next;
use crate::{fatal, settings};

/// Names the type of `sigaction`.
pub type Sigaction =
    unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Signal = unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t;
type Mask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
type Suspend = unsafe extern "C" fn(*const sigset_t) -> c_int;
type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
type CheckedPoll =
    unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t, size_t) -> c_int;
type Select = unsafe extern "C" fn(
    c_int,
    *mut fd_set,
    *mut fd_set,
    *mut fd_set,
    *const timespec,
    *const sigset_t,
) -> c_int;
type Epoll = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t) -> c_int;
type Epoll2 =
    unsafe extern "C" fn(c_int, *mut epoll_event, c_int, *const timespec, *const sigset_t) -> c_int;

fn are_ours() -> bool {
    settings::faults() == FaultEngine::Sigbus
}

/// Unblocks the signal, with which the process may have been started blocked.
pub fn start() {
    if are_ours() {
        // SAFETY: a set of this function's own, made empty first.
        unsafe {
            let mut bus: sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut bus);
            libc::sigaddset(&mut bus, libc::SIGBUS);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &bus, std::ptr::null_mut());
        }
    }
}

/// The set without SIGBUS.
fn without_bus(mut set: sigset_t) -> sigset_t {
    // SAFETY: the set is this function's own.
    unsafe { libc::sigdelset(&mut set, libc::SIGBUS) };
    set
}

/// Stands in for sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    if !are_ours() && !fatal::is_active() {
        return next!(sigaction(signal, action, before) as Sigaction);
    }
    // SAFETY: the caller's own arguments.
    let (action, before) = unsafe { (action.as_ref().copied(), before.as_mut()) };
    let action = action.map(|action| match are_ours() {
        true => libc::sigaction { sa_mask: without_bus(action.sa_mask), ..action },
        false => action,
    });
    let was = if signal == libc::SIGBUS { threads::others_bus(action) } else { None };
    match was {
        Some(was) => {
            before.into_iter().for_each(|before| *before = was);
            0
        }
        None => fatal::change(signal, action, before),
    }
}

/// Stands in for signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if signal != libc::SIGBUS && !fatal::is_active() {
        return next!(signal(signal, handler) as Signal);
    }
    // SAFETY: structures of numbers.
    let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, libc::SA_RESTART);
    // SAFETY: the set is this function's own; a number that is none is refused below.
    unsafe { libc::sigaddset(&mut action.sa_mask, signal) };
    // SAFETY: the structures are this function's own.
    match unsafe { sigaction(signal, &action, &mut before) } {
        0 => before.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// Changes what is blocked by `change`, which sets no more than it is given.
fn masked(set: *const sigset_t, change: impl FnOnce(*const sigset_t) -> c_int) -> c_int {
    if set.is_null() || !are_ours() {
        return change(set);
    }
    // SAFETY: the caller's own set.
    change(&without_bus(unsafe { *set }))
}

/// Stands in for pthread_sigmask(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    before: *mut sigset_t,
) -> c_int {
    match how {
        libc::SIG_UNBLOCK => next!(pthread_sigmask(how, set, before) as Mask),
        _ => masked(set, |set| next!(pthread_sigmask(how, set, before) as Mask)),
    }
}

/// Stands in for sigprocmask(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const sigset_t,
    before: *mut sigset_t,
) -> c_int {
    match how {
        libc::SIG_UNBLOCK => next!(sigprocmask(how, set, before) as Mask),
        _ => masked(set, |set| next!(sigprocmask(how, set, before) as Mask)),
    }
}

/// Stands in for sigsuspend(2). Signals blocked while this waits are blocked in the handlers that
/// run meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(set: *const sigset_t) -> c_int {
    masked(set, |set| next!(sigsuspend(set) as Suspend))
}

/// Stands in for ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    n: nfds_t,
    at_most: *const timespec,
    set: *const sigset_t,
) -> c_int {
    masked(set, |set| next!(ppoll(fds, n, at_most, set) as Poll))
}

/// Stands in for what ppoll(2) is in programs that are built with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    n: nfds_t,
    at_most: *const timespec,
    set: *const sigset_t,
    len: size_t,
) -> c_int {
    masked(set, |set| next!(__ppoll_chk(fds, n, at_most, set, len) as CheckedPoll))
}

/// Stands in for pselect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    n: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    at_most: *const timespec,
    set: *const sigset_t,
) -> c_int {
    masked(set, |set| next!(pselect(n, reads, writes, others, at_most, set) as Select))
}

/// Stands in for epoll_pwait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    n: c_int,
    at_most: c_int,
    set: *const sigset_t,
) -> c_int {
    masked(set, |set| next!(epoll_pwait(epoll, events, n, at_most, set) as Epoll))
}

/// Stands in for epoll_pwait2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    n: c_int,
    at_most: *const timespec,
    set: *const sigset_t,
) -> c_int {
    masked(set, |set| next!(epoll_pwait2(epoll, events, n, at_most, set) as Epoll2))
}
