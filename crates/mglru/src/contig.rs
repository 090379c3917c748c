//! Large blocks by reclaim: lumpy isolation, and the hand-over to compaction (experiments §17).
//!
//! Lumpy reclaim takes the neighbours of a folio at the tail, whatever their place on the lists,
//! so that a whole block falls free. Its successor reclaims single pages until compaction has room
//! to work in. Which of them is in force is one value, [`Contig`]; what this file decides of it is
//! pure, and the host says what lies beside what.

use crate::host::OrderView;
use crate::types::DEF_PRIORITY;

/// Orders above this are costly: reclaim takes them seriously from the first priority on.
const COSTLY_ORDER: u8 = 3;
/// Small orders are taken seriously from this priority down.
const SERIOUS_PRIORITY: u8 = DEF_PRIORITY - 2;
/// Small orders stall for writeback from this priority down.
const STALL_PRIORITY: u8 = DEF_PRIORITY / 3;

/// Names the rules for large blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contig {
    /// Follows Linux 2.6.32: lumpy reclaim, no compaction.
    L0,
    /// Follows Linux 3.2: compaction is built, isolation still takes whole blocks.
    L1,
    /// Follows 3.3-git: order-0 reclaim where compaction is built.
    L2,
    /// Follows the kernel without lumpy reclaim.
    L3,
    /// Follows Linux 6.12.
    K612,
}

/// Selects how a batch is isolated and judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Takes folios from the tail, each for itself.
    #[default]
    Single,
    /// Takes whole blocks, referenced or not.
    Lumpy,
    /// Reclaims for compaction: takes whole blocks, as far as they lie on one list and are not
    /// referenced, or single folios where blocks are no longer taken (L2); either is done again if
    /// it must wait.
    Compaction,
}

/// Says how far the loop over one node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Counts pages scanned in this visit.
    pub scanned: u64,
    /// Counts pages reclaimed in this visit.
    pub reclaimed: u64,
    /// Counts pages reclaimed since the call began.
    pub total: u64,
    /// Counts pages on the inactive lists that may be reclaimed.
    pub inactive: u64,
}

/// Returns the free pages that compaction for this order works with.
pub fn compact_gap(order: u8) -> u64 {
    2 << order
}

impl Contig {
    /// Tells whether compaction is built.
    pub fn has_compaction(self) -> bool {
        self != Self::L0
    }

    /// Tells whether it is one of the kernels up to 3.4.
    pub fn is_lumpy_era(self) -> bool {
        self != Self::K612
    }

    /// Says whether folios that are dirty or being written stay on the inactive list when reclaim
    /// meets them, to be met again. Later kernels make them active until they are clean.
    pub fn meets_again(self) -> bool {
        self.is_lumpy_era()
    }

    /// Does isolation take whole blocks?
    pub fn takes_blocks(self) -> bool {
        matches!(self, Self::L0 | Self::L1)
    }

    /// Chooses how a batch begins.
    pub fn mode(self, order: u8, priority: u8) -> Mode {
        let serious = order > COSTLY_ORDER || order > 0 && priority < SERIOUS_PRIORITY;
        match self {
            Self::L0 if serious => Mode::Lumpy,
            Self::L1 | Self::L2 if serious => Mode::Compaction,
            _ => Mode::Single,
        }
    }

    /// Tells whether the batch is done again, waiting for writeback this time; never by kswapd.
    pub fn repeats(self, mode: Mode, order: u8, priority: u8, missed: bool) -> bool {
        let patient = match self {
            Self::L0 => order > COSTLY_ORDER,
            _ => order > COSTLY_ORDER || priority <= STALL_PRIORITY,
        };
        mode != Mode::Single && missed && patient
    }

    /// Does one folio that stays spoil the block for the rest of the batch?
    pub(crate) fn gives_up_early(self) -> bool {
        matches!(self, Self::L1 | Self::L2)
    }

    /// Does reclaim for this order hand over to compaction?
    pub(crate) fn hands_over(self, order: u8, priority: u8) -> bool {
        let serious = order > COSTLY_ORDER || order > 0 && priority < SERIOUS_PRIORITY;
        self.has_compaction() && serious
    }

    /// Does reclaim of this node go on, so that compaction gets its room?
    pub fn goes_on(self, order: u8, repeat: bool, tried: &Tried, zones: &[OrderView]) -> bool {
        let gap = compact_gap(order);
        let fruitless = match (self, repeat) {
            (Self::K612, _) | (_, false) => tried.reclaimed == 0,
            (_, true) => tried.reclaimed == 0 && tried.scanned == 0,
        };
        let room =
            zones.iter().any(|zone| zone.compaction_fits || self == Self::K612 && zone.above_min);
        let enough = self.is_lumpy_era() && tried.total >= gap;
        !fruitless && !room && !enough && tried.inactive > gap
    }

    /// Says whether compaction can go to work before anything is reclaimed for a costly order.
    pub fn is_compaction_ready(self, order: u8, zone: &OrderView) -> bool {
        if !self.has_compaction() || order <= COSTLY_ORDER || zone.managed == 0 {
            return false;
        }
        let gap = compact_gap(order);
        if self == Self::K612 {
            return zone.above_min || zone.compaction_fits && zone.free > zone.high + gap;
        }
        let balance_gap = zone.low.min(zone.managed.div_ceil(100));
        zone.free > zone.high + balance_gap + gap && (!zone.deferred || zone.above_low)
    }

