//! The refault controller (spec §5.2): which tier is worth protecting, and which type to evict.
//!
//! It compares refault rates of tiers and types without ever dividing. Invariants I18, I20.

use crate::config::RefsModel;
use crate::types::{ANON_AND_FILE, LruType, MAX_NR_TIERS, MIN_LRU_BATCH, Tier};

/// Counts of one lruvec's current oldest generations and their moving averages, in pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Controller {
    avg_refaulted: [[u64; MAX_NR_TIERS]; ANON_AND_FILE],
    avg_total: [[u64; MAX_NR_TIERS]; ANON_AND_FILE],
    pub(crate) evicted: [[u64; MAX_NR_TIERS]; ANON_AND_FILE],
    pub(crate) refaulted: [[u64; MAX_NR_TIERS]; ANON_AND_FILE],
    pub(crate) protected: [[u64; MAX_NR_TIERS]; ANON_AND_FILE],
}

/// Counts pages of one tier of one type: those that came back, and those that left or were spared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierRate {
    /// Counts refaulted pages.
    pub refaulted: u64,
    /// Counts evicted and protected pages.
    pub total: u64,
}

/// Holds the rates by type and tier.
pub type TierRates = [[TierRate; MAX_NR_TIERS]; ANON_AND_FILE];

/// A refault rate and the weight it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    refaulted: u64,
    total: u64,
    gain: u64,
}

/// Does `pv` refault proportionally no more than `sp`, weighted by their gains?
fn prefer_pv(sp: Rate, pv: Rate) -> bool {
    let wide = |x: u64| u128::from(x);
    pv.refaulted < MIN_LRU_BATCH
        || wide(pv.refaulted) * wide(sp.total + MIN_LRU_BATCH) * wide(sp.gain)
            <= wide(sp.refaulted + 1) * wide(pv.total) * wide(pv.gain)
}

/// Holds the inputs of a choice of type: the model and the swappiness of this eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) model: RefsModel,
    pub(crate) swappiness: u8,
}

impl Controller {
    /// The oldest generation of a type is gone: halve what it leaves into the averages.
    pub(crate) fn carry_over(&mut self, lru_type: LruType) {
        let t = lru_type.index();
        for k in 0..MAX_NR_TIERS {
            self.avg_refaulted[t][k] = (self.avg_refaulted[t][k] + self.refaulted[t][k]) / 2;
            let total = self.avg_total[t][k] + self.evicted[t][k] + self.protected[t][k];
            self.avg_total[t][k] = total / 2;
        }
        self.refaulted[t] = [0; MAX_NR_TIERS];
        self.evicted[t] = [0; MAX_NR_TIERS];
        self.protected[t] = [0; MAX_NR_TIERS];
    }

    fn rate(&self, lru_type: LruType, tier: usize, gain: u64) -> Rate {
        let t = lru_type.index();
        Rate {
            refaulted: self.avg_refaulted[t][tier] + self.refaulted[t][tier],
            total: self.avg_total[t][tier] + self.evicted[t][tier] + self.protected[t][tier],
            gain,
        }
    }

    /// Returns all that is compared, for dumps.
    pub(crate) fn rates(&self) -> TierRates {
        LruType::ALL.map(|lru_type| {
            core::array::from_fn(|tier| {
                let Rate { refaulted, total, .. } = self.rate(lru_type, tier, 1);
                TierRate { refaulted, total }
            })
        })
    }

    fn sum(&self, lru_type: LruType, gain: u64) -> Rate {
        let tiers = (0..MAX_NR_TIERS).map(|k| self.rate(lru_type, k, gain));
        tiers.fold(Rate { refaulted: 0, total: 0, gain }, |sum, r| Rate {
            refaulted: sum.refaulted + r.refaulted,
            total: sum.total + r.total,
            gain,
        })
    }

    /// The highest tier of `lru_type` that is evicted; folios of higher tiers are protected.
    /// Tiers are compared with the first tier of `against`.
    fn limit(&self, lru_type: LruType, against: LruType, gains: (u64, u64)) -> Tier {
        let sp = self.rate(against, 0, gains.0);
        let refuses = |&k: &usize| !prefer_pv(sp, self.rate(lru_type, k, gains.1));
        let first_protected = (1..MAX_NR_TIERS).find(refuses).unwrap_or(MAX_NR_TIERS);
        Tier(first_protected as u8 - 1)
    }

