//! The zipf table of the kernel measurements: exact integer weights, sampled by inversion.
//!
//! Rank `i` (from 1) weighs `max(1, round(i^-theta * 2^40))`; `i^-theta` comes from a logarithm and
//! an exponential of this file, plain binary64 `+ - * /`, so that the table is the same on every
//! platform. A draw is the smallest rank whose cumulative weight exceeds a uniform number.
//!
//! A guide of two levels finds it in about one step: the number's top bits choose a bin, the next
//! bits one of as many parts as the bin has ranks. Popular ranks fill bins of their own, so that
//! most draws stay within a few cache lines.

use std::f64::consts::LN_2;

use crate::rng::Rng;

const ONE: f64 = 1_099_511_627_776.0; // 2^40
const PERMUTATION_LANE: u64 = 0xA5A5;
/// A range this narrow is scanned, a wider one is bisected.
const SCAN: usize = 8;
/// Bins of the guide, as a power of two.
const BIN_BITS: u32 = 12;

/// Draws Zipf-distributed page numbers in `[0, n)`.
#[derive(Clone, Debug)]
pub struct ZipfTable {
    /// `cumulative[r]`: weight of the ranks `0..=r`.
    cumulative: Vec<u64>,
    guide: Guide,
    /// Page of each rank; empty: the rank itself.
    pages: Vec<u32>,
}

impl ZipfTable {
    /// Builds a table of `n` pages with exponent `theta_micro / 1e6`, the ranks scattered over the
    /// pages by the permutation number `scatter` (0: not scattered).
    ///
    /// `None` when `n` is 0 or the weights do not fit 64 bits (about 16.7 million pages at
    /// exponent 0, far more at larger ones).
    pub fn new(n: u32, theta_micro: u64, scatter: u64) -> Option<Self> {
        let cumulative = cumulative_weights(n, theta_micro as f64 / 1_000_000.0)?;
        let guide = Guide::new(&cumulative);
        let pages = if scatter == 0 { Vec::new() } else { permutation(n, scatter) };
        Some(Self { cumulative, guide, pages })
    }

    /// Draws a page.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let rank = self.rank_of(rng.below(self.total()));
        match self.pages.get(rank) {
            Some(&page) => page,
            None => rank as u32,
        }
    }

    /// Returns the sum of all weights.
    #[inline]
    pub fn total(&self) -> u64 {
        self.cumulative[self.cumulative.len() - 1]
    }

    /// Returns the smallest rank whose cumulative weight exceeds `x`, which must be below
    /// [`Self::total`].
    #[inline]
    pub fn rank_of(&self, x: u64) -> usize {
        let (mut rank, end) = self.guide.range(x);
        if end - rank > SCAN {
            return rank + self.cumulative[rank..end].partition_point(|&sum| sum <= x);
        }
        while rank < end && self.cumulative[rank] <= x {
            rank += 1;
        }
        rank
    }
}

/// Narrows a number down to a few ranks.
#[derive(Clone, Debug)]
struct Guide {
    bins: Vec<Bin>,
    /// Numbers fall into bins of `1 << shift`.
    shift: u32,
    /// First ranks of all bins' parts; one more entry closes each bin.
    parts: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    /// Index of its first part.
    first: u32,
    /// Numbers of the bin fall into parts of `1 << shift`.
    shift: u32,
}

impl Guide {
    fn new(cumulative: &[u64]) -> Self {
        let last = cumulative[cumulative.len() - 1] - 1;
        let shift = (u64::BITS - last.leading_zeros()).saturating_sub(BIN_BITS);
        let mut guide = Self { bins: Vec::new(), shift, parts: Vec::new() };
        let mut from = 0;
        for bin in 0..=last >> shift {
            from = guide.push_bin(cumulative, from, bin << shift);
        }
        guide
    }

    /// Adds the bin of the numbers from `low`, whose first rank is at least `from`.
    fn push_bin(&mut self, cumulative: &[u64], mut from: usize, low: u64) -> usize {
        let last = cumulative.len() - 1;
        let rank_of =
            |x: u64, from: usize| (from..last).find(|&rank| cumulative[rank] > x).unwrap_or(last);
        from = rank_of(low, from);
        let ranks = rank_of(low.saturating_add((1 << self.shift) - 1), from) - from;
        let bits = (usize::BITS - ranks.leading_zeros()).min(self.shift);
        let shift = self.shift - bits;
        self.bins.push(Bin { first: self.parts.len() as u32, shift });
        for part in 0..=1u64 << bits {
            from = rank_of(low.saturating_add(part << shift), from);
            self.parts.push(from as u32);
        }
        from
    }

