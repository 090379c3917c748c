//! YCSB's choices of a record: scrambled zipfian, latest, uniform.
//!
//! Scrambled: a zipfian rank over 10^10 items is hashed onto the records, so that popular records
//! lie anywhere and the long tail is nearly uniform. Latest: zipfian distance from the newest.

use crate::gray_zipf::GrayZipf;
use crate::rng::Rng;

/// Sets the exponent that YCSB uses everywhere.
pub const THETA: f64 = 0.99;
/// Gives YCSB's fixed zeta sum over its 10^10 scrambled items.
pub const ZETA: f64 = 26.469_028_201_783_02;
/// Ranks that are scrambled onto the records.
const ITEMS: u64 = 10_000_000_001;

/// Chooses records by hashed popularity.
#[derive(Clone, Debug)]
pub struct Scrambled {
    zipf: GrayZipf,
    /// Ranks are folded onto this many records, some of which may not exist yet.
    domain: u64,
}

impl Scrambled {
    /// Creates a choice where `records` exist and `expected` more may be inserted.
    pub fn new(records: u64, expected: u64) -> Self {
        Self { zipf: GrayZipf::with_zeta(ITEMS, THETA, ZETA), domain: records + expected + 1 }
    }

    /// Draws a record up to `last`, which must be a record; others are redrawn.
    #[inline]
    pub fn draw(&self, rng: &mut Rng, last: u64) -> u64 {
        loop {
            let record = fnv64(self.zipf.draw(rng)) % self.domain;
            if record <= last {
                return record;
            }
        }
    }
}

/// Chooses records by age, the newest most often.
#[derive(Clone, Debug)]
pub struct Latest(GrayZipf);

impl Latest {
    /// Creates a choice where `records` exist at the start.
    pub fn new(records: u64) -> Self {
        Self(GrayZipf::new(records, THETA))
    }

    /// Draws a record up to `last`.
    pub fn draw(&mut self, rng: &mut Rng, last: u64) -> u64 {
        self.0.grow(last + 1);
        last - self.0.draw(rng).min(last)
    }
}

/// Returns YCSB's hash of a number, absolute value as a signed number.
#[inline]
pub fn fnv64(value: u64) -> u64 {
    let hash = value.to_le_bytes().iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    });
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv64_matches_known_keys() {
        // YCSB loads record 0 as user6284781860667377211, record 1 as user8517097267634966620.
        assert_eq!(fnv64(0), 6_284_781_860_667_377_211);
        assert_eq!(fnv64(1), 8_517_097_267_634_966_620);
    }

    #[test]
    fn hottest_record_takes_its_published_share() {
        let (records, draws) = (312_500, 2_000_000);
        let scrambled = Scrambled::new(records, 0);
        let hottest = fnv64(0) % (records + 1);
        let mut rng = Rng::new(1, 0);
        let hits = (0..draws).filter(|_| scrambled.draw(&mut rng, records - 1) == hottest).count();
        let share = hits as f64 / f64::from(draws);
        assert!((share - 0.0378).abs() < 0.0006, "{share}");
    }

    #[test]
    fn redraws_keep_to_existing_records() {
        let scrambled = Scrambled::new(10, 90);
        let mut rng = Rng::new(2, 0);
        assert!((0..10_000).all(|_| scrambled.draw(&mut rng, 9) <= 9));
    }

    #[test]
    fn latest_prefers_the_newest_and_follows_inserts() {
        let mut latest = Latest::new(1000);
        let mut rng = Rng::new(3, 0);
        for last in [999, 1499] {
            let draws: Vec<u64> = (0..20_000).map(|_| latest.draw(&mut rng, last)).collect();
            assert!(draws.iter().all(|&record| record <= last));
            let newest = draws.iter().filter(|&&record| record == last).count();
            let older = draws.iter().filter(|&&record| record == last - 1).count();
            assert!(newest > older && older > 100, "{newest} {older}");
        }
    }
}
