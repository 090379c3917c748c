//! Every tunable and every patch switch, with one default: the rules after the 2026 series (K72).
//!
//! `before` (K614) and `after` (K72) are named sets of the same keys (spec §0, §10).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::contig::Contig;

/// Which LRU algorithm runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Multi-generational LRU.
    Mglru,
    /// Active and inactive lists.
    Classic,
    /// Control: in the order they came, whatever is accessed.
    Fifo,
    /// Control: any folio, whatever is accessed.
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

/// How root reclaim chooses memcgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemcgWalk {
    /// The memcg LRU (MGLRU only).
    MemcgLru,
    /// The hierarchy iterator, as for the reclaim of a group.
    Iter,
}

/// Where aging learns of accesses through page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum YoungSource {
    /// Page-table walks and look-around.
    Ptw,
    /// Look-around of the reverse map only.
    Rmap,
}

/// A value of a key could not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// There is no such key.
    UnknownKey(String),
    /// There is no such variant.
    UnknownVariant(String),
    /// The key does not take this value.
    BadValue {
        /// The key.
        key: String,
        /// What was given.
        got: String,
        /// What it takes.
        takes: &'static str,
    },
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UnknownKey(key) => write!(f, "unknown reclaim key `{key}`"),
            Self::UnknownVariant(name) => {
                write!(f, "unknown variant `{name}` (known: {})", variant_names())
            }
            Self::BadValue { key, got, takes } => {
                write!(f, "`{key} = {got}`: takes {takes}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

fn variant_names() -> String {
    VARIANTS.iter().map(|v| v.name).collect::<Vec<_>>().join(", ")
}

macro_rules! patches {
    ($($(#[$doc:meta])* $field:ident = $says:literal),* $(,)?) => {
        /// One switch per patch (v5 numbering; `p06p` and `prefault` joined later; spec §10.3).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Patches {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Patches {
            /// Name of each switch and what the patch says.
            pub const NAMES: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), $says)),*];

            /// All on.
            pub const ALL: Self = Self { $($field: true),* };
            /// All off.
            pub const NONE: Self = Self { $($field: false),* };

            /// State of each switch, in the order of [`Self::NAMES`].
            pub fn states(&self) -> Vec<(&'static str, bool)> {
                [$((stringify!($field), self.$field)),*].to_vec()
            }

            fn switch(&mut self, name: &str) -> Option<&mut bool> {
                match name { $(stringify!($field) => Some(&mut self.$field),)* _ => None }
            }
        }
    };
}

patches! {
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
    /// All of them.
    pub const ALL: Self = Self { ages_at_first: true, whole_budget: true, endless_budget: true };
    /// None of them.
    pub const NONE: Self =
        Self { ages_at_first: false, whole_budget: false, endless_budget: false };
}

/// The batching series of 2023 (spec §11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bulk {
    /// Sizes of generations are written once per lock hold.
    pub counters: bool,
    /// Folios on their way to the next generation move in runs, which keep their order.
    pub moves: bool,
    /// Folios about to be moved by aging are loaded ahead.
    pub prefetch: bool,
}

/// The rules in force.
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

/// A named set of rules.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it stands for.
    pub says: &'static str,
    make: fn() -> Config,
}

/// All named variants.
pub const VARIANTS: &[Variant] = &[
    Variant { name: "classic", says: "active/inactive lists (MGLRU off)", make: classic },
    Variant { name: "before", says: "MGLRU before the 2026 series (6.14 to 7.1)", make: before },
    Variant { name: "v2", says: "version 2 of the 2026 series", make: v2 },
    Variant { name: "v4", says: "version 4 of the 2026 series", make: v4 },
    Variant { name: "v5", says: "version 5 of the 2026 series", make: v5 },
    Variant {
        name: "after",
        says: "the 2026 series as merged for 7.2 (v7)",
        make: Config::default,
    },
    Variant { name: "fifo", says: "control: first in, first out", make: fifo },
    Variant { name: "random", says: "control: random replacement", make: random },
    Variant {
        name: "L0",
        says: "2.6.32: lumpy reclaim, no compaction",
        make: || lumpy(Contig::L0),
    },
    Variant { name: "L1", says: "3.2: lumpy reclaim and compaction", make: || lumpy(Contig::L1) },
    Variant {
        name: "L2",
        says: "3.3-git: order-0 reclaim for compaction",
        make: || lumpy(Contig::L2),
    },
    Variant { name: "L3", says: "L2 with lumpy reclaim removed", make: || lumpy(Contig::L3) },
    Variant {
        name: "misport",
        says: "a faulty backport of version 5 to a phone's 6.12",
        make: misport,
    },
    Variant { name: "misport-4", says: "v5 with its defect 4: ages too early", make: misport_4 },
    Variant { name: "misport-6", says: "v5 with its defect 6: a whole budget", make: misport_6 },
    Variant { name: "misport-7", says: "v5 with its defect 7: an endless budget", make: misport_7 },
    Variant {
        name: "k6.12",
        says: "Debian's 6.12.117: mainline 6.12 and stable backports",
        make: k612,
    },
];

