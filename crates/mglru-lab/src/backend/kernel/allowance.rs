//! Measures how long a guest has had, for the limits after which it is given up.

use std::time::{Duration, Instant};

/// A guest in virtual time is charged this share of the host's time at least: one that does nothing
/// at all ends too.
const SHARE: u32 = 8;
/// Ticks of `/proc/PID/stat` in a second; user space sees 100 on every machine.
const TICKS: u64 = 100;

/// Measures the time that a guest has had since its start.
pub struct Allowance {
    start: Instant,
    /// The process whose processor time counts.
    process: Option<u32>,
}

impl Allowance {
    /// Counts from now on: the processor time of QEMU where the guest's time is virtual, because
    /// the guest then never sleeps and others' load must not end it early; else the host's time.
    pub fn new(process: Option<u32>) -> Self {
        Self { start: Instant::now(), process }
    }

    /// Returns when the count began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Returns the time so far.
    pub fn elapsed(&self) -> Duration {
        let wall = self.start.elapsed();
        self.process.and_then(worked).map_or(wall, |worked| worked.max(wall / SHARE).min(wall))
    }
}

/// Reads the processor time of a process.
fn worked(process: u32) -> Option<Duration> {
    ticks(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn ticks(stat: &str) -> Option<Duration> {
    // The name before may hold blanks and brackets; user and system time are fields 14 and 15.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(Duration::from_millis(ticks * 1_000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_past_any_name() {
        let stat = "7 (a b) (c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 5 0 0";
        assert_eq!(ticks(stat), Some(Duration::from_secs(2)));
        assert_eq!(ticks("7 (a) S 1"), None);
    }

    #[test]
    fn a_process_that_sleeps_is_charged_a_share_of_the_time() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let allowance = Allowance::new(Some(child.id()));
        std::thread::sleep(Duration::from_millis(80));
        let (charged, wall) = (allowance.elapsed(), allowance.start().elapsed());
        assert!(charged >= Duration::from_millis(10) && charged < wall, "{charged:?} of {wall:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = Allowance::new(Some(u32::MAX));
        std::thread::sleep(Duration::from_millis(20));
        assert!(gone.elapsed() >= Duration::from_millis(20), "without a figure the host's counts");
    }
}
