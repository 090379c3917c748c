//! Keeps what the last pictures showed, for rates and their curves.

use std::collections::VecDeque;

use mglru_sim::live::Look;
use mglru_sim::samples::COUNTERS;

/// Pictures that are kept.
const KEPT: usize = 40;
/// Pictures that a rate is taken over.
const OVER: usize = 10;
/// Heights of a curve's columns.
const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Names rates, and the counters that each sums up.
const RATES: [(&str, &[&str]); 9] = [
    ("operations", &[]),
    ("KiB read", &["pgpgin"]),
    ("KiB written", &["pgpgout"]),
    ("pages swapped in", &["pswpin"]),
    ("pages swapped out", &["pswpout"]),
    ("major faults", &["pgmajfault"]),
    ("refaults", &["workingset_refault_anon", "workingset_refault_file"]),
    ("pages scanned", &["pgscan_kswapd", "pgscan_direct"]),
    ("pages stolen", &["pgsteal_kswapd", "pgsteal_direct"]),
];

/// Counts of all [`RATES`] at a moment.
#[derive(Clone, Copy, Debug)]
struct Row {
    at: u64,
    counts: [u64; RATES.len()],
}

/// Holds what the last pictures showed.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    rows: VecDeque<Row>,
}

/// A rate and how it went.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rate {
    /// Names what is counted.
    pub(super) name: &'static str,
    /// How many in a second of virtual time.
    pub(super) per_second: f64,
    /// The last pictures, the highest column being the highest rate among them.
    pub(super) curve: String,
}

impl History {
    /// Adds a look, unless no time has passed since the last.
    pub(super) fn push(&mut self, look: &Look) {
        let at = look.sample.at;
        if self.rows.back().is_some_and(|last| last.at >= at) {
            return;
        }
        self.rows.push_back(Row { at, counts: counts(look) });
        if self.rows.len() > KEPT {
            self.rows.pop_front();
        }
    }

    /// Returns all rates.
    pub(super) fn rates(&self) -> Vec<Rate> {
        let steps: Vec<(&Row, &Row)> = self.rows.iter().zip(self.rows.iter().skip(1)).collect();
        let from = self.rows.len().saturating_sub(OVER + 1);
        let ends = self.rows.get(from).zip(self.rows.back());
        let rate = |(at, (name, _)): (usize, &(&'static str, _))| {
            let over = |(a, b): (&Row, &Row)| per_second(a, b, at);
            Rate {
                name,
                per_second: ends.map_or(0.0, over),
                curve: curve(&steps.iter().copied().map(over).collect::<Vec<_>>()),
            }
        };
        RATES.iter().enumerate().map(rate).collect()
    }
}

fn counts(look: &Look) -> [u64; RATES.len()] {
    let value = |name: &&str| {
        let at = COUNTERS.iter().position(|known| known == name);
        look.sample.counters[at.expect("rates are of sampled counters")]
    };
    RATES.each_ref().map(|(_, counters)| match counters {
        [] => look.sample.ops,
        counters => counters.iter().map(value).sum(),
    })
}

fn per_second(a: &Row, b: &Row, at: usize) -> f64 {
    (b.counts[at] - a.counts[at]) as f64 * 1e9 / (b.at - a.at).max(1) as f64
}

fn curve(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let column = |value: &f64| match most > 0.0 && *value > 0.0 {
        true => COLUMNS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => ' ',
    };
    values.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_sim::samples::Sample;

    fn look(at: u64, ops: u64, read: u64) -> Look {
        let mut counters = [0; COUNTERS.len()];
        counters[0] = read;
        let sample = Sample { at, ops, counters, groups: Vec::new() };
        let (lists, pressure, actors) = (Vec::new(), Vec::new(), Vec::new());
        Look { sample, accesses: ops, lists, pressure, actors }
    }

    #[test]
    fn rates_are_counts_a_second_of_virtual_time() {
        let mut history = History::default();
        assert_eq!(history.rates()[0].per_second, 0.0);
        for (at, ops, read) in [(0, 0, 0), (500_000_000, 50, 8), (500_000_000, 50, 8)] {
            history.push(&look(at, ops, read));
        }
        history.push(&look(1_000_000_000, 150, 8));
        let rates = history.rates();
        assert_eq!((rates[0].per_second, rates[0].curve.as_str()), (150.0, "▄█"));
        assert_eq!((rates[1].per_second, rates[1].curve.as_str()), (8.0, "█ "));
        assert_eq!((rates[8].name, rates[8].curve.as_str()), ("pages stolen", "  "));
    }

    #[test]
    fn only_the_last_pictures_are_kept() {
        let mut history = History::default();
        (0..1000).for_each(|at| history.push(&look(at * 1_000_000, at, 0)));
        assert_eq!(history.rates()[0].curve.chars().count(), KEPT - 1);
        assert_eq!(history.rates()[0].per_second, 1000.0);
    }
}
