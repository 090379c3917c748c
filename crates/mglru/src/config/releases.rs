//! Rules that Linux 7.1, 7.2 and 7.3 have besides the 2026 series.

use alloc::vec::Vec;

switches! {
    /// Holds one switch per rule that a release has besides the 2026 series. All are off in
    /// `before` and `after`, which stay the series alone.
    Releases {
        /// 7.0 and later: the types are held together only while both can be evicted.
        couple_both = "7.0: anon and file are held together only while both can be evicted",
        /// 7.1 and 7.2: the limit on nodes of shadows does not see the group's pages.
        blind_shadow_limit = "7.1, 7.2: the limit on nodes of shadows sees slab pages alone",
        /// 7.1 and later: a removed group's folios become its parent's at once.
        reparent = "7.1: the folios of a removed group become its parent's at once",
        /// Up to 7.2: protection in root reclaim is as old as kswapd's last run.
        stale_protection = "to 7.2: root reclaim goes by protection as kswapd last computed it",
        /// 7.2: where a folio enters is decided when its processor's batch drains.
        drain_entry = "7.2: a folio's generation is decided when its per-CPU batch of 31 drains",
        /// 7.2: reclaim's own looks at page tables climb the ladder of accesses.
        touch_ladder = "7.2: a young entry met by reclaim is one rung, not the proof of reuse",
        /// 7.2: the reclaim of a group stops at its goal.
        goal_stop = "7.2: the reclaim of a group stops once its goal is met",
        /// 7.2 alone: a store that swaps in drains the batch while the slot is still held.
        swapin_drain = "7.2: a store to swapped memory drains the batch before the slot goes",
        /// 7.3: the first touch of a program's page proves its reuse.
        exec_first_touch = "7.3: the first touch through an executable mapping proves reuse",
        /// 7.3: a request for anonymous memory alone takes none of files.
        anon_only_kept = "7.3: a request for anon alone leaves files be where there is no swap",
    }
}
