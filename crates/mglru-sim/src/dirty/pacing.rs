//! How writers are slowed: together those of a domain may dirty as fast as it is written out,
//! twice as fast where slowing begins and not at all at the limit, so that dirty pages settle
//! half-way between. One clock per domain hands out the time, first come first served.

use mglru::types::Nanos;

use super::Thresholds;

/// Bounds the length of a pause.
pub const MAX_PAUSE: Nanos = 200_000_000;
/// A shorter pause is not taken but owed.
const MIN_PAUSE: Nanos = 1_000_000;
const SECOND: u128 = 1_000_000_000;

/// Says what a writer has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    /// Lets the writer go on.
    None,
    /// Puts the writer to sleep for this time; then it goes on.
    Sleep(Nanos),
    /// Puts the writer to sleep for this time; then it asks again with nothing newly dirtied: the
    /// domain is at its limit.
    Hold(Nanos),
}

/// Holds the clock of a domain.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    free_at: Nanos,
}

impl Pacer {
    /// Says what a writer that has `dirtied` pages since it last asked has to do, when the domain
    /// holds `held` pages dirty or under writeback and `pages_per_s` are written out.
    pub fn pause(
        &mut self,
        now: Nanos,
        dirtied: u64,
        held: u64,
        limits: Thresholds,
        pages_per_s: u64,
    ) -> Pause {
        let freerun = limits.freerun();
        if held <= freerun {
            return Pause::None;
        }
        if held >= limits.limit {
            return Pause::Hold(MAX_PAUSE);
        }
        let span = u128::from(limits.limit - freerun);
        let rate = 2 * u128::from(pages_per_s.max(1)) * u128::from(limits.limit - held);
        let owed = (u128::from(dirtied) * SECOND * span / rate).min(u128::from(MAX_PAUSE));
        self.free_at = (self.free_at.max(now) + owed as Nanos).min(now + MAX_PAUSE);
        match self.free_at - now {
            pause if pause < MIN_PAUSE => Pause::None,
            pause => Pause::Sleep(pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Thresholds = Thresholds { background: 1_000, limit: 3_000 };

    fn pause(held: u64, dirtied: u64) -> Pause {
        Pacer::default().pause(5, dirtied, held, LIMITS, 25_600)
    }

    #[test]
    fn free_then_slowed_then_held() {
        assert_eq!(pause(2_000, 1 << 20), Pause::None);
        assert_eq!(pause(2_500, 256), Pause::Sleep(10_000_000));
        assert_eq!(pause(2_250, 384), Pause::Sleep(10_000_000));
        assert_eq!(pause(2_999, 256), Pause::Sleep(MAX_PAUSE));
        assert_eq!(pause(3_000, 0), Pause::Hold(MAX_PAUSE));
    }

    #[test]
    fn short_pauses_are_owed() {
        let mut pacer = Pacer::default();
        let pauses = [(); 4].map(|()| pacer.pause(0, 10, 2_500, LIMITS, 25_600));
        assert_eq!(pauses[..2], [Pause::None; 2]);
        assert_eq!(pauses[2], Pause::Sleep(3 * 390_625));
    }

    /// Four writers against a device: dirty pages settle half-way between freerun and limit.
    #[test]
    fn writers_together_meet_the_bandwidth() {
        let (mut pacer, mut held) = (Pacer::default(), 0u64);
        let mut writers = [0u64; 4];
        for ms in 0..20_000 {
            let now = ms * 1_000_000;
            for wakes in &mut writers {
                while *wakes <= now {
                    held += 32;
                    *wakes = match pacer.pause(now, 32, held, LIMITS, 10_000) {
                        Pause::None => now + 1,
                        Pause::Sleep(ns) | Pause::Hold(ns) => now + ns,
                    };
                }
            }
            held = held.saturating_sub(10);
            assert!(held <= LIMITS.limit + 4 * 32);
        }
        assert!((2_400..=2_600).contains(&held), "{held}");
    }
}
