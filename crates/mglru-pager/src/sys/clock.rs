//! The clock of the policy thread.

use std::time::Instant;

/// Nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time, ns.
    pub fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
