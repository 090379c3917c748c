//! Catches signals that would end this process while it watches a program: they end the program,
//! and what was kept of it stays.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mglru_error::Error;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
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

    /// Sends the program a signal that was meant for it. ^C at a terminal has reached it already.
    pub fn pass_on(&self, child: &Child) {
        let signal = match self.take() {
            SIGHUP => Signal::HUP,
            SIGTERM => Signal::TERM,
            SIGINT if !hears_the_terminal() => Signal::INT,
            _ => return,
        };
        // It may have ended meanwhile; its number is not another's before it was waited for.
        let _ = kill_process(Pid::from_child(child), signal);
    }
}

/// Is this process, and so the program that it started, among those that a terminal sends ^C?
fn hears_the_terminal() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|tty| rustix::termios::tcgetpgrp(&tty).is_ok_and(|at| at == getpgrp()))
}
