//! What the host knows about a zone.

/// Holds what the host knows about a zone. Sizes are pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneView {
    /// Counts pages of the zone; 0: the zone does not exist.
    pub managed: u64,
    /// Counts free pages.
    pub free: u64,
    /// Holds the min watermark, pages: below it only reclaimers may allocate.
    pub min: u64,
    /// Holds the low watermark, pages: below it kswapd wakes.
    pub low: u64,
    /// Holds the high watermark, pages: above it kswapd sleeps.
    pub high: u64,
    /// Allocations that could use a higher zone leave this much here besides the watermark.
    pub reserve: u64,
}

/// Describes a zone as a request of some order sees it. Sizes are pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderView {
    /// Counts pages of the zone; 0: the zone does not exist.
    pub managed: u64,
    /// Counts free pages.
    pub free: u64,
    /// Holds the low watermark.
    pub low: u64,
    /// Holds the high watermark.
    pub high: u64,
    /// Says that taking a block leaves the min watermark.
    pub above_min: bool,
    /// Says that taking a block leaves the low watermark.
    pub above_low: bool,
    /// Says that taking a block leaves the high watermark.
    pub above_high: bool,
    /// Says that compaction would not be skipped for lack of memory, or is not needed.
    pub compaction_fits: bool,
    /// Says that compaction of the zone failed and is skipped for a while.
    pub deferred: bool,
}

impl OrderView {
    /// Describes a zone where only the number of free pages is known.
    pub fn of_pages(zone: &ZoneView) -> Self {
        Self {
            managed: zone.managed,
            free: zone.free,
            low: zone.low,
            high: zone.high,
            above_min: zone.free >= zone.min + zone.reserve,
            above_low: zone.free >= zone.low + zone.reserve,
            above_high: zone.free >= zone.high + zone.reserve,
            ..Self::default()
        }
    }
}