    /// Tells whether kswapd may sleep, or go on to compaction.
    pub fn is_balanced(self, order: u8, zones: &[OrderView]) -> bool {
        let (mut good, mut all) = (0, 0);
        for zone in zones.iter().filter(|zone| zone.managed > 0) {
            let compacts = self.is_lumpy_era() && !self.takes_blocks() && zone.compaction_fits;
            let is_good = if compacts { zone.free >= zone.high } else { zone.above_high };
            good += if is_good { zone.managed } else { 0 };
            all += zone.managed;
        }
        match self {
            Self::K612 => good > 0,
            _ if order == 0 => good == all,
            _ => good * 4 >= all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Contig::{K612, L0, L1, L2, L3};

    const ZONE: OrderView = OrderView {
        managed: 262_144,
        free: 10_000,
        low: 1_280,
        high: 1_536,
        above_min: false,
        above_low: false,
        above_high: false,
        compaction_fits: false,
        deferred: false,
    };

    #[test]
    fn who_takes_blocks_and_when() {
        assert_eq!([L0, L1, L2, L3, K612].map(|c| c.mode(9, 12)), {
            use Mode::{Compaction, Lumpy, Single};
            [Lumpy, Compaction, Compaction, Single, Single]
        });
        assert_eq!([12, 10, 9].map(|p| L0.mode(3, p)), [Mode::Single, Mode::Single, Mode::Lumpy]);
        assert_eq!(L1.mode(0, 0), Mode::Single);
    }

    #[test]
    fn the_second_pass_is_for_blocks_that_were_missed() {
        assert!(L0.repeats(Mode::Lumpy, 9, 12, true) && !L0.repeats(Mode::Lumpy, 9, 12, false));
        assert!(!L0.repeats(Mode::Lumpy, 3, 4, true), "only costly orders up to 2.6.35");
        assert!(L1.repeats(Mode::Compaction, 3, 4, true));
        assert!(!L1.repeats(Mode::Compaction, 3, 5, true));
        assert!(!L1.repeats(Mode::Single, 9, 12, true));
        assert!(L2.repeats(Mode::Compaction, 9, 12, true), "without blocks, but it waits");
    }

    #[test]
    fn reclaim_goes_on_until_compaction_has_room() {
        let tried = Tried { scanned: 64, reclaimed: 10, total: 100, inactive: 5_000 };
        for contig in [L1, L2, L3, K612] {
            assert!(contig.goes_on(9, false, &tried, &[ZONE]), "{contig:?}");
            let fits = OrderView { compaction_fits: true, ..ZONE };
            assert!(!contig.goes_on(9, false, &tried, &[fits]), "{contig:?}");
            let few = Tried { inactive: 1_024, ..tried };
            assert!(!contig.goes_on(9, false, &few, &[ZONE]));
            let none = Tried { reclaimed: 0, ..tried };
            assert!(!contig.goes_on(9, false, &none, &[ZONE]));
            assert_eq!(contig.goes_on(9, true, &none, &[ZONE]), contig != K612);
        }
        let much = Tried { total: 1_024, ..tried };
        assert!(!L2.goes_on(9, false, &much, &[ZONE]) && K612.goes_on(9, false, &much, &[ZONE]));
    }

    #[test]
    fn compaction_first_when_memory_is_free() {
        let short = OrderView { free: 1_536 + 1_280 + 1_024, ..ZONE };
        let plenty = OrderView { free: short.free + 1, ..ZONE };
        assert!(!L2.is_compaction_ready(9, &short) && L2.is_compaction_ready(9, &plenty));
        assert!(!L2.is_compaction_ready(3, &plenty) && !L0.is_compaction_ready(9, &plenty));
        let deferred = OrderView { deferred: true, ..plenty };
        assert!(!L3.is_compaction_ready(9, &deferred));
        assert!(L3.is_compaction_ready(9, &OrderView { above_low: true, ..deferred }));
        assert!(!K612.is_compaction_ready(9, &plenty), "not suitable");
        assert!(K612.is_compaction_ready(9, &OrderView { compaction_fits: true, ..plenty }));
        assert!(K612.is_compaction_ready(9, &OrderView { above_min: true, ..short }));
    }

    #[test]
    fn a_quarter_of_the_node_is_balance_enough_for_blocks() {
        let good = OrderView { above_high: true, ..ZONE };
        let quarter = [good, ZONE, ZONE, ZONE];
        assert!(L1.is_balanced(9, &quarter) && !L1.is_balanced(0, &quarter));
        assert!(!L1.is_balanced(9, &[good, ZONE, ZONE, ZONE, ZONE]));
        let compacts = OrderView { compaction_fits: true, ..ZONE };
        assert!(!L1.is_balanced(9, &[compacts]) && L2.is_balanced(9, &[compacts]));
        assert!(!L2.is_balanced(9, &[OrderView { free: 1_535, ..compacts }]));
        assert!(K612.is_balanced(9, &[ZONE, ZONE, ZONE, ZONE, good]));
    }
}
