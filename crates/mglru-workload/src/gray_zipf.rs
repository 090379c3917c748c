//! Gray et al.'s zipfian ranks, as YCSB (exponent below 1) and fio (above 1) draw them.
//!
//! An approximation by inversion: ranks 0 and 1 are exact, the rest follow a power curve. Logarithm
//! and power come from the `libm` crate, which is the same code on every platform; the zeta sums
//! add 10,000 terms and then Euler-Maclaurin, whose error is below the last bit.

use libm::pow;

use crate::rng::Rng;

/// Terms that a zeta sum adds one by one.
const DIRECT_TERMS: u64 = 10_000;

/// Draws popularity ranks from `[0, n)`, 0 the most popular.
#[derive(Clone, Debug, PartialEq)]
pub struct GrayZipf {
    n: f64,
    last: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
    /// Below this share of zeta lie ranks 0 and 1.
    two: f64,
}

impl GrayZipf {
    /// Creates the ranks of `n` items with exponent `theta`, which must not be 1.
    pub fn new(n: u64, theta: f64) -> Self {
        Self::with_zeta(n, theta, zeta(n, theta))
    }

    /// Creates the same ranks with a given sum of `i^-theta` for `i` in `1..=n`.
    pub fn with_zeta(n: u64, theta: f64, zeta: f64) -> Self {
        let two = 1.0 + pow(2.0, -theta);
        let nf = n as f64;
        Self {
            n: nf,
            last: n.saturating_sub(1),
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta: (1.0 - pow(2.0 / nf, 1.0 - theta)) / (1.0 - two / zeta),
            two,
        }
    }

    /// Makes room for more items; the sum is extended, not rebuilt.
    pub fn grow(&mut self, n: u64) {
        let more: f64 = (self.last + 2..=n).map(|i| pow(i as f64, -self.theta)).sum();
        *self = Self::with_zeta(n.max(self.last + 1), self.theta, self.zeta + more);
    }

    /// Returns the number of items.
    pub fn items(&self) -> u64 {
        self.last + 1
    }

    /// Draws a rank by a uniform number of 53 bits.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.rank(rng.unit())
    }

    /// Returns the rank that belongs to `u` in `[0, 1)`.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let x = u * self.zeta;
        if x < 1.0 {
            return 0;
        }
        if x < self.two {
            return 1.min(self.last);
        }
        let rank = self.n * pow(self.eta * u - self.eta + 1.0, self.alpha);
        (rank as u64).min(self.last)
    }
}

/// Returns the sum of `i^-theta` for `i` in `1..=n`.
pub fn zeta(n: u64, theta: f64) -> f64 {
    let direct = n.min(DIRECT_TERMS);
    let sum: f64 = (1..=direct).rev().map(|i| pow(i as f64, -theta)).sum();
    if n == direct { sum } else { sum + tail(n as f64, theta) - tail(direct as f64, theta) }
}

/// Antiderivative of `x^-theta` with the first Euler-Maclaurin corrections, for the terms up to x.
fn tail(x: f64, theta: f64) -> f64 {
    let power = pow(x, -theta);
    let integral = x * power / (1.0 - theta);
    let cubic = theta * (theta + 1.0) * (theta + 2.0) / 720.0;
    integral + power * (0.5 - theta / (12.0 * x) + cubic / (x * x * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_matches_the_plain_sum() {
        for (n, theta) in [(1, 0.99), (10_000, 0.5), (300_000, 0.99), (300_000, 1.2)] {
            let plain: f64 = (1..=n).rev().map(|i| (i as f64).powf(-theta)).sum();
            assert!((zeta(n, theta) / plain - 1.0).abs() < 1e-13, "{n} {theta}");
        }
        assert!((zeta(786_432, 1.2) - 5.2606).abs() < 5e-5);
    }

    #[test]
    fn ycsb_constant_is_its_zeta() {
        let ours = zeta(10_000_000_000, 0.99);
        assert!((ours / crate::scrambled::ZETA - 1.0).abs() < 1e-8, "{ours}");
    }

    #[test]
    fn growing_equals_building_anew() {
        let mut grown = GrayZipf::new(1000, 0.99);
        grown.grow(1500);
        let fresh = GrayZipf::new(1500, 0.99);
        assert_eq!(grown.items(), 1500);
        assert!((0..1000).all(|k| {
            grown.rank(f64::from(k) / 1000.0).abs_diff(fresh.rank(f64::from(k) / 1000.0)) <= 1
        }));
        grown.grow(10);
        assert_eq!(grown.items(), 1500);
    }

    #[test]
    fn ranks_fall_with_the_draw_and_stay_in_range() {
        for (n, theta) in [(1, 0.99), (2, 1.2), (3, 0.5), (65_536, 1.2), (1 << 40, 0.99)] {
            let zipf = GrayZipf::new(n, theta);
            let ranks: Vec<u64> =
                (0..=1000).map(|k| zipf.rank((f64::from(k) / 1000.0).min(0.999_999))).collect();
            assert!(ranks.is_sorted() && ranks[0] == 0 && ranks[1000] < n, "{n} {theta}");
        }
    }
}
