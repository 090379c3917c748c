//! A random order without repeats: a keyed bijection of `[0, n)`, in no memory.
//!
//! Four Feistel rounds over the next even number of bits, walked until the value is in range.

use crate::rng::splitmix;

const ROUNDS: u64 = 4;

/// Describes a bijection of `[0, n)`.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// Creates bijection number `key` of `[0, n)`; `n` must be at least 1 and at most 2⁶².
    pub fn new(n: u64, key: u64) -> Self {
        let bits = u64::BITS - (n - 1).leading_zeros();
        Self { n, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// Returns the number that `i`, below `n`, is sent to.
    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        let mut value = self.rounds(i);
        while value >= self.n {
            value = self.rounds(value);
        }
        value
    }

    fn rounds(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let halves = (value >> self.half_bits, value & mask);
        let (left, right) = (0..ROUNDS).fold(halves, |(left, right), round| {
            let mixed = splitmix(right ^ self.key.wrapping_add(round << 56)) & mask;
            (right, left ^ mixed)
        });
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_value_once(n in 1u64..3000, key: u64) {
            let permutation = Permutation::new(n, key);
            let mut values: Vec<u64> = (0..n).map(|i| permutation.at(i)).collect();
            values.sort_unstable();
            prop_assert!(values.into_iter().eq(0..n));
        }
    }

    #[test]
    fn keys_give_different_orders() {
        let order =
            |key| -> Vec<u64> { (0..8).map(|i| Permutation::new(1000, key).at(i)).collect() };
        assert_ne!(order(1), order(2));
        assert!(!order(1).is_sorted());
    }
}
