//! Watermarks of a zone, and the test whether a block of an order may be taken (experiments §17.5).
//! Sizes are pages.

use super::{Era, MAX_ORDER, PAGEBLOCK_PAGES};

/// KiB per page.
const KIB: u64 = 4;
/// Bounds of the minimum that follows from the size of memory, KiB.
const MIN_FREE_KIB: (u64, u64) = (128, 262_144);
/// With transparent huge pages: two pageblocks for each zone, and one for each pair of types that
/// may be mixed up.
const THP_BLOCKS: u64 = 2 + 9;
/// Huge pages raise the minimum to this share of memory at most: one twentieth.
const THP_SHARE: u64 = 20;
/// A steal may raise the modern high watermark to this many per cent of itself.
const BOOST_PERCENT: u64 = 150;

/// Holds the three watermarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Holds the min watermark, pages: below it only reclaimers may allocate.
    pub min: u64,
    /// Holds the low watermark, pages: below it kswapd wakes.
    pub low: u64,
    /// Holds the high watermark, pages: above it kswapd sleeps.
    pub high: u64,
}

impl Watermarks {
    /// Returns the marks of a zone of `managed` pages above a minimum.
    pub fn above(era: Era, min: u64, managed: u64) -> Self {
        let step = match era {
            Era::Lumpy => min / 4,
            Era::Modern => (min / 4).max(managed / 1000),
        };
        Self { min, low: min + step, high: min + 2 * step }
    }

    /// Returns how far the modern high mark may be raised.
    pub fn most_boost(&self) -> u64 {
        self.high * BOOST_PERCENT / 100
    }
}

/// Returns the minimum by the size of memory; one zone has all of it.
pub fn min_free(managed: u64, huge_pages: bool) -> u64 {
    let by_size = (16 * managed * KIB).isqrt().clamp(MIN_FREE_KIB.0, MIN_FREE_KIB.1) / KIB;
    let wanted = THP_BLOCKS * u64::from(PAGEBLOCK_PAGES);
    if huge_pages { by_size.max(wanted.min(managed / THP_SHARE)) } else { by_size }
}

/// Describes free memory as the test sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// Counts free pages.
    pub free: u64,
    /// Counts free blocks of each order, of any type.
    pub blocks: [u64; MAX_ORDER as usize + 1],
    /// Counts free blocks of each order on lists that the request may use (modern era).
    pub usable: [u64; MAX_ORDER as usize + 1],
    /// Counts free pages kept for other requests (modern era).
    pub kept: u64,
}

impl Stock {
    /// Says whether a block of `order` would leave the zone above `mark`.
    pub fn allows(&self, era: Era, order: u8, mark: u64) -> bool {
        match era {
            Era::Lumpy => self.allows_lumpy(order, mark),
            Era::Modern => self.allows_modern(order, mark),
        }
    }

    /// Free pages in blocks too small to help do not count, against half the mark at each order.
    fn allows_lumpy(&self, order: u8, mark: u64) -> bool {
        let Some(mut free) = (self.free + 1).checked_sub(1 << order) else { return false };
        if free <= mark {
            return false;
        }
        let mut mark = mark;
        for lower in 0..usize::from(order) {
            free = free.saturating_sub(self.blocks[lower] << lower);
            mark >>= 1;
            if free <= mark {
                return false;
            }
        }
        true
    }

    /// Enough free pages in all, and one block that is large enough.
    fn allows_modern(&self, order: u8, mark: u64) -> bool {
        let free = (self.free + 1).saturating_sub(self.kept + (1 << order));
        free > mark && (order == 0 || self.usable[usize::from(order)..].iter().any(|&n| n > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock(blocks: &[(u8, u64)]) -> Stock {
        let mut stock = Stock::default();
        for &(order, n) in blocks {
            stock.blocks[usize::from(order)] = n;
            stock.free += n << order;
        }
        stock.usable = stock.blocks;
        stock
    }

    #[test]
    fn the_minimum_by_size_and_with_huge_pages() {
        assert_eq!(min_free(262_144, false), 1_024);
        assert_eq!(min_free(262_144, true), 11 * 512);
        assert_eq!(min_free(65_536, true), 3_276, "a twentieth of 256 MiB");
        assert_eq!(min_free(256, false), 32);
    }

    #[test]
    fn steps_of_both_eras() {
        let lumpy = Watermarks::above(Era::Lumpy, 1_024, 262_144);
        assert_eq!((lumpy.low, lumpy.high), (1_280, 1_536));
        let modern = Watermarks::above(Era::Modern, 1_000, 1 << 20);
        assert_eq!((modern.low, modern.high), (2_048, 3_096));
        assert_eq!(modern.most_boost(), 4_644);
    }

    #[test]
    fn single_pages_need_one_above_the_mark() {
        for era in [Era::Lumpy, Era::Modern] {
            assert!(!stock(&[(0, 100)]).allows(era, 0, 100));
            assert!(stock(&[(0, 101)]).allows(era, 0, 100));
        }
    }

    #[test]
    fn small_blocks_do_not_count_for_large_requests() {
        let fragmented = stock(&[(0, 1_000), (1, 60)]);
        assert!(fragmented.allows(Era::Lumpy, 1, 200));
        assert!(!fragmented.allows(Era::Lumpy, 1, 240), "120 pages of order 1, half the mark 120");
        assert!(!fragmented.allows(Era::Lumpy, 2, 0));
    }

    #[test]
    fn modern_asks_for_one_block_only() {
        let one = stock(&[(0, 1_000), (9, 1)]);
        assert!(one.allows(Era::Modern, 9, 1_000));
        assert!(!one.allows(Era::Modern, 9, 1_001));
        assert!(!one.allows(Era::Modern, 10, 0));
        assert!(!Stock { kept: 512, ..one }.allows(Era::Modern, 9, 1_000));
        assert!(!Stock { usable: [0; 11], ..one }.allows(Era::Modern, 9, 0));
    }
}
