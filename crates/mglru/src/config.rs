//! Every tunable and every patch switch, with one default: the rules after the 2026 series (K72).
//!
//! `before` (K614) and `after` (K72) are named sets of the same keys (spec §0, §10);
//! `k7.1` to `k7.3` add what the releases have besides.

#[macro_use]
mod switches;
mod keys;
mod mechanisms;
mod releases;
mod variants;
mod versions;

use alloc::vec::Vec;

pub use self::keys::ConfigError;
pub use self::mechanisms::Mechanisms;
pub use self::releases::Releases;
pub use self::variants::{VARIANTS, Variant};
use crate::contig::Contig;
use crate::types::{MAX_NR_TIERS, Tier};

/// Which LRU algorithm runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Multi-generational LRU.
    Mglru,
    /// Active and inactive lists.
    Classic,
    /// ScanControl: in the order they came, whatever is accessed.
    Fifo,
    /// ScanControl: any folio, whatever is accessed.
    Random,
}

/// How accesses are encoded in a folio and when one is promoted (spec §3.3, §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefsModel {
    /// Linux 6.12.
    K612,
    /// Linux 6.14 and later.
    K614,
}

/// When a new generation is wanted (spec §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgingRule {
    /// Three generations age only when badly spread.
    K612,
    /// Three generations age.
    K614,
}

/// The least an lruvec is scanned when its budget shifts to zero (spec §10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Floor {
    /// Nothing (before the series, and v1).
    None,
    /// Always at least 32 pages.
    V2,
    /// A budget of zero rotates the memcg.
    V4,
    /// Below the first priority, `min(size, 32)`; a budget of zero rotates.
    V5,
    /// Nothing; a tiny lruvec waits for the priority to drop.
    V7,
}

/// Says how root reclaim chooses memcgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemcgWalk {
    /// The memcg LRU (MGLRU only).
    MemcgLru,
    /// The hierarchy iterator, as for the reclaim of a group.
    Iter,
}

/// Says where aging learns of accesses through page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum YoungSource {
    /// Page-table walks and look-around.
    Ptw,
    /// Look-around of the reverse map only.
    Rmap,
}

switches! {
    /// One switch per patch (v5 numbering; `p06p` and `prefault` joined later; spec §10.3).
    Patches {
        /// Refactor: no effect.
        p01 = "consolidate the evictable size (no effect)",
        /// Rename: no effect.
        p02 = "rename variables (no effect)",
        /// The batch cap belongs to the callers: no effect.
        p03 = "move the batch cap out of the scan (no effect)",
        /// One budget per loop; must-age is never ignored.
        p04 = "restructure the reclaim loop around one budget",
        /// Scan counts are exact.
        p05 = "count scanned folios exactly",
        /// Batches of 64.
        p06 = "evict in batches of 64 instead of 4096",
        /// The other type only when nothing was scanned.
        p06p = "fall back to the other type only when nothing was scanned",
        /// Aging does not end the loop.
        p07 = "do not abort the loop after aging",
        /// Isolation does not look at swap or I/O permission.
        p08 = "drop the swap-constrained check at isolation",
        /// Dirty and writeback folios take the common path.
        p09 = "use the common routine for dirty and writeback folios",
        /// The flusher is woken per batch.
        p10 = "wake the flusher inside the loop, per batch",
        /// Clean-up: no effect.
        p11 = "protection never marks for reclaim (no effect after p09)",
        /// Clean-up: no effect.
        p12 = "remove file_taken (no effect after p10)",
        /// Clean-up: no effect.
        p13 = "remove unqueued_dirty (no effect after p10)",
        /// Cgroup reclaim is throttled like the classic LRU.
        p14 = "unify the dirty accounting: throttle cgroup reclaim",
        /// Prefaulted folios are accessed, not active.
        prefault = "prefaulted file folios are accessed, not active",
    }
}

/// Defects of a faulty backport of the series to a phone's kernel (spec §10.4, by its numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Misport {
    /// 4: three generations are aged at the first priority too.
    pub ages_at_first: bool,
    /// 6: the question whether to age makes the whole evictable size the budget, every turn.
    pub whole_budget: bool,
    /// 7: the budget is never used up.
    pub endless_budget: bool,
}

impl Misport {
    /// Turns all of them on.
    pub const ALL: Self = Self { ages_at_first: true, whole_budget: true, endless_budget: true };
    /// Turns all of them off.
    pub const NONE: Self =
        Self { ages_at_first: false, whole_budget: false, endless_budget: false };
}

/// Holds the switches of the batching series of 2023 (spec §11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bulk {
    /// Sizes of generations are written once per lock hold.
    pub counters: bool,
    /// Folios on their way to the next generation move in runs, which keep their order.
    pub moves: bool,
    /// Folios about to be moved by aging are loaded ahead.
    pub prefetch: bool,
}

