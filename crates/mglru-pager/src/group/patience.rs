//! How long a caller waits for usage to come down to a lower limit.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::error::PagerError;

/// A caller gives up when usage has not come down at all for so long. Some kernels keep the end of
/// a write back for seconds while programs compute; and a caller at the socket waits 30 s.
pub(super) const PATIENCE: Duration = Duration::from_secs(25);

/// Waits for the answer as long as usage comes down: each `window` must end with less in use than
/// any before it.
///
/// # Errors
/// The policy thread is gone.
pub(super) fn wait_while_it_falls(
    answer: &Receiver<()>,
    window: Duration,
    usage: impl Fn() -> u64,
) -> Result<(), PagerError> {
    let mut least = usage();
    loop {
        match answer.recv_timeout(window) {
            Ok(()) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(PagerError::Stopped),
            Err(RecvTimeoutError::Timeout) => match usage() {
                now if now < least => least = now,
                _ => return Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc;

    use super::*;

    const WINDOW: Duration = Duration::from_millis(1);

    #[test]
    fn a_caller_waits_through_every_window_in_which_usage_falls() {
        let (reply, answer) = mpsc::sync_channel(1);
        let left = Cell::new(100);
        let usage = || {
            left.set(left.get() - 1);
            if left.get() == 10 {
                reply.send(()).unwrap();
            }
            left.get()
        };
        wait_while_it_falls(&answer, WINDOW, usage).unwrap();
        assert_eq!(left.get(), 10, "it waited for the answer, and no longer");
    }

    #[test]
    fn a_caller_gives_up_after_a_window_that_brought_nothing() {
        let (_reply, answer) = mpsc::sync_channel(1);
        let asked = Cell::new(0u64);
        let usage = || {
            asked.set(asked.get() + 1);
            100u64.saturating_sub(asked.get()).max(90)
        };
        wait_while_it_falls(&answer, WINDOW, usage).unwrap();
        assert!(asked.get() > 10, "not while it fell");
    }

    #[test]
    fn a_policy_thread_that_is_gone_is_an_error() {
        let (reply, answer) = mpsc::sync_channel(1);
        drop(reply);
        assert!(wait_while_it_falls(&answer, WINDOW, || 1).is_err());
    }
}
