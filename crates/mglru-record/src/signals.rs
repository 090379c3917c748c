//! Catches signals that would end this process while it watches a program: they end the program,
//! and what was kept of it stays.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mglru_error::Error;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Remembers the last signal that came.
#[derive(Clone)]
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Catches the signals that end programs; a program that is started gets them as before.
    ///
    /// # Errors
    /// The system refuses.
    pub fn heed() -> Result<Self, Error> {
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(signal, last.clone(), signal as usize)
                .map_err(|e| Error::Request(format!("signals: {e}")))?;
        }
        Ok(Self(last))
    }

    /// Takes the last signal that came; 0: none has.
    pub fn take(&self) -> i32 {
        self.0.swap(0, Relaxed) as i32
    }

    /// Sends the program a signal that was meant for it. ^C has reached it already: a terminal
    /// sends it to both.
    pub fn pass_on(&self, child: &Child) {
        let signal = match self.take() {
            SIGHUP => Signal::HUP,
            SIGTERM => Signal::TERM,
            _ => return,
        };
        // It may have ended meanwhile; its number is not another's before it was waited for.
        let _ = kill_process(Pid::from_child(child), signal);
    }
}
