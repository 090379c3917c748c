//! The pager's threads step aside while the program forks.
//!
//! A fork holds the C library's allocator still and ends only when the handler of each heap has
//! read of it. A handler that allocates meanwhile, or waits for a thread that does, would wait for
//! ever. So before the allocator is held all are asked out of their work; until the fork is over
//! handlers do nothing but read, into room they have.
//!
//! The policy and the children's thread make way for a fork that wants to begin; a handler goes
//! on until they are out, because they may wait for a page that it holds. Where the pager
//! allocates apart from the program ([`threads::allocates_apart`]) none of this is needed.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::sys::idle;
use crate::threads;

const OPEN: u32 = 0;
/// A fork wants to begin.
const WANTED: u32 = 1;
/// One is under way.
const CLOSED: u32 = 2;
/// One will begin when no heap is being ended.
const ASKED: u32 = 3;
/// How often waiting threads look again: a fork takes longer.
const LOOK: Duration = Duration::from_micros(50);

static PHASE: AtomicU32 = AtomicU32::new(OPEN);
/// Handlers at work; other threads of the pager at work.
static AT_WORK: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// Heaps being ended: until they are unmapped a fork tells them of itself, and nobody reads it.
static ENDING: AtomicU32 = AtomicU32::new(0);
/// The forking thread has closed it.
static HELD: AtomicBool = AtomicBool::new(false);

/// Names the kind of thread that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Names a handler.
    Handler = 0,
    /// Names the policy, or the thread that serves children.
    Other = 1,
}

/// Marks work that no fork interrupts, while it lives.
pub struct Work(Who);

/// Begins work, if no fork is in the way.
pub fn try_work(who: Who) -> Option<Work> {
    AT_WORK[who as usize].fetch_add(1, Ordering::SeqCst);
    let work = Work(who);
    match PHASE.load(Ordering::SeqCst) {
        OPEN | ASKED => Some(work),
        WANTED if who == Who::Handler => Some(work),
        _ => None,
    }
}

/// Begins work, after the fork that may be in the way.
pub fn work(who: Who) -> Work {
    loop {
        match try_work(who) {
            Some(work) => return work,
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Marks a heap that is being ended; no fork begins while it lives.
pub struct Ending(());

/// Begins to end a heap, after the fork that may be in the way.
pub fn ending() -> Ending {
    loop {
        ENDING.fetch_add(1, Ordering::SeqCst);
        let ending = Ending(());
        if PHASE.load(Ordering::SeqCst) == OPEN {
            return ending;
        }
        drop(ending);
        std::thread::sleep(LOOK);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        AT_WORK[self.0 as usize].fetch_sub(1, Ordering::SeqCst);
    }
}

/// Registers the `pthread_atfork` functions before the first heap is made.
pub fn prepare() {
    static ONCE: Once = Once::new();
    if threads::allocates_apart() {
        return;
    }
    ONCE.call_once(|| {
        // SAFETY: the functions live as long as the process.
        #[allow(unsafe_code)]
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child))
        };
    });
}

extern "C" fn before() {
    if threads::is_pager() {
        return;
    }
    while PHASE.compare_exchange(OPEN, ASKED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        std::thread::sleep(LOOK);
    }
    while ENDING.load(Ordering::SeqCst) > 0 {
        std::thread::sleep(LOOK);
    }
    PHASE.store(WANTED, Ordering::SeqCst);
    wait_for(Who::Other);
    PHASE.store(CLOSED, Ordering::SeqCst);
    wait_for(Who::Handler);
    HELD.store(true, Ordering::SeqCst);
}

fn wait_for(who: Who) {
    while AT_WORK[who as usize].load(Ordering::SeqCst) > 0 {
        idle::hurry();
        std::thread::sleep(LOOK);
    }
}

/// Lets work begin again.
extern "C" fn in_parent() {
    if HELD.swap(false, Ordering::SeqCst) {
        PHASE.store(OPEN, Ordering::SeqCst);
    }
}

/// Lets work begin in the child, whose only thread this is. A thread that only tried to work, and
/// was about to be refused, is still counted here, where it never goes on: the child's own forks
/// would wait for it for ever.
extern "C" fn in_child() {
    if HELD.load(Ordering::SeqCst) {
        AT_WORK.iter().chain([&ENDING]).for_each(|count| count.store(0, Ordering::SeqCst));
    }
    in_parent();
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    #[test]
    fn a_child_does_not_wait_for_threads_that_it_does_not_have() {
        // SAFETY: the child changes its own counts and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            HELD.store(true, Ordering::SeqCst);
            AT_WORK[Who::Handler as usize].store(1, Ordering::SeqCst);
            ENDING.store(1, Ordering::SeqCst);
            in_child();
            let left = AT_WORK.iter().chain([&ENDING]).map(|count| count.load(Ordering::SeqCst));
            // SAFETY: nothing of the parent's is cleaned up.
            unsafe { libc::_exit(left.sum::<u32>() as i32) };
        }
        let mut status = 0;
        // SAFETY: the call fills the status of the child above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
