//! Carries signals between the policy and an arena's handlers about faults that wait.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::wake::Wake;

/// The signals to one handler.
struct HandlerSignal {
    /// Wakes it: faults that wait should be tried again.
    wake: Wake,
    /// There will be no room: its waiting faults fail.
    hopeless: AtomicBool,
}

/// The signals to each handler, and whether a fault of theirs waits for room. A handler says that
/// one does and reads its own signals ([`ForHandler`](super::ForHandler)), the policy answers
/// ([`ForPolicy`](super::ForPolicy)), anybody wakes.
pub(super) struct Signals {
    handlers: Vec<HandlerSignal>,
    waits: AtomicBool,
}

impl Signals {
    pub(super) fn new(nr_handlers: usize) -> io::Result<Self> {
        let signal = |_| Ok(HandlerSignal { wake: Wake::new()?, hopeless: AtomicBool::new(false) });
        let handlers = (0..nr_handlers).map(signal).collect::<io::Result<_>>()?;
        Ok(Self { handlers, waits: AtomicBool::new(false) })
    }

    pub(super) fn nr_handlers(&self) -> usize {
        self.handlers.len()
    }

    pub(super) fn wake(&self, nth: usize) -> &Wake {
        &self.handlers[nth].wake
    }

    pub(super) fn ring_all(&self) {
        self.handlers.iter().for_each(|signal| signal.wake.ring());
    }

    pub(super) fn ring_others(&self, nth: usize) {
        let others = self.handlers.iter().enumerate().filter(|&(other, _)| other != nth);
        others.for_each(|(_, signal)| signal.wake.ring());
    }

    pub(super) fn waits_for_room(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    pub(super) fn wait_for_room(&self) {
        self.waits.store(true, Ordering::Release);
    }

    pub(super) fn take_hopeless(&self, nth: usize) -> bool {
        self.handlers[nth].hopeless.swap(false, Ordering::AcqRel)
    }

    pub(super) fn clear_hopeless(&self, nth: usize) {
        self.handlers[nth].hopeless.store(false, Ordering::Release);
    }

    pub(super) fn retry_waiting(&self) {
        self.waits.store(false, Ordering::Release);
        self.ring_all();
    }

    pub(super) fn fail_waiting(&self) {
        if self.waits.swap(false, Ordering::AcqRel) {
            self.handlers.iter().for_each(|signal| signal.hopeless.store(true, Ordering::Release));
            self.ring_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reaches_each_handler_once_and_only_if_one_waits() {
        let signals = Signals::new(2).unwrap();
        signals.fail_waiting();
        assert!(!signals.take_hopeless(0), "nobody waits");
        signals.wait_for_room();
        signals.fail_waiting();
        assert!(!signals.waits_for_room());
        assert!(signals.take_hopeless(0) && !signals.take_hopeless(0));
        assert!(signals.take_hopeless(1));
        signals.wait_for_room();
        signals.retry_waiting();
        assert!(!signals.waits_for_room() && !signals.take_hopeless(1));
    }
}
