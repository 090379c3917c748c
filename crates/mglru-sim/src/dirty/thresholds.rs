//! How many pages may be dirty: shares of the memory available to the page cache.

use super::DirtySpec;

/// What dirty limits apply to, the machine or a group. Pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// Pages dirty or under writeback.
    pub held: u64,
    /// Pages the page cache may have, see [`machine_available`] and [`group_available`].
    pub available: u64,
}

/// Limits of a domain, pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Above this the flusher writes.
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
    /// Up to here writers are not slowed.
    pub fn freerun(&self) -> u64 {
        self.background.midpoint(self.limit)
    }
}

/// Memory available to the machine's page cache, pages: free pages and cached ones, less what the
/// watermarks keep back.
pub fn machine_available(free: u64, file: u64, kept_back: u64) -> u64 {
    free.saturating_add(file).saturating_sub(kept_back)
}

/// Memory available to a group's page cache, pages: what it has cached, and what it may still be
/// charged (`headroom`) as far as the rest of the machine has clean pages to give.
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
    fn watermarks_are_not_available() {
        assert_eq!(machine_available(100, 50, 30), 120);
        assert_eq!(machine_available(10, 5, 30), 0);
    }

    #[test]
    fn headroom_counts_as_far_as_the_machine_has_clean_pages() {
        assert_eq!(group_available(100, 40, 50, 10_000, 500), 150);
        assert_eq!(group_available(100, 40, u64::MAX, 10_000, 500), 100 + 9_440);
        assert_eq!(group_available(100, 40, 50, 500, 430), 110);
        assert_eq!(group_available(100, 200, 50, 10, 500), 100);
    }
}