    /// The first and the last rank that `x` can have.
    #[inline]
    fn range(&self, x: u64) -> (usize, usize) {
        let Bin { first, shift } = self.bins[(x >> self.shift) as usize];
        let part = (x & ((1 << self.shift) - 1)) >> shift;
        let at = first as usize + part as usize;
        (self.parts[at] as usize, self.parts[at + 1] as usize)
    }
}

fn cumulative_weights(n: u32, theta: f64) -> Option<Vec<u64>> {
    let series = LnSeries::new();
    let mut sum = 0u64;
    let sums = (1..=u64::from(n)).map(|i| {
        let weight = (exp(-(theta * series.ln(i))) * ONE + 0.5) as u64;
        sum = sum.checked_add(weight.max(1))?;
        Some(sum)
    });
    sums.collect::<Option<Vec<u64>>>().filter(|sums| !sums.is_empty())
}

fn permutation(n: u32, scatter: u64) -> Vec<u32> {
    let mut pages: Vec<u32> = (0..n).collect();
    let mut rng = Rng::new(scatter, PERMUTATION_LANE);
    for i in (1..pages.len()).rev() {
        pages.swap(i, rng.below(i as u64 + 1) as usize);
    }
    pages
}

/// The constants `1/(2k+1)` of the logarithm's series.
struct LnSeries([f64; 20]);

impl LnSeries {
    fn new() -> Self {
        Self(std::array::from_fn(|k| 1.0 / (2 * k + 1) as f64))
    }

    /// Natural logarithm of an integer from 1.
    fn ln(&self, i: u64) -> f64 {
        let e = 63 - i.leading_zeros();
        let m = i as f64 / (1u64 << e) as f64;
        let q = (m - 1.0) / (m + 1.0);
        let z = q * q;
        let p = self.0.iter().rev().fold(1.0 / 41.0, |p, c| p * z + c);
        f64::from(e) * LN_2 + (2.0 * q) * p
    }
}

/// Exponential of a number that is not positive.
fn exp(y: f64) -> f64 {
    let k = (y / LN_2 - 0.5) as i64;
    let r = y - k as f64 * LN_2;
    let mut p = 1.0;
    for j in (1..=20u32).rev() {
        p = 1.0 + (r / f64::from(j)) * p;
    }
    (0..k.unsigned_abs()).fold(p, |p, _| p * 0.5)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    fn bisect(table: &ZipfTable, x: u64) -> usize {
        table.cumulative.partition_point(|&sum| sum <= x)
    }

    proptest! {
        #[test]
        fn guide_finds_what_binary_search_finds(
            n in 1u32..5000, theta in 0u64..3_000_000, seed: u64,
        ) {
            let table = ZipfTable::new(n, theta, 0).unwrap();
            let mut rng = Rng::new(seed, 0);
            for _ in 0..200 {
                let x = rng.below(table.total());
                prop_assert_eq!(table.rank_of(x), bisect(&table, x));
            }
            for &edge in &table.cumulative {
                for x in [edge - 1, edge.min(table.total() - 1)] {
                    prop_assert_eq!(table.rank_of(x), bisect(&table, x));
                }
            }
        }
    }

    #[test]
    fn constant_is_the_published_one() {
        let published: f64 = "0.6931471805599453".parse().unwrap();
        assert_eq!(LN_2.to_bits(), published.to_bits());
    }

    #[test]
    fn series_agree_with_the_true_functions() {
        let series = LnSeries::new();
        for i in [1u64, 2, 3, 10, 65_535, 65_536, 1 << 31] {
            assert!((series.ln(i) - (i as f64).ln()).abs() < 1e-13, "ln {i}");
        }
        for y in [0.0, -0.1, -1.0, -LN_2, -17.3, -700.0] {
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-12, "exp {y}");
        }
    }

    #[test]
    fn every_page_can_be_drawn_once() {
        let mut pages = permutation(1000, 7);
        assert_ne!(pages[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        pages.sort_unstable();
        assert!(pages.iter().copied().eq(0..1000));
    }

    #[test]
    fn weights_that_overflow_are_refused() {
        assert!(ZipfTable::new(0, 990_000, 0).is_none());
        assert!(cumulative_weights(1 << 24, 0.0).is_none());
        assert!(ZipfTable::new(1 << 10, 0, 0).is_some());
    }
}
