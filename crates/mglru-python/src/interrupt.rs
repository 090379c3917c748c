//! Work without Python's lock, that Ctrl-C ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use mglru_lab::runner::Stop;

/// Time between two looks at Python's signals.
const LOOK: Duration = Duration::from_millis(50);

/// Does work in a thread of its own while others may hold Python's lock. A signal whose handler
/// raises sets `stop`, which the work must heed.
pub fn interruptible<T: Send, E: Send + std::fmt::Display>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> Result<T, E> + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    let (result, raised) = py.detach(|| watched(&stop, work));
    match raised {
        Some(error) => Err(error),
        None => result.map_err(crate::raised),
    }
}

fn watched<T: Send>(stop: &Stop, work: impl FnOnce(&Stop) -> T + Send) -> (T, Option<PyErr>) {
    let mut raised = None;
    let result = thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let worker = scope.spawn(move || {
            let result = work(stop);
            drop(done);
            result
        });
        while raised.is_none() && is_done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            raised = Python::attach(|py| py.check_signals()).err();
        }
        if raised.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        worker.join()
    });
    (result.unwrap_or_else(|cause| std::panic::resume_unwind(cause)), raised)
}

/// Fails once the work is to stop.
pub fn go_on(stop: &AtomicBool) -> Result<(), mglru_error::Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(mglru_error::Error::Request("stopped".to_string())),
        false => Ok(()),
    }
}
