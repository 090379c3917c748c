//! Where Linux 6.12, its stable releases, and 6.14 and later differ in the multi-gen LRU: a line a
//! rule (spec §0). Later releases are switches of their own (`releases`).

use super::{Config, RefsModel};

/// Declares the rules, and a constant for each version with what holds there.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: [$k612:literal, $stable:literal, $k614:literal],)*) => {
        /// Says which rules a version follows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Version {
            $($(#[$doc])* pub(crate) $name: bool,)*
        }

        const K612: Version = Version { $($name: $k612,)* };
        const K612_STABLE: Version = Version { $($name: $stable,)* };
        const K614: Version = Version { $($name: $k614,)* };
    };
}

rules! {
    // Columns: 6.12.0, later 6.12, 6.14 and later.
    /// A walk leaves the accessed bits of folios on no list.
    spares_unlisted: [false, false, true],
    /// `MADV_COLD` leaves a folio of the oldest generation where it is.
    keeps_cold: [false, false, true],
    /// A recent refault activates, and is judged by the accesses that its shadow counts.
    refault_by_count: [true, true, false],
    /// Sorting takes mlocked folios off the lists.
    culls_mlocked: [true, false, true],
    /// A locked folio waits as one under writeback does (before patch 9).
    locked_waits: [true, true, false],
    /// A protected folio goes to the tail of the next generation, and counts although saturated.
    protected_to_tail: [true, true, false],
    /// The look around a file's young entry passes anonymous neighbours by.
    looks_by_type: [true, true, false],
    /// One young entry promotes; from 6.14 on the first touch leaves a mark.
    one_touch: [true, true, false],
    /// A neighbour found young forgets its accesses.
    neighbour_forgets: [false, true, false],
    /// A survivor that was referenced or locked gets no second try.
    retry_refuses_used: [true, true, false],
    /// Each survivor is activated, but for one that awaits its write.
    activates_survivors: [true, true, false],
    /// Where a folio enters is counted from its type's oldest generation.
    enters_from_oldest: [true, true, false],
    /// A folio that enters active forgets its accesses.
    entry_forgets: [true, true, false],
    /// Folios that a new generation pushes on count as protected.
    counts_pushed: [false, false, true],
    /// Anon is held back to file, file drawn along with anon.
    anon_leads: [true, true, false],
    /// Swappiness alone decides the type at its ends, or when one type is older.
    type_by_age: [true, true, false],
    /// Isolation forgets the referenced mark.
    isolation_forgets: [true, true, false],
    /// A dirty file folio may be isolated without permission for I/O (before patch 8).
    isolates_dirty_files: [false, true, false],
    /// A page table that was busy stays in the filter.
    remembers_busy_tables: [false, false, true],
    /// The flusher is woken at the end of a loop that met only dirty folios (before patch 10).
    wakes_flusher_at_end: [false, true, true],
    /// The command to age stops at the greatest number of generations unless it is forced.
    bounds_commands: [true, true, false],
    /// A scan goes up to the cap of a batch, whatever is wanted (before patch 6).
    scans_to_cap: [true, true, false],
}

impl Config {
    /// Returns the rules of the version in force.
    #[inline]
    pub(crate) fn version(&self) -> &'static Version {
        match (self.refs_model, self.stable_612) {
            (RefsModel::K612, false) => &K612,
            (RefsModel::K612, true) => &K612_STABLE,
            (RefsModel::K614, _) => &K614,
        }
    }
}
