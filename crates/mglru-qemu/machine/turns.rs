//! Lets QEMU's main loop work only while the thread that runs the guest sleeps.
//!
//! The guest's thread marks a processor as halted before it adds the instructions that it ran to
//! the clock. A main loop that is awake just then sees a machine that waits, and moves the clock to
//! the next timer from where it stood before those instructions: the timer fires late. Waking the
//! main loop up more often makes each run differ. With turns, nothing depends on when the host
//! lets which thread run. The guest's thread runs timers itself, so that it needs nobody.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A guest that never sleeps keeps the main loop out no longer: that one also ends the machine.
const LONGEST: Duration = Duration::from_secs(10);
/// `RTLD_NEXT`
const NEXT: *mut c_void = -1_isize as *mut c_void;

/// Holds the address on which the guest's thread sleeps; none: it runs.
static SLEEPS: Mutex<Option<usize>> = Mutex::new(None);
static FELL_ASLEEP: Condvar = Condvar::new();

type Wait = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Wake = unsafe extern "C" fn(*mut c_void) -> c_int;
type Poll = unsafe extern "C" fn(*mut c_void, c_ulong, *const c_void, *const c_void) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn getpid() -> c_int;
    fn gettid() -> c_int;
}

/// Finds the C library's function behind ours. Of its condition variables the oldest version is
/// found first, which knows another layout.
fn behind(name: &CStr) -> *mut c_void {
    let version = c"GLIBC_2.3.2".as_ptr();
    // SAFETY: both texts end with a zero byte.
    let found = unsafe { dlvsym(NEXT, name.as_ptr(), version) };
    // SAFETY: as above.
    let found = if found.is_null() { unsafe { dlsym(NEXT, name.as_ptr()) } } else { found };
    assert!(!found.is_null(), "the C library lacks a function");
    found
}

/// The function of this name and type, looked up once.
macro_rules! behind {
    ($name:literal, $type:ty) => {{
        static FOUND: OnceLock<$type> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let found = behind($name);
            // SAFETY: the C library's function of this name is of this type.
            unsafe { std::mem::transmute::<*mut c_void, $type>(found) }
        })
    }};
}

fn is_main() -> bool {
    thread_local! {
        static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    // SAFETY: both only look.
    let look = || unsafe { getpid() == gettid() };
    let is_main = IS_MAIN.get().unwrap_or_else(look);
    IS_MAIN.set(Some(is_main));
    is_main
}

fn sleeps() -> MutexGuard<'static, Option<usize>> {
    SLEEPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Only a sleeper that nobody has woken yet stays asleep while the main loop works.
fn woken(condition: *mut c_void) {
    let mut sleeps = sleeps();
    if *sleeps == Some(condition as usize) {
        *sleeps = None;
    }
}

/// Stands before the C library's function of this name. Of QEMU's threads besides the main one,
/// only the guest's waits so.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(condition: *mut c_void, lock: *mut c_void) -> c_int {
    let wait = behind!(c"pthread_cond_wait", Wait);
    if !is_main() {
        *sleeps() = Some(condition as usize);
        FELL_ASLEEP.notify_all();
    }
    // SAFETY: the caller says so.
    unsafe { wait(condition, lock) }
}

/// Stands before the C library's function of this name.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(condition: *mut c_void) -> c_int {
    let wake = behind!(c"pthread_cond_signal", Wake);
    woken(condition);
    // SAFETY: the caller says so.
    unsafe { wake(condition) }
}

/// Stands before the C library's function of this name.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut c_void) -> c_int {
    let wake = behind!(c"pthread_cond_broadcast", Wake);
    woken(condition);
    // SAFETY: the caller says so.
    unsafe { wake(condition) }
}

/// Stands before the C library's function of this name, with which the main loop waits for work.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    files: *mut c_void,
    len: c_ulong,
    time: *const c_void,
    signals: *const c_void,
) -> c_int {
    let poll = behind!(c"ppoll", Poll);
    // SAFETY: the caller says so.
    let ready = unsafe { poll(files, len, time, signals) };
    if is_main() {
        // SAFETY: it is this thread's own.
        let problem = unsafe { *__errno_location() };
        drop(FELL_ASLEEP.wait_timeout_while(sleeps(), LONGEST, |on| on.is_none()));
        // SAFETY: as above. Waiting may have overwritten it.
        unsafe { *__errno_location() = problem };
    }
    ready
}