/// Holds the rules in force.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Which LRU algorithm runs.
    pub lru: Algorithm,
    /// Reference encoding.
    pub refs_model: RefsModel,
    /// When to age.
    pub aging_rule: AgingRule,
    /// How large blocks come about, and which kernels' physical memory that needs.
    pub contig: Contig,
    /// The 2026 series.
    pub patches: Patches,
    /// Rules of releases besides the series.
    pub releases: Releases,
    /// Mechanisms that all versions have.
    pub mechanisms: Mechanisms,
    /// Tiers that folios are told apart by, 1 to 4.
    pub tiers: u8,
    /// Minimum scan of tiny lruvecs.
    pub floor: Floor,
    /// How root reclaim chooses memcgs.
    pub memcg_walk: MemcgWalk,
    /// Direct reclaimers share a walk of a subtree and stop at their goal; otherwise, as in 6.1,
    /// each walks all of it.
    pub partial_walks: bool,
    /// `memory.reclaim` asks for a quarter of what is left at a time; otherwise, as in 6.1, for
    /// all of it.
    pub reclaim_in_quarters: bool,
    /// Where aging learns of accesses.
    pub young_source: YoungSource,
    /// The CPU sets accessed bits on PMDs.
    pub nonleaf_young: bool,
    /// Protection below `memory.min`/`low` is proportional rather than binary.
    pub proportional_protection: bool,
    /// Rules up to 6.18: kswapd may write dirty file pages of a node flagged dirty.
    pub node_dirty_flag: bool,
    /// Isolation and activation clear the tier bits as 6.12's stable releases do.
    pub stable_612: bool,
    /// CONGESTED and NOPROGRESS are skipped on a mostly clean node.
    pub throttle_skips_clean_node: bool,
    /// cgroup reclaim may throttle writers (cgroup v2 with cgroup writeback).
    pub sane_throttling: bool,
    /// Defects of a faulty backport of the series.
    pub misport: Misport,
    /// The batching series of 2023.
    pub bulk: Bulk,
    /// `min_ttl`: kswapd calls out of memory when every oldest generation is younger, ms.
    pub min_ttl_ms: u64,
    /// NUMA nodes.
    pub nr_nodes: u8,
    /// Length of a timer tick, nanoseconds (250 Hz).
    pub tick_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lru: Algorithm::Mglru,
            refs_model: RefsModel::K614,
            aging_rule: AgingRule::K614,
            contig: Contig::K612,
            patches: Patches::ALL,
            releases: Releases::NONE,
            mechanisms: Mechanisms::ALL,
            tiers: MAX_NR_TIERS as u8,
            floor: Floor::V7,
            memcg_walk: MemcgWalk::MemcgLru,
            partial_walks: true,
            reclaim_in_quarters: true,
            young_source: YoungSource::Ptw,
            nonleaf_young: true,
            proportional_protection: true,
            node_dirty_flag: false,
            stable_612: false,
            throttle_skips_clean_node: true,
            sane_throttling: true,
            misport: Misport::default(),
            bulk: Bulk::default(),
            min_ttl_ms: 0,
            nr_nodes: 1,
            tick_ns: 4_000_000,
        }
    }
}

impl Config {
    /// Does MGLRU run?
    #[inline]
    pub fn is_mglru(&self) -> bool {
        self.lru == Algorithm::Mglru
    }

    /// Tells whether it is one of the controls that ignore accesses.
    #[inline]
    pub fn ignores_accesses(&self) -> bool {
        matches!(self.lru, Algorithm::Fifo | Algorithm::Random)
    }

    /// Does root reclaim find its memcgs by the memcg LRU?
    #[inline]
    pub fn uses_memcg_lru(&self) -> bool {
        self.is_mglru() && self.memcg_walk == MemcgWalk::MemcgLru
    }

    /// Is a new folio kept aside in its processor's batch before it enters a generation?
    #[inline]
    pub(crate) fn parks(&self) -> bool {
        self.releases.drain_entry && self.is_mglru()
    }

    /// Does a store that swaps a page in drain its processor's batch while the slot is held?
    pub fn drains_at_swapin(&self) -> bool {
        self.releases.swapin_drain && self.parks()
    }

    /// Lowers a tier to the highest one that is told apart.
    #[inline]
    pub(crate) fn cap_tier(&self, tier: Tier) -> Tier {
        tier.min(Tier(self.tiers.max(1) - 1))
    }

    /// Does the first touch through an executable mapping prove reuse?
    #[inline]
    pub(crate) fn trusts_programs(&self) -> bool {
        self.releases.exec_first_touch && self.mechanisms.exec_protection
    }

    /// Do the folios of a removed group become its parent's?
    pub(crate) fn reparents(&self) -> bool {
        self.releases.reparent
    }

    /// Tells whether the limit on a group's nodes of shadows ignores its pages.
    pub fn limits_shadows_blindly(&self) -> bool {
        self.releases.blind_shadow_limit && self.is_mglru()
    }

    /// Tells whether the 6.12 reference encoding is in force.
    #[inline]
    pub fn is_k612(&self) -> bool {
        self.refs_model == RefsModel::K612
    }
}
