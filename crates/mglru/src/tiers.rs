//! The reference ladder of a folio and the tier it stands on (spec §3.3).
//!
//! K612: referenced → workingset → refs 1..3. K614: referenced → refs 1..3 → workingset, and the
//! refs field means something only while the referenced flag is set.

use crate::config::RefsModel;
use crate::folio::{Bit, Flags, REFS_MAX};
use crate::types::Tier;

/// One access through a file descriptor: one rung up, until saturated.
pub(crate) fn count_access(flags: &mut Flags, model: RefsModel) {
    if !flags.has(Bit::REFERENCED) {
        flags.set(Bit::REFERENCED);
        if model == RefsModel::K614 {
            flags.set_refs(0);
        }
    } else if model == RefsModel::K612 && !flags.has(Bit::WORKINGSET) {
        flags.set(Bit::WORKINGSET);
    } else if flags.refs() < REFS_MAX {
        flags.set_refs(flags.refs() + 1);
    } else {
        flags.set(Bit::WORKINGSET);
    }
}

/// The access count `r`, 0 to 4.
#[inline]
pub(crate) fn access_count(flags: Flags, model: RefsModel) -> u32 {
    match model {
        RefsModel::K612 => flags.refs() + u32::from(flags.has(Bit::WORKINGSET)),
        RefsModel::K614 if flags.has(Bit::REFERENCED) => flags.refs() + 1,
        RefsModel::K614 => 0,
    }
}

/// The tier of an access count.
#[inline]
pub(crate) fn tier_of(count: u32, workingset: bool, model: RefsModel) -> Tier {
    let log2_ceil = |x: u32| x.next_power_of_two().trailing_zeros() as u8;
    match model {
        RefsModel::K612 => Tier(log2_ceil(count + 1)),
        RefsModel::K614 if workingset => Tier(3),
        RefsModel::K614 => Tier(log2_ceil(count.max(1))),
    }
}

/// The tier a folio stands on.
#[inline]
pub(crate) fn tier(flags: Flags, model: RefsModel) -> Tier {
    tier_of(access_count(flags, model), flags.has(Bit::WORKINGSET), model)
}

/// Further accesses would leave no trace.
#[inline]
pub(crate) fn is_saturated(flags: Flags, model: RefsModel) -> bool {
    match model {
        RefsModel::K612 => access_count(flags, model) == 4,
        RefsModel::K614 => access_count(flags, model) == 4 && flags.has(Bit::WORKINGSET),
    }
}

/// Forgets the accesses, as a move to a newer generation does; K614 keeps the workingset flag.
#[inline]
pub(crate) fn forget_accesses(flags: &mut Flags, model: RefsModel) {
    flags.set_refs(0);
    flags.clear(Bit::REFERENCED);
    if model == RefsModel::K612 {
        flags.clear(Bit::WORKINGSET);
    }
}

/// The two-touch rule of K614: the first touch only leaves a mark. True when the folio has proved
/// reuse, which is then recorded.
pub(crate) fn second_touch(flags: &mut Flags) -> bool {
    if !flags.has_any([Bit::REFERENCED, Bit::WORKINGSET]) {
        flags.set_refs(0);
        flags.set(Bit::REFERENCED);
        return false;
    }
    flags.set_refs(0);
    flags.clear(Bit::REFERENCED);
    flags.set(Bit::WORKINGSET);
    true
}

/// One touch of a folio that was touched before, as 7.2 counts it: one rung up, and from the third
/// on it has proved reuse.
pub(crate) fn climb(flags: &mut Flags) {
    if access_count(*flags, RefsModel::K614) >= 2 {
        flags.set_refs(0);
        flags.clear(Bit::REFERENCED);
        flags.set(Bit::WORKINGSET);
    } else {
        count_access(flags, RefsModel::K614);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn ladder(model: RefsModel) -> Vec<(u32, u8, bool)> {
        let mut flags = Flags::default();
        let mut rungs = Vec::new();
        for _ in 0..8 {
            rungs.push((
                access_count(flags, model),
                tier(flags, model).0,
                is_saturated(flags, model),
            ));
            count_access(&mut flags, model);
        }
        rungs
    }

    #[test]
    fn the_ladder_of_k612() {
        let no = false;
        let expected = [
            (0, 0, no),
            (0, 0, no),
            (1, 1, no),
            (2, 2, no),
            (3, 2, no),
            (4, 3, true),
            (4, 3, true),
        ];
        assert_eq!(ladder(RefsModel::K612)[..7], expected);
    }

    #[test]
    fn the_ladder_of_k614() {
        let no = false;
        let expected = [
            (0, 0, no),
            (1, 0, no),
            (2, 1, no),
            (3, 2, no),
            (4, 2, no),
            (4, 3, true),
            (4, 3, true),
        ];
        assert_eq!(ladder(RefsModel::K614)[..7], expected);
    }

    #[test]
    fn refs_mean_nothing_without_the_referenced_flag_in_k614() {
        let mut flags = Flags::default();
        flags.set_refs(3);
        assert_eq!(access_count(flags, RefsModel::K614), 0);
        count_access(&mut flags, RefsModel::K614);
        assert_eq!(access_count(flags, RefsModel::K614), 1);
    }

    #[test]
    fn touches_climb_to_workingset_and_start_anew_above_it() {
        let mut flags = Flags::default();
        count_access(&mut flags, RefsModel::K614);
        let mut rungs = Vec::new();
        for _ in 0..5 {
            climb(&mut flags);
            let count = access_count(flags, RefsModel::K614);
            rungs.push((count, flags.has(Bit::WORKINGSET)));
        }
        assert_eq!(rungs, [(2, false), (0, true), (1, true), (2, true), (0, true)]);
    }

    #[test]
    fn two_touches_prove_reuse() {
        let mut flags = Flags::default();
        assert!(!second_touch(&mut flags));
        assert!(flags.has(Bit::REFERENCED) && !flags.has(Bit::WORKINGSET));
        assert!(second_touch(&mut flags));
        assert!(!flags.has(Bit::REFERENCED) && flags.has(Bit::WORKINGSET));
        assert!(second_touch(&mut flags), "a workingset folio needs one touch");
    }

    #[test]
    fn only_k614_remembers_the_workingset() {
        for (model, kept) in [(RefsModel::K612, false), (RefsModel::K614, true)] {
            let mut flags = Flags::default();
            flags.set(Bit::WORKINGSET);
            flags.set(Bit::REFERENCED);
            flags.set_refs(2);
            forget_accesses(&mut flags, model);
            assert_eq!((flags.has(Bit::WORKINGSET), flags.refs()), (kept, 0));
        }
    }
}
