//! How much of each classic list to scan: one pure decision (spec §8 "Balance").

use crate::state::lruvec::ClassicList;
use crate::types::{ANON_AND_FILE, LruType, SWAPPINESS_ANON_ONLY};

/// Sizes below this never count as too few inactive pages by themselves.
const PAGES_PER_GIB: u64 = 1 << 18;

/// Where to take pages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    /// Scans one type only.
    Only(LruType),
    /// Scans both types, each in proportion to its size.
    Equal,
    /// Scans both types, weighted: `share[t] / total`.
    Fractions {
        /// Weights of anon and file.
        share: [u64; ANON_AND_FILE],
    },
}

/// Holds the figures that the decision looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scene {
    pub(crate) can_swap: bool,
    pub(crate) is_cgroup: bool,
    pub(crate) swappiness: u8,
    pub(crate) priority: u8,
    pub(crate) file_is_tiny: bool,
    pub(crate) cache_trim: bool,
    pub(crate) cost: [u64; ANON_AND_FILE],
}

/// The first rule that applies decides.
pub(crate) fn balance(scene: &Scene) -> Balance {
    if !scene.can_swap || scene.is_cgroup && scene.swappiness == 0 {
        Balance::Only(LruType::File)
    } else if scene.swappiness >= SWAPPINESS_ANON_ONLY {
        Balance::Only(LruType::Anon)
    } else if scene.priority == 0 && scene.swappiness > 0 {
        Balance::Equal
    } else if scene.file_is_tiny {
        Balance::Only(LruType::Anon)
    } else if scene.cache_trim {
        Balance::Only(LruType::File)
    } else {
        Balance::Fractions { share: shares(scene) }
    }
}

/// The type that is cheaper to reclaim from gets the larger share, within limits.
fn shares(scene: &Scene) -> [u64; ANON_AND_FILE] {
    let [anon, file] = scene.cost;
    let total = anon + file;
    let (anon, file) = (total + anon, total + file);
    let sum = anon + file;
    let swappiness = u64::from(scene.swappiness);
    [swappiness * (sum + 1) / (anon + 1), (200 - swappiness.min(200)) * (sum + 1) / (file + 1)]
}

/// The share of one list's scan that the balance grants.
pub(crate) fn share_of(balance: Balance, list: ClassicList, scan: u64) -> u64 {
    match balance {
        Balance::Only(lru_type) if lru_type == list.lru_type() => scan,
        Balance::Only(_) => 0,
        Balance::Equal => scan,
        Balance::Fractions { share } => {
            let denominator = u128::from((share[0] + share[1]).max(1));
            let weighted = u128::from(scan) * u128::from(share[list.lru_type().index()]);
            (weighted / denominator) as u64
        }
    }
}

/// Are there too few inactive pages for the size of the type?
pub(crate) fn inactive_is_low(inactive: u64, active: u64) -> bool {
    let gib = (inactive + active) / PAGES_PER_GIB;
    let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };
    inactive * ratio < active
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene = Scene {
        can_swap: true,
        is_cgroup: true,
        swappiness: 60,
        priority: 12,
        file_is_tiny: false,
        cache_trim: false,
        cost: [0, 0],
    };

    #[test]
    fn the_first_rule_wins() {
        let file = Balance::Only(LruType::File);
        let tiny = Scene { file_is_tiny: true, cache_trim: true, ..SCENE };
        assert_eq!(balance(&Scene { can_swap: false, ..tiny }), file);
        assert_eq!(balance(&Scene { swappiness: 0, ..tiny }), file);
        assert_eq!(balance(&Scene { priority: 0, ..tiny }), Balance::Equal);
        let alone = Scene { swappiness: SWAPPINESS_ANON_ONLY, priority: 0, ..SCENE };
        assert_eq!(balance(&alone), Balance::Only(LruType::Anon));
        assert_eq!(balance(&tiny), Balance::Only(LruType::Anon));
        assert_eq!(balance(&Scene { file_is_tiny: false, ..tiny }), file);
        let global = Scene { swappiness: 0, is_cgroup: false, ..SCENE };
        assert!(matches!(balance(&global), Balance::Fractions { share: [0, _] }));
    }

    #[test]
    fn the_cheaper_type_gets_more_and_swappiness_weighs() {
        assert_eq!(shares(&SCENE), [60, 140]);
        let anon_is_dear = Scene { cost: [900, 100], swappiness: 100, ..SCENE };
        let [anon, file] = shares(&anon_is_dear);
        assert_eq!((anon, file), (100 * 3001 / 1901, 100 * 3001 / 1101));
        let fractions = Balance::Fractions { share: [1, 3] };
        assert_eq!(share_of(fractions, ClassicList::InactiveAnon, 100), 25);
        assert_eq!(share_of(fractions, ClassicList::ActiveFile, 100), 75);
    }

    #[test]
    fn large_types_need_fewer_inactive_pages() {
        assert!(inactive_is_low(99, 100) && !inactive_is_low(100, 100));
        let ten_gib = 10 * PAGES_PER_GIB;
        assert!(!inactive_is_low(ten_gib / 11 + 1, ten_gib - ten_gib / 11 - 1));
        assert!(inactive_is_low(ten_gib / 12, ten_gib - ten_gib / 12));
    }
}
