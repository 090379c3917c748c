//! Processor time that an operation takes, spent for real.

use std::time::{Duration, Instant};

/// Time is spent in pieces no shorter than this: a clock cannot measure shorter ones.
const SPIN: Duration = Duration::from_micros(20);

/// Holds processor time asked for and not yet spent.
#[derive(Debug, Default)]
pub struct ProcessorTime {
    owed: Duration,
}

impl ProcessorTime {
    /// Spends so much more, now or with what comes next.
    pub fn spend(&mut self, time: Duration) {
        self.owed += time;
        if self.owed < SPIN {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < self.owed {
            std::hint::spin_loop();
        }
        self.owed = Duration::ZERO;
    }
}
