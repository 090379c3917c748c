//! Physical memory: page frames, a buddy allocator with migratetypes and pageblocks, per-CPU lists
//! and watermarks, and the compaction that moves pages to make large blocks (experiments §17).
//!
//! Everything here is a data structure without a machine: frames hold opaque users, movement is a
//! trait. Two eras differ and stand behind one switch, [`Era`]. Lists are linked by frame number,
//! so that nothing depends on addresses or hash order.

pub mod compaction;
pub mod fallback;
mod free_lists;
mod per_cpu;
pub mod slab;
pub mod watermarks;
pub mod zone;

pub use self::zone::{Frame, Request, Use, Zone};

/// Bounds the order of the allocator's blocks: 2^10 pages, 4 MiB.
pub const MAX_ORDER: u8 = 10;
/// Sets the order of a pageblock, 2^9 pages, 2 MiB: the unit for which a migratetype is kept.
pub const PAGEBLOCK_ORDER: u8 = 9;
/// Gives the size of a pageblock in pages.
pub const PAGEBLOCK_PAGES: u32 = 1 << PAGEBLOCK_ORDER;
/// Orders above this are costly: nobody promises them.
pub const COSTLY_ORDER: u8 = 3;

/// Numbers a page frame, from 0 in the zone.
pub type Pfn = u32;

/// Names the kernels whose rules the allocator and compaction follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Follows Linux 2.6.32 to 3.4.
    Lumpy,
    /// Follows Linux 6.12.
    Modern,
}

/// Names the use of a pageblock, and the free list that a block is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MigrateType {
    /// Holds kernel memory that stays where it is.
    Unmovable,
    /// Holds kernel memory that a shrinker can free.
    Reclaimable,
    /// Holds memory of programs and the page cache.
    Movable,
    /// Holds whole blocks kept back, the last resort of every request (lumpy era).
    Reserve,
    /// Holds blocks kept for large requests that cannot wait (modern era).
    HighAtomic,
}

impl MigrateType {
    /// Lists all types.
    pub const ALL: [Self; 5] =
        [Self::Unmovable, Self::Reclaimable, Self::Movable, Self::Reserve, Self::HighAtomic];
    /// Lists the types that requests have, and per-CPU lists.
    pub const REQUESTED: [Self; 3] = [Self::Unmovable, Self::Reclaimable, Self::Movable];

    /// Returns the type as an array index.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Returns the first frame of the aligned block of `order` that holds `pfn`.
pub fn block_start(pfn: Pfn, order: u8) -> Pfn {
    pfn >> order << order
}
