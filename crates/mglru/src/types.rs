//! Numbers of different kinds are different types, so that a generation index is never mistaken
//! for a sequence number nor a memcg for an lruvec (spec §1).

/// Counts virtual (or real) time in nanoseconds.
pub type Nanos = u64;

/// Counts the generations that a type has at most in Linux; half of them cannot be evicted, the
/// second-chance pair (spec §2.4).
pub const NR_GENS: u8 = 4;
/// Bounds the generations that a type may be configured to have.
pub const GENERATIONS: core::ops::RangeInclusive<u8> = 2..=64;
/// Counts the subdivisions of a generation by accesses through file descriptors.
pub const MAX_NR_TIERS: usize = 4;
/// Counts the zones of a node; an allocation names its highest usable zone.
pub const MAX_NR_ZONES: usize = 4;
/// Counts the types: anonymous and file.
pub const ANON_AND_FILE: usize = 2;
/// Sets the isolation target, look-around width and confidence floor of the refault controller.
pub const MIN_LRU_BATCH: u64 = 64;
/// Bounds the folios moved or promoted in one lock hold of aging; the scan cap before patch 6.
pub const MAX_LRU_BATCH: u64 = 4096;
/// Sets the unit in which reclaim is asked for, pages.
pub const SWAP_CLUSTER_MAX: u64 = 32;
/// Sets the first priority: a pass scans about `size >> priority`.
pub const DEF_PRIORITY: u8 = 12;
/// Bounds the fruitless retries before out-of-memory, and before kswapd gives a node up.
pub const MAX_RECLAIM_RETRIES: u32 = 16;
/// Names the swappiness that asks for anonymous memory alone (`memory.reclaim` with
/// `swappiness=max`).
pub const SWAPPINESS_ANON_ONLY: u8 = 201;

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// Returns the number as an array index.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type!(
    /// Names a folio by its place in the slab.
    FolioId(u32)
);
index_type!(
    /// Names a memory cgroup; 0 is the root.
    MemcgId(u32)
);
index_type!(
    /// Names a NUMA node.
    NodeId(u8)
);
index_type!(
    /// Names a zone of a node, 0 to [`MAX_NR_ZONES`]` - 1`.
    Zone(u8)
);
index_type!(
    /// Names the LRU state of one (memcg, node) pair.
    LruvecId(u32)
);
index_type!(
    /// Names an address space.
    MmId(u32)
);
index_type!(
    /// Names the slot of a generation: its number modulo the most that a type has.
    Gen(u8)
);
index_type!(
    /// Names a tier, 0 to [`MAX_NR_TIERS`]` - 1`.
    Tier(u8)
);

impl MemcgId {
    /// Names the root of the tree.
    pub const ROOT: Self = Self(0);
}

/// Holds a generation's sequence number: it only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the generation `n` after this one.
    #[inline]
    pub fn plus(self, n: u64) -> Self {
        Self(self.0 + n)
    }
}

/// Names the two kinds of evictable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LruType {
    /// Holds swap-backed pages: anonymous memory, shmem.
    Anon,
    /// Holds page cache of real files, and lazily freed anonymous folios.
    File,
}

impl LruType {
    /// Lists both, anon first.
    pub const ALL: [Self; ANON_AND_FILE] = [Self::Anon, Self::File];

    /// Returns the type as an array index: anon 0, file 1.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the other type.
    #[inline]
    pub fn other(self) -> Self {
        match self {
            Self::Anon => Self::File,
            Self::File => Self::Anon,
        }
    }
}

/// Names the caller of reclaim, which decides the counters, the throttles and what may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reclaimer {
    /// Reclaims as the background thread of the node.
    Kswapd,
    /// Reclaims as a task that allocates, for the machine or at its group's limit.
    Direct,
    /// Reclaims for `memory.reclaim`.
    Proactive,
}

/// Counts the pages of a folio: order `o` has `2^o` of them.
#[inline]
pub fn order_pages(order: u8) -> u64 {
    1 << order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_their_own_opposites() {
        for lru_type in LruType::ALL {
            assert_ne!(lru_type, lru_type.other());
            assert_eq!(lru_type, lru_type.other().other());
        }
    }
}
