//! How many faults of which kind an arena had.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts a mapping's faults so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultStat {
    /// Counts pages that were missing.
    pub missing: u64,
    /// Counts missing pages that had to be read or unpacked.
    pub major: u64,
    /// Counts first stores to clean pages.
    pub protect: u64,
    /// Counts faults that had to wait for room.
    pub throttled: u64,
    /// Counts pages read along with a missing one.
    pub read_around: u64,
    /// Counts pages of a heap used again before they were evicted.
    pub rescued: u64,
}

/// Counts faults. The thread that serves one adds to them; none is ever taken back. In a cache line
/// of its own: every fault writes it, while the policy reads what lies beside it for every event.
#[repr(align(64))]
#[derive(Debug, Default)]
pub struct FaultCounters {
    missing: AtomicU64,
    major: AtomicU64,
    protect: AtomicU64,
    throttled: AtomicU64,
    read_around: AtomicU64,
    rescued: AtomicU64,
}

impl FaultCounters {
    /// Counts a page that was missing.
    pub fn add_missing(&self) {
        self.missing.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a missing page that had to be read or unpacked.
    pub fn add_major(&self) {
        self.major.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a first store to a clean page.
    pub fn add_protect(&self) {
        self.protect.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a fault that waits for room.
    pub fn add_throttled(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts pages that were read along with a missing one.
    pub fn add_read_around(&self, nr_pages: u64) {
        self.read_around.fetch_add(nr_pages, Ordering::Relaxed);
    }

    /// Counts a page that was used again while it was staged.
    pub fn add_rescued(&self) {
        self.rescued.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads all of them.
    pub fn now(&self) -> FaultStat {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FaultStat {
            missing: get(&self.missing),
            major: get(&self.major),
            protect: get(&self.protect),
            throttled: get(&self.throttled),
            read_around: get(&self.read_around),
            rescued: get(&self.rescued),
        }
    }
}
