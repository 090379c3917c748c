//! Where a request goes when its own lists are empty, and what it takes along (experiments §17.5).
//!
//! The largest free block of the first type that has one is split. A request that is likely to
//! spoil the block for others takes the free rest of the pageblock with it, so that the next one
//! does not spoil another; if it then has half of it, the pageblock changes its type.

use super::{Era, MAX_ORDER, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};

/// From this order on a block is worth taking with its neighbours: half the pageblock's order.
const STEAL_ORDER: u8 = PAGEBLOCK_ORDER / 2;

/// Lists the types that are asked in turn.
pub fn donors(wanted: MigrateType) -> &'static [MigrateType] {
    use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};
    match wanted {
        Unmovable => &[Reclaimable, Movable],
        Reclaimable => &[Unmovable, Movable],
        Movable => &[Reclaimable, Unmovable],
        Reserve | HighAtomic => &[],
    }
}

/// Orders tried, the largest first, down to what was asked for.
pub fn orders(order: u8) -> impl Iterator<Item = u8> {
    (order..=MAX_ORDER).rev()
}

/// Does the request take all free pages of the pageblock along with the block of `order`?
pub fn takes_pageblock(era: Era, order: u8, wanted: MigrateType) -> bool {
    let spoils = match era {
        Era::Lumpy => wanted == MigrateType::Reclaimable,
        Era::Modern => matches!(wanted, MigrateType::Reclaimable | MigrateType::Unmovable),
    };
    order >= STEAL_ORDER || spoils
}

/// Tells whether so much of a pageblock is the request's own now that it changes its type. `alike`:
/// pages in use that are of the new type's kind, which only the modern era counts.
pub fn retags(era: Era, free: u32, alike: u32) -> bool {
    let own = match era {
        Era::Lumpy => free,
        Era::Modern => free + alike,
    };
    own >= PAGEBLOCK_PAGES / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};

    #[test]
    fn donors_come_in_the_documented_order() {
        assert_eq!(donors(Unmovable), [Reclaimable, Movable]);
        assert_eq!(donors(Reclaimable), [Unmovable, Movable]);
        assert_eq!(donors(Movable), [Reclaimable, Unmovable]);
        assert!(donors(Reserve).is_empty() && donors(HighAtomic).is_empty());
        assert_eq!(orders(9).collect::<Vec<_>>(), [10, 9]);
    }

    #[test]
    fn who_takes_the_whole_pageblock() {
        assert!(
            takes_pageblock(Era::Lumpy, 4, Movable) && !takes_pageblock(Era::Lumpy, 3, Movable)
        );
        assert!(takes_pageblock(Era::Lumpy, 0, Reclaimable));
        assert!(!takes_pageblock(Era::Lumpy, 0, Unmovable));
        assert!(takes_pageblock(Era::Modern, 0, Unmovable));
        assert!(!takes_pageblock(Era::Modern, 0, Movable));
    }

    #[test]
    fn half_a_pageblock_changes_its_type() {
        assert!(retags(Era::Lumpy, 256, 0) && !retags(Era::Lumpy, 255, 257));
        assert!(retags(Era::Modern, 100, 156) && !retags(Era::Modern, 100, 155));
    }
}
