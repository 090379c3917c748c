//! Signals that end the process, such as ^C: what is unfinished is removed first.

use mglru_error::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Catches the signals that end the process, from now on.
pub(crate) fn signals() -> Result<Signals, Error> {
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
    signals.map_err(|e| Error::Request(format!("signals: {e}")))
}

/// Has a signal that ends the process first do something, then end it.
pub(crate) fn at_signal(mut signals: Signals, first: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            first();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}
