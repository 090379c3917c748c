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
use crate::types::{MAX_NR_TIERS, NR_GENS, Tier};

/// Selects the LRU algorithm that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Runs the multi-generational LRU.
    Mglru,
    /// Runs active and inactive lists.
    Classic,
    /// Runs a control that takes folios in the order of arrival, whatever is accessed.
    Fifo,
    /// Runs a control that takes any folio, whatever is accessed.
    Random,
    /// A policy of the host names what goes, in the frame of the classic LRU:
    /// [`Host::victims`](crate::host::Host::victims). No key sets it; the host does.
    Custom,
}

/// Selects how a folio encodes accesses and when one is promoted (spec §3.3, §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefsModel {
    /// Follows Linux 6.12.
    K612,
    /// Follows Linux 6.14 and later.
    K614,
}

/// Decides when a new generation is wanted (spec §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgingRule {
    /// Ages three generations only when they are badly spread.
    K612,
    /// Ages three generations always.
    K614,
}

/// Sets the least that an lruvec is scanned when its budget shifts to zero (spec §10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Floor {
    /// Sets no minimum (before the series, and v1).
    None,
    /// Scans at least 32 pages always.
    V2,
    /// Rotates the memcg when its budget is zero.
    V4,
    /// Scans `min(size, 32)` below the first priority; a budget of zero rotates.
    V5,
    /// Sets no minimum; a tiny lruvec waits for the priority to drop.
    V7,
}

/// Says how root reclaim chooses memcgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemcgWalk {
    /// Walks the memcg LRU (MGLRU only).
    MemcgLru,
    /// Walks the hierarchy, as reclaim of a group does.
    Iter,
}

/// Says where aging learns of accesses through page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum YoungSource {
    /// Learns as the LRU does in Linux: the multi-gen LRU walks, the classic LRU does not.
    Own,
    /// Walks page tables, and asks the reverse map about what it is about to evict.
    Ptw,
    /// Asks the reverse map alone, and walks no page tables.
    Rmap,
}

/// Says which refaults count: those of pages that more room would have kept (spec §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workingset {
    /// Measures as the LRU does in Linux: the multi-gen LRU by generations, the classic LRU by
    /// distance.
    Own,
    /// Counts a page that comes back before as many others went as the lists hold.
    Distance,
    /// Counts a page that comes back while its generation is in the window; the classic LRU, which
    /// has none, counts one that went in this turn of its inactive list or the last.
    Generations,
}

switches! {
    /// Holds one switch per patch (v5 numbering; `p06p` and `prefault` joined later; spec §10.3).
    Patches {
        /// Refactors: no effect.
        p01 = "consolidate the evictable size (no effect)",
        /// Renames: no effect.
        p02 = "rename variables (no effect)",
        /// The batch cap belongs to the callers: no effect.
        p03 = "move the batch cap out of the scan (no effect)",
        /// Keeps one budget per loop; must-age is never ignored.
        p04 = "restructure the reclaim loop around one budget",
        /// Scan counts are exact.
        p05 = "count scanned folios exactly",
        /// Evicts in batches of 64.
        p06 = "evict in batches of 64 instead of 4096",
        /// Takes the other type only when nothing was scanned.
        p06p = "fall back to the other type only when nothing was scanned",
        /// Aging does not end the loop.
        p07 = "do not abort the loop after aging",
        /// Isolation does not look at swap or I/O permission.
        p08 = "drop the swap-constrained check at isolation",
        /// Dirty and writeback folios take the common path.
        p09 = "use the common routine for dirty and writeback folios",
        /// The flusher is woken per batch.
        p10 = "wake the flusher inside the loop, per batch",
        /// Cleans up: no effect.
        p11 = "protection never marks for reclaim (no effect after p09)",
        /// Cleans up: no effect.
        p12 = "remove file_taken (no effect after p10)",
        /// Cleans up: no effect.
        p13 = "remove unqueued_dirty (no effect after p10)",
        /// Cgroup reclaim is throttled like the classic LRU.
        p14 = "unify the dirty accounting: throttle cgroup reclaim",
        /// Prefaulted folios are accessed, not active.
        prefault = "prefaulted file folios are accessed, not active",
    }
}

/// Selects defects of a faulty backport of the series to a phone's kernel (spec §10.4, by its
/// numbers).
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
    /// Writes sizes of generations once per lock hold.
    pub counters: bool,
    /// Moves folios on their way to the next generation in runs, which keep their order.
    pub moves: bool,
    /// Loads folios that aging is about to move ahead of time.
    pub prefetch: bool,
}

