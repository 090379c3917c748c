//! Background work that gives way. A thread of `SCHED_IDLE` leaves its processor to any thread that
//! wakes there, where an ordinary one would keep it for the rest of its slice (over a millisecond);
//! so reclaim ahead of need does not delay the program.
//!
//! It may then not come to work at all while others compute. A thread that waits for it says so
//! ([`hurry`]), and it is an ordinary thread until it steps back again.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::{checked, thread};

/// Threads of the process that can step back at a time.
const THREADS: usize = 64;

/// The nice value of a thread that goes ahead.
const AHEAD: libc::c_int = -10;

/// Those that have: the process in the upper half, lest a child speaks for its parent, and the
/// thread; or 0.
static BACK: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

/// Sets the idle policy of the one thread that uses it, and resets it when dropped.
#[derive(Debug)]
pub struct IdlePolicy {
    possible: bool,
    place: Option<&'static AtomicU64>,
    /// The thread's nice value before it went ahead of others.
    nice: Option<libc::c_int>,
}

impl IdlePolicy {
    /// Begins for a thread that has not stepped back. Starts another thread to see whether it
    /// could.
    pub fn new() -> Self {
        Self { possible: is_possible(), place: None, nice: None }
    }

    /// Makes the calling thread give way from now on, if it could come back. True: it did not
    /// before, and urgent work is to be searched for again, because requests that came until now
    /// went unheard.
    pub fn lower(&mut self) -> bool {
        if !self.possible || self.is_back() {
            return false;
        }
        let own = u64::from(std::process::id()) << 32 | u64::from(thread_id());
        let (old, order) = (0, Ordering::SeqCst);
        let claim = |place: &&AtomicU64| place.compare_exchange(old, own, order, order).is_ok();
        self.place = BACK.iter().find(claim);
        if self.place.is_some() && set_policy(thread_id(), libc::SCHED_IDLE).is_err() {
            self.raise();
        }
        // Somebody may have been in a hurry between the two.
        if self.place.is_some() && !self.is_back() {
            let _ = set_policy(thread_id(), libc::SCHED_OTHER);
        }
        true
    }

    /// Makes the thread as any other again.
    pub fn raise(&mut self) {
        if self.is_back() {
            self.place.take().into_iter().for_each(raise);
        }
    }

    /// Makes the calling thread go ahead of others, if it may, or be as before: where each
    /// processor computes, each time that it sleeps costs it several of their slices.
    pub fn go_ahead(&mut self, ahead: bool) {
        match (self.nice, ahead) {
            (None, true) => {
                let before = nice();
                // Without CAP_SYS_NICE it stays as it is.
                self.nice = set_nice(before.min(AHEAD)).is_ok().then_some(before);
            }
            (Some(before), false) => {
                let _ = set_nice(before);
                self.nice = None;
            }
            _ => {}
        }
    }

    fn is_back(&self) -> bool {
        let own = u64::from(thread_id());
        self.place.is_some_and(|place| place.load(Ordering::SeqCst) & u64::from(u32::MAX) == own)
    }
}

impl Drop for IdlePolicy {
    fn drop(&mut self) {
        self.raise();
        self.go_ahead(false);
    }
}

/// Stops every thread of this process's pagers from giving way: a caller waits for their work.
pub fn hurry() {
    let own = |place: &&AtomicU64| place.load(Ordering::SeqCst) >> 32 == std::process::id().into();
    let back = BACK.iter().filter(|place| place.load(Ordering::SeqCst) != 0);
    back.filter(own).for_each(raise);
}

/// Takes a lock whose holder may have stepped back.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            hurry();
            mutex.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

/// Tells whether a thread of this process may step back, and up again. Without CAP_SYS_NICE, or 20
/// in RLIMIT_NICE, it could not come back: a thread that ends at once tries.
pub fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        let came_back = Arc::new(AtomicBool::new(false));
        let succeeded = came_back.clone();
        let there_and_back = move || succeeded.store(is_ordinary() && tries(), Ordering::SeqCst);
        let thread = thread::spawn("mglru-probe", there_and_back);
        thread.is_ok_and(|thread| thread.join().is_ok()) && came_back.load(Ordering::SeqCst)
    })
}

fn is_ordinary() -> bool {
    // SAFETY: takes a number.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_OTHER }
}

fn tries() -> bool {
    set_policy(0, libc::SCHED_IDLE).is_ok() && set_policy(0, libc::SCHED_OTHER).is_ok()
}

fn raise(place: &AtomicU64) {
    let thread = place.swap(0, Ordering::SeqCst) as u32;
    if thread != 0 {
        // It has ended, or was ordinary already.
        let _ = set_policy(thread, libc::SCHED_OTHER);
    }
}

fn thread_id() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() as u32 }
}

fn nice() -> libc::c_int {
    // SAFETY: takes numbers. An error is a value as well; the calling thread's is always known.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, thread_id()) }
}

fn set_nice(nice: libc::c_int) -> io::Result<()> {
    // SAFETY: takes numbers.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, thread_id(), nice) }).map(drop)
}

fn set_policy(thread: u32, policy: libc::c_int) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure outlives the call.
    checked(unsafe { libc::sched_setscheduler(thread as libc::pid_t, policy, &none) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests may be in a hurry.
    fn lower(idle: &mut IdlePolicy) {
        while is_ordinary() {
            idle.lower();
        }
    }

    #[test]
    fn a_thread_steps_back_until_somebody_is_in_a_hurry() {
        if !is_possible() {
            return println!("skipped: a thread may not step back here");
        }
        let mut idle = IdlePolicy::new();
        lower(&mut idle);
        std::thread::spawn(hurry).join().unwrap();
        assert!(is_ordinary());
        lower(&mut idle);
        idle.raise();
        assert!(is_ordinary());
        lower(&mut idle);
        drop(idle);
        assert!(is_ordinary());
    }

    #[test]
    fn a_thread_that_may_goes_ahead_and_comes_back() {
        let (before, mut idle) = (nice(), IdlePolicy::new());
        idle.go_ahead(true);
        idle.go_ahead(true);
        let may = nice() == AHEAD.min(before);
        assert!(may || nice() == before);
        idle.go_ahead(false);
        assert_eq!(nice(), before);
        if !may {
            println!("skipped: this process may not raise its priority");
        }
    }

    #[test]
    fn who_waits_for_a_lock_hurries_its_holder() {
        if !is_possible() {
            return println!("skipped: a thread may not step back here");
        }
        let mutex = Mutex::new(());
        std::thread::scope(|scope| {
            let held = mutex.lock().unwrap();
            let mut idle = IdlePolicy::new();
            lower(&mut idle);
            scope.spawn(|| drop(lock(&mutex)));
            while !is_ordinary() {
                std::thread::yield_now();
            }
            drop(held);
        });
    }
}