    /// The tier limit of a type scanned on its own account.
    pub(crate) fn tier_limit(&self, lru_type: LruType, model: RefsModel) -> Tier {
        let gains = match model {
            RefsModel::K612 => (1, 2),
            RefsModel::K614 => (2, 3),
        };
        self.limit(lru_type, lru_type, gains)
    }

    /// Selects the type to evict from, by refault rates and swappiness.
    pub(crate) fn preferred_type(&self, question: Question) -> LruType {
        let s = u64::from(question.swappiness);
        let file_first = match question.model {
            RefsModel::K614 => {
                s <= 1
                    || (s < 200
                        && prefer_pv(self.sum(LruType::Anon, s), self.sum(LruType::File, 200 - s)))
            }
            RefsModel::K612 => {
                let sp = self.rate(LruType::Anon, 0, s);
                let pv = self.rate(LruType::File, 0, 200 - s.min(200));
                prefer_pv(sp, pv)
            }
        };
        if file_first { LruType::File } else { LruType::Anon }
    }

    /// The tier limit that goes with [`Self::preferred_type`] under K612: measured against the
    /// other type's first tier, with the same gains.
    pub(crate) fn cross_limit(&self, lru_type: LruType, swappiness: u8) -> Tier {
        let s = u64::from(swappiness.min(200));
        let gain_of = |t| if t == LruType::Anon { s } else { 200 - s };
        self.limit(lru_type, lru_type.other(), (gain_of(lru_type.other()), gain_of(lru_type)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_is_compared() {
        let (mut controller, file) = (Controller::default(), LruType::File.index());
        controller.evicted[file][2] = 10;
        controller.protected[file][2] = 5;
        controller.refaulted[file][2] = 3;
        let rates = controller.rates();
        assert_eq!(rates[file][2], TierRate { refaulted: 3, total: 15 });
        assert_eq!(rates[LruType::Anon.index()], [TierRate::default(); MAX_NR_TIERS]);
    }

    const K614: RefsModel = RefsModel::K614;

    fn ask(swappiness: u8) -> Question {
        Question { model: K614, swappiness }
    }

    #[test]
    fn without_data_file_goes_first_and_nothing_is_protected() {
        let controller = Controller::default();
        assert_eq!(controller.preferred_type(ask(60)), LruType::File);
        assert_eq!(controller.preferred_type(ask(199)), LruType::File);
        assert_eq!(controller.preferred_type(ask(200)), LruType::Anon);
        assert_eq!(controller.tier_limit(LruType::File, K614), Tier(3));
    }

    #[test]
    fn a_tier_that_refaults_more_than_the_first_is_protected() {
        let mut controller = Controller::default();
        let file = LruType::File.index();
        controller.evicted[file] = [1000, 1000, 100, 0];
        controller.refaulted[file] = [100, 63, 64, 0];
        // Tier 1 is below the confidence floor; tier 2: 64·1064·2 > 101·100·3.
        assert_eq!(controller.tier_limit(LruType::File, K614), Tier(1));
        controller.refaulted[file][2] = 63;
        assert_eq!(controller.tier_limit(LruType::File, K614), Tier(3));
    }

    #[test]
    fn the_boundary_of_the_comparison_is_inclusive() {
        let sp = Rate { refaulted: 63, total: 64, gain: 1 };
        let pv = |total| Rate { refaulted: 64, total, gain: 1 };
        assert!(prefer_pv(sp, pv(128)));
        assert!(!prefer_pv(sp, pv(127)));
    }

    #[test]
    fn raising_swappiness_never_turns_anon_to_file() {
        let controller = Controller {
            evicted: [[500; 4], [700; 4]],
            refaulted: [[90; 4], [120; 4]],
            ..Controller::default()
        };
        let choices = (0..=200).map(|s| controller.preferred_type(ask(s)));
        let turned = choices.collect::<alloc::vec::Vec<_>>();
        assert!(turned.windows(2).all(|w| !(w[0] == LruType::Anon && w[1] == LruType::File)));
        assert!(turned.contains(&LruType::Anon) && turned.contains(&LruType::File));
    }

    #[test]
    fn averages_halve_and_are_bounded_by_their_inputs() {
        let mut controller = Controller::default();
        let file = LruType::File.index();
        for _ in 0..20 {
            controller.evicted[file][0] = 80;
            controller.protected[file][0] = 20;
            controller.refaulted[file][0] = 10;
            controller.carry_over(LruType::File);
            let rate = controller.rate(LruType::File, 0, 1);
            assert!(rate.total <= 100 && rate.refaulted <= 10);
        }
        assert_eq!(controller.avg_total[file][0], 99);
        assert_eq!(controller.evicted[file][0], 0);
    }
}
