//! Memory pressure as PSI has it: how long threads could not go on for want of memory, and how
//! that averages over 10, 60 and 300 seconds.
//!
//! A thread stalls while its fault waits for room, or for a page that was evicted although it
//! belongs to the working set. `some` is the time in which at least one stalls. `full` is the time
//! in which as many stall as there are threads that have work: whose processor time grew during
//! the last period.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sets the period, ns, in which PSI's averages move: two seconds.
pub const PERIOD: u64 = 2_000_000_000;
/// Windows of the averages, seconds.
const WINDOWS: [f64; 3] = [10.0, 60.0, 300.0];
/// An average below a hundredth of a percent prints as zero.
const GONE: f64 = 1e-4;

/// One of the two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line {
    /// Stalled, ns.
    total: u64,
    /// The part of that which the averages contain.
    averaged: u64,
    /// Shares of the time, by window.
    averages: [f64; WINDOWS.len()],
}

impl Line {
    fn average(&mut self, periods: u64) {
        let span = periods as f64 * PERIOD as f64;
        let share = ((self.total - self.averaged) as f64 / span).min(1.0);
        self.averaged = self.total;
        for (average, window) in self.averages.iter_mut().zip(WINDOWS) {
            let keeps = (-span / 1e9 / window).exp();
            *average = *average * keeps + share * (1.0 - keeps);
        }
    }

    fn is_quiet(&self) -> bool {
        self.total == self.averaged && self.averages.iter().all(|&average| average < GONE)
    }
}

#[derive(Clone, Debug)]
struct State {
    /// Threads that stall now.
    stalled: u32,
    /// Threads that have work.
    working: u32,
    /// When the totals were last right, ns.
    settled: u64,
    /// When the averages last moved, ns.
    averaged: u64,
    some: Line,
    full: Line,
}

impl State {
    fn settle(&mut self, now: u64) {
        let past = now.saturating_sub(self.settled);
        if self.stalled > 0 {
            self.some.total += past;
        }
        if self.stalled > 0 && self.stalled >= self.working {
            self.full.total += past;
        }
        self.settled = self.settled.max(now);
    }

    fn average(&mut self, now: u64) {
        self.settle(now);
        let periods = now.saturating_sub(self.averaged) / PERIOD;
        if periods > 0 {
            self.some.average(periods);
            self.full.average(periods);
            self.averaged += periods * PERIOD;
        }
    }
}

/// Tracks the pressure of one group, those below it included.
#[derive(Debug)]
pub struct Pressure(Mutex<State>);

impl Pressure {
    /// Creates it without any pressure so far.
    pub fn new(now: u64) -> Self {
        let (some, full) = (Line::default(), Line::default());
        let state = State { stalled: 0, working: 1, settled: now, averaged: now, some, full };
        Self(Mutex::new(state))
    }

    /// Adds `more` to the threads that stall from now on.
    pub fn shift(&self, now: u64, more: i32) {
        let mut state = self.state();
        state.settle(now);
        state.stalled = state.stalled.saturating_add_signed(more);
    }

    /// Brings the averages up to date. `working`: threads that have work, at least one.
    pub fn tick(&self, now: u64, working: u32) {
        let mut state = self.state();
        state.average(now);
        state.working = working.max(1);
    }

    /// Tells whether nothing stalls and the averages are zero: time alone changes nothing.
    pub fn is_quiet(&self) -> bool {
        let state = self.state();
        state.stalled == 0 && state.some.is_quiet() && state.full.is_quiet()
    }

    /// Returns the text of `memory.pressure`.
    pub fn text(&self, now: u64) -> String {
        let mut state = self.state();
        state.average(now);
        let mut text = String::new();
        for (name, line) in [("some", &state.some), ("full", &state.full)] {
            let [short, middle, long] = line.averages.map(|average| average * 100.0);
            let total = line.total / 1000;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{name} avg10={short:.2} avg60={middle:.2} avg300={long:.2} total={total}"
            );
        }
        text
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn overlapping_stalls_count_once_and_full_needs_everybody() {
        let pressure = Pressure::new(0);
        pressure.tick(0, 2);
        pressure.shift(S, 1);
        pressure.shift(2 * S, 1);
        pressure.shift(3 * S, -1);
        pressure.shift(5 * S, -1);
        let text = pressure.text(5 * S);
        let totals: Vec<_> =
            text.lines().map(|line| line.split("total=").nth(1).unwrap()).collect();
        assert_eq!(totals, ["4000000", "1000000"], "{text}");
    }

    #[test]
    fn averages_close_in_on_the_share_of_stalled_time_and_decay() {
        let pressure = Pressure::new(0);
        for second in (0..60).step_by(2) {
            pressure.shift(second * S, 1);
            pressure.shift((second + 1) * S, -1);
            pressure.tick((second + 2) * S, 1);
        }
        // Half of the time, 60 s long: 1 - e^-6, 1 - e^-1, 1 - e^-0.2 of it.
        let line = "avg10=49.88 avg60=31.61 avg300=9.06 total=30000000";
        assert_eq!(pressure.text(60 * S), format!("some {line}\nfull {line}\n"));
        assert!(!pressure.is_quiet());
        assert!(pressure.text(70 * S).starts_with("some avg10=18.35 avg60=26.75 "));
        pressure.tick(10_000 * S, 1);
        assert!(pressure.is_quiet());
    }

    #[test]
    fn a_stall_that_goes_on_shows_before_it_ends() {
        let pressure = Pressure::new(0);
        pressure.shift(0, 1);
        assert!(pressure.text(20 * S).starts_with("some avg10=86.47 "));
        assert!(pressure.text(20 * S).contains("total=20000000"));
        assert!(!pressure.is_quiet());
    }
}
