//! The least a fault can cost with a handler thread: the yardstick for the pager's own faults.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::sys::memory::{Memory, View};
use crate::sys::uffd::{Message, Uffd};
use crate::sys::wake::{self, Wake};
use crate::sys::{PAGE, direct::Buffer, thread};

/// Runs `what` in a thread that stays on the first processor, where a pager has a handler too: to
/// wake a thread of another one costs more than all the rest of a fault.
pub fn on_first_processor<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let stay = || {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        // Refused, it runs wherever.
        let _ = thread::stay_on(0, all);
        what()
    };
    std::thread::scope(|scope| scope.spawn(stay).join().expect("as the caller does"))
}

/// Times `n` first stores, each answered by a thread that does nothing but poll, read and copy, on
/// the processor of the one that stores.
///
/// # Errors
/// The kernel refuses userfaultfd.
pub fn raw_round_trip(n: usize) -> io::Result<Vec<Duration>> {
    let len = n * PAGE;
    let memory = Memory::new(len as u64)?;
    let (view, uffd, wake) = (View::new(&memory, len)?, Uffd::open()?, Wake::new()?);
    view.register(&uffd, view.span())?;
    let (over, zeros) = (AtomicBool::new(false), Buffer::new(PAGE)?);
    std::thread::scope(|scope| {
        let handler = scope.spawn(|| on_first_processor(|| answer(&uffd, &wake, &over, &zeros)));
        let stores = || (0..n as u32).map(|page| first_store(&view, page)).collect();
        let times = on_first_processor(stores);
        over.store(true, Ordering::Release);
        wake.ring();
        handler.join().expect("the handler does not panic")?;
        Ok(times)
    })
}

fn answer(uffd: &Uffd, wake: &Wake, over: &AtomicBool, zeros: &[u8]) -> io::Result<()> {
    let mut messages = [Message::default(); 8];
    while !over.load(Ordering::Acquire) {
        wake::sleep([uffd.as_fd(), wake.as_fd()], None);
        let n = uffd.read(&mut messages)?;
        for fault in messages[..n].iter().filter_map(Message::fault) {
            uffd.copy(fault.address, zeros, false)?;
        }
    }
    Ok(())
}

fn first_store(view: &View, page: u32) -> Duration {
    let begin = Instant::now();
    // SAFETY: the caller has just mapped the view, and lends nothing of it.
    #[allow(unsafe_code)]
    unsafe {
        view.store_byte(page as usize * PAGE, 1);
    }
    begin.elapsed()
}
