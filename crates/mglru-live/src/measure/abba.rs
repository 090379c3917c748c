//! Two sides that take turns: A B, B A, A B, …; what drifts meets both alike.

use serde::Serialize;

use mglru_error::Error;

/// Sums up figures of several runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Holds the middle one, or the mean of the two.
    pub median: f64,
    /// Holds the least.
    pub low: f64,
    /// Holds the greatest.
    pub high: f64,
    /// Counts them.
    pub n: usize,
}

impl Spread {
    /// Needs at least one figure.
    pub fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        Self { median, low: sorted[0], high: sorted[n - 1], n }
    }
}

/// Runs both sides `n` times, each first in turn. Pairs of (base, ours).
pub(super) fn pairs<T>(
    n: usize,
    mut base: impl FnMut() -> Result<T, Error>,
    mut ours: impl FnMut() -> Result<T, Error>,
) -> Result<Vec<(T, T)>, Error> {
    (0..n)
        .map(|nth| match nth % 2 {
            0 => base().and_then(|a| Ok((a, ours()?))),
            _ => ours().and_then(|b| Ok((base()?, b))),
        })
        .collect()
}

/// Ours over base, of each pair.
pub(super) fn ratios(pairs: &[(f64, f64)]) -> Spread {
    Spread::of(&pairs.iter().map(|(base, ours)| ours / base).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn sides_take_turns_and_ratios_are_of_pairs() {
        let order = RefCell::new(String::new());
        let side = |name: char, figure: f64| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok(figure)
            }
        };
        let pairs = pairs(3, side('A', 2.0), side('B', 3.0)).unwrap();
        assert_eq!(order.into_inner(), "ABBAAB");
        assert_eq!(ratios(&pairs), Spread { median: 1.5, low: 1.5, high: 1.5, n: 3 });
        let uneven = ratios(&[(1.0, 4.0), (2.0, 2.0), (4.0, 2.0), (1.0, 2.0)]);
        assert_eq!(uneven, Spread { median: 1.5, low: 0.5, high: 4.0, n: 4 });
    }

    #[test]
    fn the_first_error_ends_the_turns() {
        let refuse = || Err::<f64, _>(Error::Request("no".into()));
        assert_eq!(pairs(2, refuse, || Ok(1.0)).unwrap_err().to_string(), "no");
    }
}
