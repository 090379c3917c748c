//! Counters under their kernel names (spec §6). Units are pages unless the name says otherwise.

use core::ops::{Index, IndexMut};

use crate::types::{LruType, Reclaimer};

macro_rules! counters {
    ($($(#[doc = $says:literal])+ $variant:ident = $name:literal),* $(,)?) => {
        /// Names a counter of the policy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[doc = $says])+ $variant,)*
        }

        impl Counter {
            /// Lists all counters, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name that tools know it by.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Says what it counts.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!($($says),+).trim_ascii()),* }
            }
        }
    };
}

counters! {
    /// Counts pages scanned by kswapd: classic every page met on the inactive list, MGLRU isolated
    /// pages.
    PgscanKswapd = "pgscan_kswapd",
    /// Counts pages scanned by allocating tasks.
    PgscanDirect = "pgscan_direct",
    /// Counts pages scanned for `memory.reclaim`.
    PgscanProactive = "pgscan_proactive",
    /// Counts anon pages scanned.
    PgscanAnon = "pgscan_anon",
    /// Counts file pages scanned.
    PgscanFile = "pgscan_file",
    /// Counts pages freed by kswapd.
    PgstealKswapd = "pgsteal_kswapd",
    /// Counts pages freed by allocating tasks.
    PgstealDirect = "pgsteal_direct",
    /// Counts pages freed for `memory.reclaim`.
    PgstealProactive = "pgsteal_proactive",
    /// Counts anon pages freed.
    PgstealAnon = "pgsteal_anon",
    /// Counts file pages freed.
    PgstealFile = "pgsteal_file",
    /// Counts pages that kswapd moved to slower memory.
    PgdemoteKswapd = "pgdemote_kswapd",
    /// Counts pages that allocating tasks moved to slower memory.
    PgdemoteDirect = "pgdemote_direct",
    /// Counts pages moved to slower memory for `memory.reclaim`.
    PgdemoteProactive = "pgdemote_proactive",
    /// Counts pages that isolation met and put back on their list.
    PgscanSkip = "pgscan_skip",
    /// Counts active pages scanned (classic), or pages sorted (MGLRU).
    Pgrefill = "pgrefill",
    /// Counts pages activated.
    Pgactivate = "pgactivate",
    /// Counts pages moved from active to inactive (classic), or explicitly (MGLRU).
    Pgdeactivate = "pgdeactivate",
    /// Counts pages moved to the tail after writeback.
    Pgrotated = "pgrotated",
    /// Counts lazily freed pages reclaimed.
    Pglazyfreed = "pglazyfreed",
    /// Counts unevictable pages met and set aside.
    UnevictablePgsCulled = "unevictable_pgs_culled",
    /// Counts refaults of anon pages.
    WorkingsetRefaultAnon = "workingset_refault_anon",
    /// Counts refaults of file pages.
    WorkingsetRefaultFile = "workingset_refault_file",
    /// Counts refaulted anon pages that were activated.
    WorkingsetActivateAnon = "workingset_activate_anon",
    /// Counts refaulted file pages that were activated.
    WorkingsetActivateFile = "workingset_activate_file",
    /// Counts refaulted anon pages restored to the workingset.
    WorkingsetRestoreAnon = "workingset_restore_anon",
    /// Counts refaulted file pages restored to the workingset.
    WorkingsetRestoreFile = "workingset_restore_file",
    /// Counts pages that reclaim itself wrote.
    NrVmscanWrite = "nr_vmscan_write",
    /// Counts dirty or written pages marked to be reclaimed as soon as they are clean.
    NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
    /// Counts slab objects scanned.
    SlabsScanned = "slabs_scanned",
    /// Counts direct reclaim calls.
    Allocstall = "allocstall",
    /// Counts runs of kswapd.
    Pageoutrun = "pageoutrun",
    /// Counts the times that reclaim woke the flusher.
    FlusherWakeups = "flusher_wakeups",
    /// Counts the times that kswapd went on at once because memory was very short (lumpy era).
    KswapdSkipCongestionWait = "kswapd_skip_congestion_wait",
    /// Counts throttles for writeback.
    ThrottleWriteback = "throttle_writeback",
    /// Counts throttles for too many isolated pages.
    ThrottleIsolated = "throttle_isolated",
    /// Counts throttles for lack of progress.
    ThrottleNoprogress = "throttle_noprogress",
    /// Counts throttles for congestion.
    ThrottleCongested = "throttle_congested",
    /// Counts new generations.
    AgingPasses = "aging_passes",
    /// Counts reclaim calls that freed nothing.
    ZeroProgressReclaims = "zero_progress_reclaims",
    /// Counts reclaim calls.
    ReclaimCalls = "reclaim_calls",
    /// Counts passes of these calls and of `memory.reclaim` over the nodes, each at a priority.
    ReclaimPasses = "reclaim_passes",
    /// Counts dirty file pages met at isolation or at sort.
    DirtyScanned = "dirty_scanned",
    /// Counts page-table entries that aging read.
    WalkPtes = "walk_ptes",
    /// Counts young page-table entries that aging found.
    WalkYoung = "walk_young",
    /// Counts folios promoted by page-table walks and look-around.
    Promoted = "promoted",
    /// Counts pages protected by their tier.
    Protected = "protected",
    /// Counts folios moved on from an oldest generation to the next.
    PassedOn = "passed_on",
    /// Counts list operations of those moves.
    PassedOnSplices = "passed_on_splices",
    /// Counts batches begun when the loop's budget was used up already: none by I10 (since patch
    /// 4).
    BudgetOverruns = "budget_overruns",
    /// Counts agings of three generations at the first priority: none, by spec §4.1 (since patch
    /// 4).
    EarlyAgings = "early_agings",
}

/// Holds a set of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; Counter::ALL.len()])
    }
}

impl Index<Counter> for Counters {
    type Output = u64;
    fn index(&self, counter: Counter) -> &u64 {
        &self.0[counter as usize]
    }
}

impl IndexMut<Counter> for Counters {
    fn index_mut(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }
}

impl Counters {
    /// Lists the name and value of each counter, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Counter::ALL.iter().map(|&c| (c.name(), self[c]))
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Self) {
        for &counter in Counter::ALL {
            self[counter] += other[counter];
        }
    }
}

/// One member of a family of counters that exists per type.
pub(crate) fn by_type(lru_type: LruType, anon: Counter, file: Counter) -> Counter {
    match lru_type {
        LruType::Anon => anon,
        LruType::File => file,
    }
}

/// `pgscan_<who>`.
pub(crate) fn pgscan(who: Reclaimer) -> Counter {
    match who {
        Reclaimer::Kswapd => Counter::PgscanKswapd,
        Reclaimer::Direct => Counter::PgscanDirect,
        Reclaimer::Proactive => Counter::PgscanProactive,
    }
}

/// `pgdemote_<who>`.
pub(crate) fn pgdemote(who: Reclaimer) -> Counter {
    match who {
        Reclaimer::Kswapd => Counter::PgdemoteKswapd,
        Reclaimer::Direct => Counter::PgdemoteDirect,
        Reclaimer::Proactive => Counter::PgdemoteProactive,
    }
}

/// `pgsteal_<who>`.
pub(crate) fn pgsteal(who: Reclaimer) -> Counter {
    match who {
        Reclaimer::Kswapd => Counter::PgstealKswapd,
        Reclaimer::Direct => Counter::PgstealDirect,
        Reclaimer::Proactive => Counter::PgstealProactive,
    }
}
