//! How many pages may be dirty: shares of the memory available to the page cache.

use super::DirtySpec;

/// Holds the limits of a domain (the machine, or a group), pages. Dirty pages alone count against
/// `background`; with those under writeback they count against `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Holds the number of pages above which the flusher writes.
    pub background: u64,
    /// Writers hold here.
    pub limit: u64,
}

impl DirtySpec {
    /// Limits of a domain that has `available` pages: free ones and those of the page cache.
    pub fn thresholds(&self, available: u64) -> Thresholds {
        let share = |percent: u32| available.saturating_mul(u64::from(percent)) / 100;
        Thresholds { background: share(self.background_ratio), limit: share(self.ratio) }
    }
}

impl Thresholds {
    /// Returns the number of pages up to which writers are not slowed.
    pub fn freerun(&self) -> u64 {
        self.background.midpoint(self.limit)
    }
}

/// Returns the memory available to a group's page cache, pages: what it has cached, and what it may
/// still be charged (`headroom`) as far as the rest of the machine has clean pages to give.
pub fn group_available(
    file: u64,
    dirty: u64,
    headroom: u64,
    machine_available: u64,
    machine_dirty: u64,
) -> u64 {
    let own_clean = file.saturating_sub(dirty);
    let machine_clean = machine_available.saturating_sub(machine_dirty);
    file.saturating_add(headroom.min(machine_clean.saturating_sub(own_clean)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_and_a_fifth() {
        let limits = DirtySpec::default().thresholds(32_768);
        assert_eq!(limits, Thresholds { background: 3_276, limit: 6_553 });
        assert_eq!(limits.freerun(), 4_914);
    }

    #[test]
    fn headroom_counts_as_far_as_the_machine_has_clean_pages() {
        assert_eq!(group_available(100, 40, 50, 10_000, 500), 150);
        assert_eq!(group_available(100, 40, u64::MAX, 10_000, 500), 100 + 9_440);
        assert_eq!(group_available(100, 40, 50, 500, 430), 110);
        assert_eq!(group_available(100, 200, 50, 10, 500), 100);
    }
}