/// Holds the rules in force.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Selects the LRU algorithm.
    pub lru: Algorithm,
    /// Selects the encoding of references.
    pub refs_model: RefsModel,
    /// Selects the rule that decides when to age.
    pub aging_rule: AgingRule,
    /// Selects how large blocks come about, and which kernels' physical memory that needs.
    pub contig: Contig,
    /// Holds the switches of the 2026 series.
    pub patches: Patches,
    /// Holds the rules of releases besides the series.
    pub releases: Releases,
    /// Holds the mechanisms that all versions have.
    pub mechanisms: Mechanisms,
    /// Counts the tiers that distinguish folios, 1 to 4.
    pub tiers: u8,
    /// Counts the generations that a type has at most, 2 to 64; half of them cannot be evicted.
    pub generations: u8,
    /// Selects which refaults count.
    pub workingset: Workingset,
    /// Sets the minimum scan of tiny lruvecs.
    pub floor: Floor,
    /// Selects how root reclaim chooses memcgs.
    pub memcg_walk: MemcgWalk,
    /// Lets direct reclaimers share a walk of a subtree and stop at their goal; otherwise, as in
    /// 6.1, each walks all of it.
    pub partial_walks: bool,
    /// Lets `memory.reclaim` ask for a quarter of what is left at a time; otherwise, as in 6.1, for
    /// all of it.
    pub reclaim_in_quarters: bool,
    /// Selects where aging learns of accesses.
    pub young_source: YoungSource,
    /// Says that the CPU sets accessed bits on PMDs.
    pub nonleaf_young: bool,
    /// Makes protection below `memory.min`/`low` proportional rather than binary.
    pub proportional_protection: bool,
    /// Follows the rules up to 6.18: kswapd may write dirty file pages of a node flagged dirty.
    pub node_dirty_flag: bool,
    /// Clears the tier bits at isolation and activation as 6.12's stable releases do.
    pub stable_612: bool,
    /// Skips CONGESTED and NOPROGRESS on a mostly clean node.
    pub throttle_skips_clean_node: bool,
    /// Lets cgroup reclaim throttle writers (cgroup v2 with cgroup writeback).
    pub sane_throttling: bool,
    /// Selects the defects of a faulty backport of the series.
    pub misport: Misport,
    /// Holds the switches of the batching series of 2023.
    pub bulk: Bulk,
    /// Sets `min_ttl`, ms: kswapd reports out of memory when every oldest generation is younger.
    pub min_ttl_ms: u64,
    /// Counts the NUMA nodes.
    pub nr_nodes: u8,
    /// Sets the length of a timer tick, ns (250 Hz).
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
            generations: NR_GENS,
            workingset: Workingset::Own,
            floor: Floor::V7,
            memcg_walk: MemcgWalk::MemcgLru,
            partial_walks: true,
            reclaim_in_quarters: true,
            young_source: YoungSource::Own,
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

    /// Tells whether each type has one list, without an active one.
    #[inline]
    pub fn keeps_one_list(&self) -> bool {
        self.ignores_accesses() || self.lru == Algorithm::Custom
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

    /// Lowers a tier to the highest one that is distinguished.
    #[inline]
    pub(crate) fn cap_tier(&self, tier: Tier) -> Tier {
        tier.min(Tier(self.tiers.max(1) - 1))
    }

    /// Are page tables walked to find what was accessed?
    #[inline]
    pub(crate) fn walks_tables(&self) -> bool {
        match self.young_source {
            YoungSource::Own => self.is_mglru(),
            YoungSource::Ptw => true,
            YoungSource::Rmap => false,
        }
    }

    /// Do refaults count by their distance, rather than by generations?
    #[inline]
    pub(crate) fn refaults_by_distance(&self) -> bool {
        match self.workingset {
            Workingset::Own => !self.is_mglru(),
            Workingset::Distance => true,
            Workingset::Generations => false,
        }
    }

    /// Does the first touch through an executable mapping prove reuse?
    #[inline]
    pub(crate) fn trusts_programs(&self) -> bool {
        self.releases.exec_first_touch && self.mechanisms.exec_protection
    }

    /// Do the folios of a removed group become its parent's?
    ///
    /// A custom policy keeps them: it knows its folios by their list.
    pub(crate) fn reparents(&self) -> bool {
        self.releases.reparent && self.lru != Algorithm::Custom
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
