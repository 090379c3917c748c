//! Estimates from refault distances how many faults more memory would save.
//!
//! A page that came back at distance d would have stayed had there been room for d bytes more, if
//! pages leave in the order of their last use. Then a group with more memory keeps all that the
//! smaller one keeps (the stack property), and the faults it is spared are those with a distance
//! up to what it has more. First touches and first reads are spared by no memory.

use mglru_pager::refaults_within;
use serde::Serialize;

use super::sample::Distances;

/// Holds the result that some factor of memory would have had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saving {
    /// Multiplies the pages that are in memory.
    pub factor: f64,
    /// Counts the bytes more.
    pub more_bytes: u64,
    /// Counts major faults that would not have been.
    pub spared: u64,
    /// Holds the share of all major faults, percent.
    pub percent: f64,
}

/// Computes how many faults `factor` times the memory would have saved.
pub fn saving(distances: &Distances, factor: f64) -> Saving {
    let more_bytes = (distances.resident as f64 * (factor - 1.0)) as u64;
    let spared = refaults_within(&distances.classes, more_bytes).min(distances.major);
    let percent = 100.0 * spared as f64 / distances.major.max(1) as f64;
    Saving { factor, more_bytes, spared, percent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_within_is_spared() {
        let distances = Distances {
            resident: 4 << 20,
            major: 1000,
            classes: vec![(1 << 20, 100), (2 << 20, 200), (16 << 20, 300)],
        };
        let spared = |factor| saving(&distances, factor).spared;
        assert_eq!([1.0, 1.25, 1.5, 2.0, 5.0, 9.0].map(spared), [0, 100, 300, 300, 600, 600]);
        let half = saving(&distances, 1.5);
        assert_eq!((half.more_bytes, half.percent), (2 << 20, 30.0));
    }
}
