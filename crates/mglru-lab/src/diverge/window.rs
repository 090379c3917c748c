//! Two series of states, and the stops at which they part.

use mglru_guest::report::Step;
use serde::Serialize;

use super::fields::{FIELDS, Values, since, values};
use super::tolerance::Tolerance;

/// Holds the states of both sides at the same stops.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Counts accesses of the first process at each stop.
    pub accesses: Vec<u64>,
    /// Holds the fields of both sides at each stop.
    pub sides: [Vec<Values>; 2],
}

/// Describes a field that the two sides do not agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// Names the field.
    pub field: &'static str,
    /// Holds the last stop before it, in accesses; 0: none was.
    pub equal_at: u64,
    /// Holds the first stop at which the sides differ.
    pub unequal_at: u64,
    /// Holds the value of each side there.
    pub values: [u64; 2],
}

impl Series {
    /// Keeps the stops that both sides made. Counters count from `starts`.
    pub fn new(steps: [&[Step]; 2], starts: [&Values; 2]) -> Self {
        let both = steps[0].iter().zip(steps[1]).take_while(|(a, b)| a.access == b.access);
        let (mut accesses, mut sides) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (a, b) in both {
            accesses.push(a.access);
            sides[0].push(since(&values(&a.at), starts[0]));
            sides[1].push(since(&values(&b.at), starts[1]));
        }
        Self { accesses, sides }
    }

    /// Finds the first stop at which each field differs by more than `tolerance`, earliest first.
    pub fn partings(&self, tolerance: Tolerance) -> Vec<Parting> {
        let mut found: Vec<Parting> =
            (0..FIELDS.len()).filter_map(|field| self.parting(field, tolerance)).collect();
        found.sort_by_key(|parting| parting.unequal_at);
        found
    }

    fn parting(&self, field: usize, tolerance: Tolerance) -> Option<Parting> {
        let at = |stop: usize| [0, 1].map(|side: usize| self.sides[side][stop][field]);
        let differs = |stop: &usize| tolerance.is_exceeded(&FIELDS[field], at(*stop));
        let stop = (0..self.accesses.len()).find(differs)?;
        Some(Parting {
            field: FIELDS[field].name,
            equal_at: stop.checked_sub(1).map_or(0, |before| self.accesses[before]),
            unequal_at: self.accesses[stop],
            values: at(stop),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(scans: [&[u64]; 2]) -> Series {
        let scan = FIELDS.iter().position(|field| field.name == "pgscan").unwrap();
        let side = |of: &[u64]| -> Vec<Values> {
            let value = |n: &u64| std::array::from_fn(|at| if at == scan { *n } else { 1 });
            of.iter().map(value).collect()
        };
        let accesses = (1..=scans[0].len() as u64).map(|n| 10 * n).collect();
        Series { accesses, sides: scans.map(side) }
    }

    #[test]
    fn a_field_parts_at_the_first_stop_beyond_the_tolerance() {
        let series = series([&[1, 5, 9], &[1, 6, 12]]);
        let parting = |tolerance| series.partings(Tolerance::Exact(tolerance)).first().copied();
        let exact = parting(0).unwrap();
        assert_eq!((exact.field, exact.equal_at, exact.unequal_at), ("pgscan", 10, 20));
        assert_eq!(parting(1).unwrap().values, [9, 12]);
        assert_eq!(parting(3), None);
    }
}
