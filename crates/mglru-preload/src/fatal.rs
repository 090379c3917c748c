//! Signals that end the process unless the program says otherwise. They are caught, so that what
//! must not be lost is finished first, and then end the process as they would have. The program
//! sees them at their default.
//!
//! A signal may come upon its thread anywhere, also where it holds a lock of this library's. So a
//! thread that does nothing else does the work, and the handler waits for it.

use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libc::{c_int, c_void, siginfo_t};
use mglru_pager::threads;

use crate::next::next;
use crate::signals::Sigaction;
use crate::{ends, heap, settings, table, unmanaged};

/// The process ends after this time, whatever is not finished.
const PATIENCE: Duration = Duration::from_secs(20);

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// There is a thread that finishes; without a heap or shared files there is nothing to.
static HAS_THREAD: AtomicBool = AtomicBool::new(false);
/// A signal asks for the end.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// All is finished.
static FINISHED: AtomicU32 = AtomicU32::new(0);
/// A signal that waits until its thread lets go of the table; 0: none.
static PENDING: AtomicI32 = AtomicI32::new(0);

/// Starts to catch what would end the process.
pub fn start() {
    let has_much = settings::fork().is_some() || settings::manages_shared_files();
    if has_much && let Err(error) = threads::spawn("mglru-end", finish_when_asked) {
        return table::say("cannot catch fatal signals; they end the process at once", &error);
    }
    HAS_THREAD.store(has_much, Ordering::Release);
    ACTIVE.store(true, Ordering::Release);
    (1..=libc::SIGRTMAX()).filter(|&signal| catches(signal)).for_each(catch);
}

fn finish_when_asked() {
    while ASKED.load(Ordering::Acquire) == 0 {
        threads::wait(&ASKED, 0, PATIENCE);
    }
    unmanaged::say_at_end();
    heap::finish_children();
    table::table().finish();
    FINISHED.store(1, Ordering::Release);
    threads::wake_all(&FINISHED);
}

/// Catches a signal, if it is at its default.
fn catch(signal: c_int) {
    // SAFETY: a structure of numbers.
    let mut now: libc::sigaction = unsafe { zeroed() };
    let asked = next!(sigaction(signal, std::ptr::null(), &mut now) as Sigaction);
    if asked == 0 && now.sa_sigaction == libc::SIG_DFL {
        next!(sigaction(signal, &ours(), std::ptr::null_mut()) as Sigaction);
    }
}

/// Stops catching in a forked child: nothing is managed, and no thread answers.
pub fn abandon() {
    ACTIVE.store(false, Ordering::Release);
}

/// Tells whether signals are caught.
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Acquire)
}

/// Tells whether a signal ends a process by default, and can be caught.
fn catches(signal: c_int) -> bool {
    const STAYS: [c_int; 10] = [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGCHLD,
        libc::SIGCONT,
        libc::SIGURG,
        libc::SIGWINCH,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        // Its faults may be the pager's.
        libc::SIGBUS,
    ];
    let served = signal == libc::SIGBUS && settings::faults() != mglru_pager::FaultEngine::Sigbus;
    // Numbers between those two are the C library's.
    let known = (1..32).contains(&signal) || signal >= libc::SIGRTMIN();
    known && (served || !STAYS.contains(&signal))
}

fn ours() -> libc::sigaction {
    // SAFETY: a structure of numbers.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = end as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the set is this function's own.
    unsafe { libc::sigfillset(&mut action.sa_mask) };
    action
}

/// Changes and returns what is done with a signal, as sigaction(2) does without this library.
pub fn change(
    signal: c_int,
    action: Option<libc::sigaction>,
    before: Option<&mut libc::sigaction>,
) -> c_int {
    let by_default = |action: &libc::sigaction| action.sa_sigaction == libc::SIG_DFL;
    let action = action.map(|action| match by_default(&action) && catches(signal) {
        true if is_active() => ours(),
        _ => action,
    });
    // SAFETY: a structure of numbers.
    let mut was: libc::sigaction = unsafe { zeroed() };
    let action = action.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let done = next!(sigaction(signal, action, &mut was) as Sigaction);
    if let (0, Some(before)) = (done, before) {
        let caught = was.sa_sigaction == ours().sa_sigaction;
        // SAFETY: all of it zero is the default.
        *before = if caught { unsafe { zeroed() } } else { was };
    }
    done
}

/// Finishes, and lets the signal do what it does by default.
extern "C" fn end(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's own structure.
    let code = unsafe { (*info).si_code };
    let is_fault =
        code > 0 && [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL].contains(&signal);
    if ends::is_managed_process() && !threads::is_pager() && is_active() {
        if table::is_held_here() && !is_fault {
            PENDING.store(signal, Ordering::Release);
            return;
        }
        if !table::is_held_here() {
            wait_for_end();
        }
    }
    // SAFETY: the kernel's structure is words, and all of them zero are the default; the other
    // call takes numbers. A fault comes again by itself.
    unsafe {
        let (default, none) = ([0_u64; 4], std::ptr::null_mut::<u64>());
        libc::syscall(libc::SYS_rt_sigaction, signal, &default, none, size_of::<u64>());
        if !is_fault {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
        }
    }
}

fn wait_for_end() {
    if !HAS_THREAD.load(Ordering::Acquire) {
        return unmanaged::say_at_end();
    }
    ASKED.store(1, Ordering::Release);
    threads::wake_all(&ASKED);
    let start = Instant::now();
    while FINISHED.load(Ordering::Acquire) == 0 && start.elapsed() < PATIENCE {
        threads::wait(&FINISHED, 0, Duration::from_millis(100));
    }
}

/// Raises a signal again that came while its thread had the table.
pub fn resume() {
    let signal = PENDING.swap(0, Ordering::AcqRel);
    if signal != 0 {
        // SAFETY: takes numbers.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }
}