fn classic() -> Config {
    Config { lru: Algorithm::Classic, ..Config::default() }
}

/// Kernels of 2009 to 2012: active and inactive lists, kswapd may write dirty file pages.
fn lumpy(contig: Contig) -> Config {
    Config { lru: Algorithm::Classic, contig, node_dirty_flag: true, ..Config::default() }
}

fn fifo() -> Config {
    Config { lru: Algorithm::Fifo, ..Config::default() }
}

fn random() -> Config {
    Config { lru: Algorithm::Random, ..Config::default() }
}

fn before() -> Config {
    Config { patches: Patches::NONE, floor: Floor::None, ..Config::default() }
}

fn v2() -> Config {
    let patches = Patches { p06p: false, p08: false, prefault: false, ..Patches::ALL };
    Config { patches, floor: Floor::V2, ..Config::default() }
}

fn v4() -> Config {
    let patches = Patches { p06p: false, prefault: false, ..Patches::ALL };
    Config { patches, floor: Floor::V4, ..Config::default() }
}

fn v5() -> Config {
    Config { floor: Floor::V5, ..v4() }
}

/// Its base kernel also lacks proportional protection and keeps the node's dirty flag.
fn misport() -> Config {
    let (proportional_protection, node_dirty_flag) = (false, true);
    Config { misport: Misport::ALL, proportional_protection, node_dirty_flag, ..v5() }
}

fn misport_4() -> Config {
    Config { misport: Misport { ages_at_first: true, ..Misport::NONE }, ..v5() }
}

fn misport_6() -> Config {
    Config { misport: Misport { whole_budget: true, ..Misport::NONE }, ..v5() }
}

fn misport_7() -> Config {
    Config { misport: Misport { endless_budget: true, ..Misport::NONE }, ..v5() }
}

fn k612() -> Config {
    Config {
        refs_model: RefsModel::K612,
        aging_rule: AgingRule::K612,
        patches: Patches { p09: true, ..Patches::NONE },
        floor: Floor::None,
        proportional_protection: false,
        node_dirty_flag: true,
        stable_612: true,
        ..Config::default()
    }
}

macro_rules! choices {
    ($value:expr, $key:expr, $takes:literal, { $($word:literal => $to:expr),* $(,)? }) => {
        match $value { $($word => $to,)* _ => return Err(bad($key, $value, $takes)) }
    };
}

impl Config {
    /// The variant of this name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownVariant`].
    pub fn variant(name: &str) -> Result<Self, ConfigError> {
        let found = VARIANTS.iter().find(|v| v.name == name);
        found.map(|v| (v.make)()).ok_or_else(|| ConfigError::UnknownVariant(name.to_string()))
    }

