//! How fast dirty pages reach the device: pages written per second of the time in which any were on
//! their way, smoothed over the last three seconds of it.

use mglru::types::Nanos;

/// Bandwidth that is assumed before anything was written: 100 MB/s.
const INITIAL_PAGES_PER_S: u64 = 25_600;
/// Busy time per sample.
const SAMPLE: Nanos = 200_000_000;
/// Busy time the estimate remembers.
const MEMORY: Nanos = 3_000_000_000;
const SECOND: u128 = 1_000_000_000;

/// Estimates the write-out bandwidth.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    pages_per_s: u64,
    in_flight: u64,
    busy_since: Nanos,
    busy: Nanos,
    written: u64,
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self { pages_per_s: INITIAL_PAGES_PER_S, in_flight: 0, busy_since: 0, busy: 0, written: 0 }
    }
}

impl Bandwidth {
    /// Returns the estimate, pages per second; at least 1.
    pub fn pages_per_s(&self) -> u64 {
        self.pages_per_s
    }

    /// Counts the pages under writeback.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Records that writeback of `pages` starts.
    pub fn started(&mut self, now: Nanos, pages: u64) {
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += pages;
    }

    /// Records that writeback of `pages` is complete.
    ///
    /// # Panics
    /// When fewer were under way.
    pub fn ended(&mut self, now: Nanos, pages: u64) {
        let left = self.in_flight.checked_sub(pages);
        self.in_flight = left.expect("more pages written than started");
        self.written += pages;
        self.busy += now.saturating_sub(self.busy_since);
        self.busy_since = self.busy_since.max(now);
        if self.busy >= SAMPLE {
            self.take_sample();
        }
    }

    fn take_sample(&mut self) {
        let span = u128::from(MEMORY.max(self.busy));
        let remembered = span - u128::from(self.busy);
        let sum = u128::from(self.pages_per_s) * remembered + u128::from(self.written) * SECOND;
        self.pages_per_s = ((sum / span) as u64).max(1);
        self.busy = 0;
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_a_steady_device_and_ignores_idle_time() {
        let mut bandwidth = Bandwidth::default();
        let mut now = 0;
        for _ in 0..6_000 {
            bandwidth.started(now, 10);
            now += 10_000_000;
            bandwidth.ended(now, 10);
            now += 500_000_000;
        }
        let estimate = bandwidth.pages_per_s();
        assert!((995..=1_005).contains(&estimate), "{estimate}");
    }

    #[test]
    fn overlapping_requests_are_counted_once() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.started(0, 8_000);
        bandwidth.ended(3_000_000_000, 4_000);
        bandwidth.ended(6_000_000_000, 4_000);
        assert_eq!((bandwidth.pages_per_s(), bandwidth.in_flight()), (1_333, 0));
    }

    #[test]
    #[should_panic(expected = "more pages written")]
    fn nothing_ends_that_did_not_start() {
        Bandwidth::default().ended(0, 1);
    }
}
