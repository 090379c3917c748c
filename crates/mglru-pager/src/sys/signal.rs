//! SIGBUS in the thread that faulted, and waiting where nothing may be allocated.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::checked;

/// Describes a fault as the signal reports it.
#[derive(Clone, Copy, Debug)]
pub struct Bus {
    /// Holds the address that was touched.
    pub address: usize,
    /// Says that a store touched it; `None`: this kind of processor is not asked.
    pub store: Option<bool>,
}

/// Serves a fault; false: it is not one of ours.
pub type Serve = fn(Bus) -> bool;

static SERVE: OnceLock<Serve> = OnceLock::new();
/// The program's action for the others; null: the default.
static OTHERS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());
// SAFETY: a function's address and numbers.
static DEFAULT: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };

/// Serves signalled faults from now on. The action that SIGBUS had before is taken for faults that
/// are not ours.
pub fn serve_bus(serve: Serve) -> io::Result<()> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if SERVE.get().is_some() {
        return Ok(());
    }
    // SAFETY: the structures are filled in before they are used; the handler keeps to what is
    // allowed in one.
    unsafe {
        let (mut before, mut action): (libc::sigaction, libc::sigaction) = std::mem::zeroed();
        checked(libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before))?;
        set_others(before);
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // Another handler of the program's could touch a page whose lock this thread holds.
        libc::sigfillset(&mut action.sa_mask);
        // Nothing of ours is there to fault yet: what comes in between is not ours.
        checked(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()))?;
        let _ = SERVE.set(serve);
        Ok(())
    }
}

/// A signal handler may look at the one before: it stays. Programs replace it once or twice.
fn set_others(action: libc::sigaction) {
    OTHERS.store(Box::into_raw(Box::new(action)), Ordering::Release);
}

/// Reads the action for SIGBUS that is not ours, and changes it if asked to; `None`: nothing of
/// ours is signalled, and the kernel knows it.
pub fn others(change: Option<libc::sigaction>) -> Option<libc::sigaction> {
    SERVE.get()?;
    let before = wanted_of_others();
    change.into_iter().for_each(set_others);
    Some(*before)
}

fn wanted_of_others() -> &'static libc::sigaction {
    // SAFETY: what is there is never freed.
    unsafe { OTHERS.load(Ordering::Acquire).as_ref() }.unwrap_or(&DEFAULT)
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(serve) = SERVE.get() else { return };
    // SAFETY: the kernel's own; the location of errno is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        let bus = Bus { address: (*info).si_addr() as usize, store: is_store(context) };
        if !serve(bus) {
            pass_on(wanted_of_others(), signal, info, context);
        }
        *libc::__errno_location() = errno;
    }
}

/// Does what the program asked for. By default the access fails again, and the process with it.
///
/// # Safety
/// The arguments are a signal handler's.
unsafe fn pass_on(
    before: &libc::sigaction,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    type Plain = extern "C" fn(libc::c_int);
    type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    if before.sa_flags & libc::SA_RESETHAND != 0 {
        OTHERS.store(std::ptr::null_mut(), Ordering::Release);
    }
    // SAFETY: what the program registered is a function of the kind that its flags say; the
    // kernel's own structure is words, and all of them zero are the default. The C library's
    // function may be one that asks this library.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                let (default, none) = ([0_u64; 4], std::ptr::null_mut::<u64>());
                libc::syscall(libc::SYS_rt_sigaction, signal, &default, none, size_of::<u64>());
            }
            full if before.sa_flags & libc::SA_SIGINFO != 0 => {
                std::mem::transmute::<usize, Full>(full)(signal, info, context);
            }
            plain => std::mem::transmute::<usize, Plain>(plain)(signal),
        }
    }
}

/// Bit 1 of the processor's error code.
///
/// # Safety
/// It is a signal handler's context.
#[cfg(target_arch = "x86_64")]
unsafe fn is_store(context: *mut libc::c_void) -> Option<bool> {
    // SAFETY: a signal handler's context is of this type, and the caller promises that it is one.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    Some(context.uc_mcontext.gregs[libc::REG_ERR as usize] & 2 != 0)
}

/// # Safety
/// None needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn is_store(_context: *mut libc::c_void) -> Option<bool> {
    None
}

/// Waits until `word` is no longer `seen`, or for so long.
pub fn wait(word: &AtomicU32, seen: u32, at_most: Duration) {
    let seconds = i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX);
    let time = libc::timespec { tv_sec: seconds, tv_nsec: at_most.subsec_nanos().into() };
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call. Waking early is harmless: callers look again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, seen, &time) };
}

/// Wakes all waiting threads.
pub fn wake_all(word: &AtomicU32) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: takes an address and numbers.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wait_lasts_whole_seconds_too() {
        let (word, before) = (AtomicU32::new(7), Instant::now());
        wait(&word, 8, Duration::from_secs(120));
        assert!(before.elapsed() < Duration::from_secs(100), "another value is there");
        wait(&word, 7, Duration::from_millis(1001));
        assert!(before.elapsed() >= Duration::from_secs(1));
    }
}