    /// Name and meaning of every key that [`Self::set`] takes, switches aside.
    pub const KEYS: &'static [(&'static str, &'static str)] = &[
        ("lru", "mglru | classic | fifo | random"),
        ("refs_model", "k612 | k614"),
        ("aging_rule", "k612 | k614"),
        ("contig", "l0 | l1 | l2 | l3 | k6.12"),
        ("floor", "none | v2 | v4 | v5 | v7"),
        ("memcg_walk", "memcg_lru | iter"),
        ("partial_walks", "true | false"),
        ("reclaim_in_quarters", "true | false"),
        ("young_source", "ptw | rmap"),
        ("nonleaf_young", "true | false"),
        ("proportional_protection", "true | false"),
        ("node_dirty_flag", "true | false"),
        ("stable_612", "true | false"),
        ("throttle_skips_clean_node", "true | false"),
        ("sane_throttling", "true | false"),
        ("misport_4", "true | false"),
        ("misport_6", "true | false"),
        ("misport_7", "true | false"),
        ("bulk_counters", "true | false"),
        ("bulk_moves", "true | false"),
        ("bulk_prefetch", "true | false"),
        ("min_ttl_ms", "0 to 3600000"),
    ];

    /// Sets one key, or one patch switch (`p01` … `p14`, `p06p`, `prefault`).
    ///
    /// # Errors
    /// Unknown key, or a value the key does not take.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        if let Some(switch) = self.patches.switch(key) {
            *switch = truth(key, value)?;
            return Ok(());
        }
        match key {
            "nonleaf_young" => self.nonleaf_young = truth(key, value)?,
            "proportional_protection" => self.proportional_protection = truth(key, value)?,
            "partial_walks" => self.partial_walks = truth(key, value)?,
            "reclaim_in_quarters" => self.reclaim_in_quarters = truth(key, value)?,
            "node_dirty_flag" => self.node_dirty_flag = truth(key, value)?,
            "stable_612" => self.stable_612 = truth(key, value)?,
            "throttle_skips_clean_node" => self.throttle_skips_clean_node = truth(key, value)?,
            "sane_throttling" => self.sane_throttling = truth(key, value)?,
            "misport_4" => self.misport.ages_at_first = truth(key, value)?,
            "misport_6" => self.misport.whole_budget = truth(key, value)?,
            "misport_7" => self.misport.endless_budget = truth(key, value)?,
            "bulk_counters" => self.bulk.counters = truth(key, value)?,
            "bulk_moves" => self.bulk.moves = truth(key, value)?,
            "bulk_prefetch" => self.bulk.prefetch = truth(key, value)?,
            "min_ttl_ms" => self.min_ttl_ms = milliseconds(key, value)?,
            _ => self.set_choice(key, value)?,
        }
        Ok(())
    }

    fn set_choice(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        match key {
            "lru" => {
                self.lru = choices!(value, key, "mglru, classic, fifo or random", {
                    "mglru" => Algorithm::Mglru, "classic" => Algorithm::Classic,
                    "fifo" => Algorithm::Fifo, "random" => Algorithm::Random,
                });
            }
            "refs_model" => {
                self.refs_model = choices!(value, key, "k612 or k614", {
                    "k612" => RefsModel::K612, "k614" => RefsModel::K614,
                });
            }
            "aging_rule" => {
                self.aging_rule = choices!(value, key, "k612 or k614", {
                    "k612" => AgingRule::K612, "k614" => AgingRule::K614,
                });
            }
            "contig" => {
                self.contig = choices!(value, key, "l0, l1, l2, l3 or k6.12", {
                    "l0" => Contig::L0, "l1" => Contig::L1, "l2" => Contig::L2,
                    "l3" => Contig::L3, "k6.12" => Contig::K612,
                });
            }
            "floor" => {
                self.floor = choices!(value, key, "none, v2, v4, v5 or v7", {
                    "none" => Floor::None, "v2" => Floor::V2, "v4" => Floor::V4,
                    "v5" => Floor::V5, "v7" => Floor::V7,
                });
            }
            "memcg_walk" => {
                self.memcg_walk = choices!(value, key, "memcg_lru or iter", {
                    "memcg_lru" => MemcgWalk::MemcgLru, "iter" => MemcgWalk::Iter,
                });
            }
            "young_source" => {
                self.young_source = choices!(value, key, "ptw or rmap", {
                    "ptw" => YoungSource::Ptw, "rmap" => YoungSource::Rmap,
                });
            }
            _ => return Err(ConfigError::UnknownKey(key.to_string())),
        }
        Ok(())
    }

    /// Does MGLRU run?
    #[inline]
    pub fn is_mglru(&self) -> bool {
        self.lru == Algorithm::Mglru
    }

    /// Is it one of the controls that ignore accesses?
    #[inline]
    pub fn ignores_accesses(&self) -> bool {
        matches!(self.lru, Algorithm::Fifo | Algorithm::Random)
    }

    /// Does root reclaim find its memcgs by the memcg LRU?
    #[inline]
    pub fn uses_memcg_lru(&self) -> bool {
        self.is_mglru() && self.memcg_walk == MemcgWalk::MemcgLru
    }

    /// Is the 6.12 reference encoding in force?
    #[inline]
    pub fn is_k612(&self) -> bool {
        self.refs_model == RefsModel::K612
    }
}

fn bad(key: &str, got: &str, takes: &'static str) -> ConfigError {
    ConfigError::BadValue { key: key.to_string(), got: got.to_string(), takes }
}

fn truth(key: &str, value: &str) -> Result<bool, ConfigError> {
    match value {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(bad(key, value, "true or false")),
    }
}

fn milliseconds(key: &str, value: &str) -> Result<u64, ConfigError> {
    let parsed = value.parse().ok().filter(|ms| *ms <= 3_600_000);
    parsed.ok_or_else(|| bad(key, value, "0 to 3600000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_and_key_is_known() {
        for variant in VARIANTS {
            assert!(Config::variant(variant.name).is_ok(), "{}", variant.name);
        }
        for (key, takes) in Config::KEYS {
            let word = takes.split([' ', '|']).next().unwrap();
            assert_eq!(Config::default().set(key, word), Ok(()), "{key} = {word}");
            assert!(Config::default().set(key, "nonsense").is_err(), "{key}");
        }
        for (name, _) in Patches::NAMES {
            let mut config = Config::default();
            assert_eq!(config.set(name, "false"), Ok(()));
            assert_eq!(config.patches.states().iter().filter(|(_, on)| !on).count(), 1);
        }
    }

    #[test]
    fn errors_name_the_key_and_the_range() {
        let error = Config::default().set("floor", "v3").unwrap_err();
        assert_eq!(error.to_string(), "`floor = v3`: takes none, v2, v4, v5 or v7");
        let error = Config::default().set("flor", "v3").unwrap_err();
        assert_eq!(error.to_string(), "unknown reclaim key `flor`");
        let error = Config::default().set("min_ttl_ms", "-1").unwrap_err();
        assert_eq!(error.to_string(), "`min_ttl_ms = -1`: takes 0 to 3600000");
    }

    #[test]
    fn before_and_after_differ_in_the_series_only() {
        let mut config = Config::variant("before").unwrap();
        config.patches = Patches::ALL;
        config.floor = Floor::V7;
        assert_eq!(config, Config::variant("after").unwrap());
    }
}
