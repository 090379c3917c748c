//! Random numbers: xorshift64*, seeded by lane.
//!
//! Bit for bit the generator of the kernel measurements, so that a job drawn here is the job the
//! kernel ran. One [`Rng`] per seed and lane; no stream is ever shared between tasks, nor between
//! a workload's key stream and its decisions, so that every variant sees the same keys.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const LANE: u64 = 0xD1B5_4A32_D192_ED03;

/// Holds one stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// Creates stream number `lane` of a seed.
    pub fn new(seed: u64, lane: u64) -> Self {
        Self(seed_lane(seed, lane))
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let mut s = self.0;
        s ^= s >> 12;
        s ^= s << 25;
        s ^= s >> 27;
        self.0 = s;
        s.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a uniform number on `[0, n)`; 0 when `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a uniform number on `[0, 1)`, a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a uniform number on `[0, 1)`, a multiple of 2⁻³².
    #[inline]
    pub fn unit32(&mut self) -> f64 {
        (self.next_u64() >> 32) as f64 / (1u64 << 32) as f64
    }
}

/// Makes one step of splitmix64, used as a mixing function.
#[inline]
pub fn splitmix(z: u64) -> u64 {
    let z = z.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns the state that stream `lane` of a seed begins with; never 0.
pub fn seed_lane(seed: u64, lane: u64) -> u64 {
    let lane = lane.wrapping_add(1).wrapping_mul(LANE);
    match splitmix(seed.wrapping_mul(GOLDEN).wrapping_add(lane)) {
        0 => GOLDEN,
        s => s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_matches_published_values() {
        assert_eq!(splitmix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(splitmix(GOLDEN), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn lanes_differ() {
        assert_ne!(Rng::new(1, 0).next_u64(), Rng::new(1, 1).next_u64());
        assert_ne!(Rng::new(1, 0).next_u64(), Rng::new(2, 0).next_u64());
    }

    #[test]
    fn draws_stay_in_range() {
        let mut rng = Rng::new(7, 7);
        for n in [1, 2, 3, 1000, u64::MAX] {
            assert!((0..1000).all(|_| rng.below(n) < n));
        }
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit32())));
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(3, 0);
        let mut seen = [0u32; 8];
        (0..80_000).for_each(|_| seen[rng.below(8) as usize] += 1);
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
    }
}
