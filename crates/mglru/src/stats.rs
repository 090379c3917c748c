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
    /// Scanned by kswapd: classic every page looked at on the inactive list, MGLRU isolated pages.
    PgscanKswapd = "pgscan_kswapd",
    /// Scanned by allocating tasks.
    PgscanDirect = "pgscan_direct",
    /// Scanned for `memory.reclaim`.
    PgscanProactive = "pgscan_proactive",
    /// Scanned, anon.
    PgscanAnon = "pgscan_anon",
    /// Scanned, file.
    PgscanFile = "pgscan_file",
    /// Freed by kswapd.
    PgstealKswapd = "pgsteal_kswapd",
    /// Freed by allocating tasks.
    PgstealDirect = "pgsteal_direct",
    /// Freed for `memory.reclaim`.
    PgstealProactive = "pgsteal_proactive",
    /// Freed, anon.
    PgstealAnon = "pgsteal_anon",
    /// Freed, file.
    PgstealFile = "pgsteal_file",
    /// Moved to slower memory by kswapd.
    PgdemoteKswapd = "pgdemote_kswapd",
    /// Moved to slower memory by allocating tasks.
    PgdemoteDirect = "pgdemote_direct",
    /// Moved to slower memory for `memory.reclaim`.
    PgdemoteProactive = "pgdemote_proactive",
    /// Met at isolation but put back on its list.
    PgscanSkip = "pgscan_skip",
    /// Classic: active pages scanned; MGLRU: pages sorted.
    Pgrefill = "pgrefill",
    /// Activated.
    Pgactivate = "pgactivate",
    /// Active to inactive (classic), or explicitly (MGLRU).
    Pgdeactivate = "pgdeactivate",
    /// To the tail after writeback.
    Pgrotated = "pgrotated",
    /// Lazily freed pages reclaimed.
    Pglazyfreed = "pglazyfreed",
    /// Unevictable pages met and set aside.
    UnevictablePgsCulled = "unevictable_pgs_culled",
    /// Refaults, anon.
    WorkingsetRefaultAnon = "workingset_refault_anon",
    /// Refaults, file.
    WorkingsetRefaultFile = "workingset_refault_file",
    /// Refaults activated, anon.
    WorkingsetActivateAnon = "workingset_activate_anon",
    /// Refaults activated, file.
    WorkingsetActivateFile = "workingset_activate_file",
    /// Refaults restored to the workingset, anon.
    WorkingsetRestoreAnon = "workingset_restore_anon",
    /// Refaults restored to the workingset, file.
    WorkingsetRestoreFile = "workingset_restore_file",
    /// Pages reclaim itself wrote.
    NrVmscanWrite = "nr_vmscan_write",
    /// Dirty or written pages marked to be reclaimed as soon as they are clean.
    NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
    /// Slab objects looked at.
    SlabsScanned = "slabs_scanned",
    /// Direct reclaim calls.
    Allocstall = "allocstall",
    /// kswapd runs.
    Pageoutrun = "pageoutrun",
    /// Times reclaim woke the flusher.
    FlusherWakeups = "flusher_wakeups",
    /// kswapd went on at once because memory was very short (lumpy era).
    KswapdSkipCongestionWait = "kswapd_skip_congestion_wait",
    /// Throttled for writeback.
    ThrottleWriteback = "throttle_writeback",
    /// Throttled for too many isolated pages.
    ThrottleIsolated = "throttle_isolated",
    /// Throttled for lack of progress.
    ThrottleNoprogress = "throttle_noprogress",
    /// Throttled for congestion.
    ThrottleCongested = "throttle_congested",
    /// New generations.
    AgingPasses = "aging_passes",
    /// Reclaim calls that freed nothing.
    ZeroProgressReclaims = "zero_progress_reclaims",
    /// Reclaim calls.
    ReclaimCalls = "reclaim_calls",
    /// Passes of these calls and of `memory.reclaim` over the nodes, each at a priority.
    ReclaimPasses = "reclaim_passes",
    /// Dirty file pages met at isolation or at sort.
    DirtyScanned = "dirty_scanned",
    /// Page-table entries looked at by aging.
    WalkPtes = "walk_ptes",
    /// Young page-table entries found by aging.
    WalkYoung = "walk_young",
    /// Folios promoted by page-table walks and look-around.
    Promoted = "promoted",
    /// Pages protected by their tier.
    Protected = "protected",
    /// Folios moved on from an oldest generation to the next.
    PassedOn = "passed_on",
    /// List operations that took.
    PassedOnSplices = "passed_on_splices",
    /// Batches begun when the loop's budget was used up already: none by I10 (since patch 4).
    BudgetOverruns = "budget_overruns",
    /// Three generations aged at the first priority: never, by spec §4.1 (since patch 4).
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
