//! Trace events of this process's pager (`mglru exec --trace-events`). A thread gets a ring from
//! the process that writes the file, and keeps the connection: its end is the process's end,
//! however that comes. Before an end that can be seen the thread waits until the file is complete.
//!
//! The thread has the connection in a table of descriptors of its own, so that the program's stay
//! as they are.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use mglru_pager::events::{Call, EventSender};
use mglru_pager::{launch, threads};

use crate::apart;
use crate::table::say;

/// A process that ends waits so long at most.
const PATIENCE: Duration = Duration::from_secs(6);
/// What came of the end.
const WRITTEN: u32 = 1;
const FAILED: u32 = 2;

/// This process has the thread.
static RUNS: AtomicBool = AtomicBool::new(false);
/// The process is about to end; threads wait for both.
static ENDS: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

/// Gets a ring for this process's pager, if its events are to be written.
pub fn start() -> Option<EventSender> {
    let name = std::env::var(launch::ENV_TRACE_EVENTS).ok()?;
    let not_written = |error: &io::Error| say("this process's trace events are not written", error);
    connect(name).inspect_err(not_written).ok()
}

fn connect(name: String) -> io::Result<EventSender> {
    let (reply, answer) = sync_channel(1);
    threads::spawn("mglru-events", move || hold(&name, &reply))?;
    answer.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

/// Holds the connection for as long as the process lives.
fn hold(name: &str, reply: &SyncSender<io::Result<EventSender>>) {
    let called = apart::leave_descriptors().and_then(|()| Call::connect(name));
    let call = match called {
        Ok((call, sender)) => {
            RUNS.store(true, Ordering::Release);
            // The thread that started this one waits for the answer.
            let _ = reply.send(Ok(sender));
            call
        }
        Err(error) => {
            let _ = reply.send(Err(error));
            return;
        }
    };
    wait_until(&ENDS, None);
    let done = call.end().map_or(FAILED, |()| WRITTEN);
    DONE.store(done, Ordering::Release);
    threads::wake_all(&DONE);
    loop {
        std::thread::park();
    }
}

/// Waits until a word is not 0, or until a time. Returns what it is.
fn wait_until(word: &AtomicU32, until: Option<Instant>) -> u32 {
    loop {
        let now = word.load(Ordering::Acquire);
        let left = until.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if now != 0 || left.is_zero() {
            return now;
        }
        threads::wait(word, 0, left.min(Duration::from_secs(3600)));
    }
}

/// Waits until the events of this process are in the file: it ends.
pub fn end() {
    if !RUNS.load(Ordering::Acquire) {
        return;
    }
    ENDS.store(1, Ordering::Release);
    threads::wake_all(&ENDS);
    if wait_until(&DONE, Some(Instant::now() + PATIENCE)) != WRITTEN {
        RUNS.store(false, Ordering::Release);
        say("trace events may be incomplete", &"the process that writes them does not answer");
    }
}

/// Notes that a forked child has no such thread.
pub fn forget() {
    RUNS.store(false, Ordering::Release);
    ENDS.store(0, Ordering::Release);
    DONE.store(0, Ordering::Release);
}
