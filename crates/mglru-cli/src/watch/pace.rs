//! Says how fast a watched run goes.

use std::fmt;

use super::FRAME;

/// Sets the virtual time in a second of the watcher's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Passes so many ns.
    Ns(u64),
    /// Passes as much as the machine can.
    Full,
}

/// Holds the slowest and fastest pace that differ from [`Pace::Full`], ns.
const SLOWEST: u64 = 1_000;
const FASTEST: u64 = 1_000_000_000_000;

impl Default for Pace {
    fn default() -> Self {
        Self::Ns(100_000_000)
    }
}

impl Pace {
    /// Returns where a picture that begins at `now` ends.
    pub(super) fn until(self, now: u64) -> u64 {
        match self {
            Self::Ns(ns) => now.saturating_add(ns * FRAME.as_millis() as u64 / 1_000),
            Self::Full => u64::MAX,
        }
    }

    /// Goes faster.
    pub(super) fn faster(&mut self) {
        *self = match *self {
            Self::Ns(ns) if ns < FASTEST => Self::Ns(ns * 10),
            _ => Self::Full,
        };
    }

    /// Goes more slowly.
    pub(super) fn slower(&mut self) {
        *self = match *self {
            Self::Ns(ns) => Self::Ns((ns / 10).max(SLOWEST)),
            Self::Full => Self::Ns(FASTEST),
        };
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ns(ns) => write!(f, "at most {} a second", time(*ns)),
            Self::Full => f.write_str("as fast as it can"),
        }
    }
}

/// Writes a length of time with the unit that leaves one digit or more before the point.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", short(ns, 1_000)),
        1_000_000..1_000_000_000 => format!("{} ms", short(ns, 1_000_000)),
        _ => format!("{} s", short(ns, 1_000_000_000)),
    }
}

fn short(ns: u64, unit: u64) -> String {
    let digits = if ns.is_multiple_of(unit) || ns >= 100 * unit { 0 } else { 2 };
    format!("{:.digits$}", ns as f64 / unit as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_has_a_floor_and_beyond_its_ceiling_no_limit() {
        let mut pace = Pace::default();
        assert_eq!(pace.until(7), 5_000_007);
        (0..20).for_each(|_| pace.slower());
        assert_eq!(pace, Pace::Ns(SLOWEST));
        (0..20).for_each(|_| pace.faster());
        assert_eq!((pace, pace.until(7)), (Pace::Full, u64::MAX));
        pace.slower();
        assert_eq!(pace, Pace::Ns(FASTEST));
    }

    #[test]
    fn times_are_short() {
        let times = [0, 999, 1_500, 100_000_000, 1_234_567_890, 250_000_000_000].map(time);
        assert_eq!(times, ["0 ns", "999 ns", "1.50 µs", "100 ms", "1.23 s", "250 s"]);
    }
}
