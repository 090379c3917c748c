//! Keys and switches by their names, as plans and command lines give them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::*;
use crate::types::GENERATIONS;

/// Says why a value of a key could not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Says that no such key exists.
    UnknownKey(String),
    /// Says that no such variant exists.
    UnknownVariant(String),
    /// Says that the key does not take this value.
    BadValue {
        /// The key.
        key: String,
        /// The value that was given.
        got: String,
        /// The values that the key takes.
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

macro_rules! choices {
    ($value:expr, $key:expr, $takes:literal, { $($word:literal => $to:expr),* $(,)? }) => {
        match $value { $($word => $to,)* _ => return Err(bad($key, $value, $takes)) }
    };
}

impl Config {
    /// Lists the name and meaning of every key that [`Self::set`] takes, switches aside.
    pub const KEYS: &'static [(&'static str, &'static str)] = &[
        ("lru", "mglru | classic | fifo | random"),
        ("refs_model", "k612 | k614"),
        ("aging_rule", "k612 | k614"),
        ("contig", "l0 | l1 | l2 | l3 | k6.12"),
        ("tiers", "4 | 1 | 2 | 3"),
        ("floor", "none | v2 | v4 | v5 | v7"),
        ("memcg_walk", "memcg_lru | iter"),
        ("partial_walks", "true | false"),
        ("reclaim_in_quarters", "true | false"),
        ("generations", "4 | 2 to 64"),
        ("workingset", "own | distance | generations"),
        ("young_source", "own | ptw | rmap"),
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

    /// Sets one key, one patch switch (`p01` … `p14`, `p06p`, `prefault`), rule of a release or
    /// mechanism.
    ///
    /// # Errors
    /// Unknown key, or a value the key does not take.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        if let Some(switch) = self.switch(key) {
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
            "min_ttl_ms" => self.min_ttl_ms = number(key, value, 0..=3_600_000, "0 to 3600000")?,
            _ => self.set_choice(key, value)?,
        }
        Ok(())
    }

    fn switch(&mut self, key: &str) -> Option<&mut bool> {
        let of_patches = self.patches.switch(key);
        of_patches.or_else(|| self.releases.switch(key)).or_else(|| self.mechanisms.switch(key))
    }

    /// Lists the name and meaning of every switch: patches, rules of releases, mechanisms.
    pub fn switches() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        Patches::NAMES.iter().chain(Releases::NAMES).chain(Mechanisms::NAMES)
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
            "tiers" => {
                self.tiers = choices!(value, key, "1, 2, 3 or 4", {
                    "1" => 1, "2" => 2, "3" => 3, "4" => 4,
                });
            }
            "generations" => self.generations = number(key, value, GENERATIONS, "2 to 64")?,
            "workingset" => {
                self.workingset = choices!(value, key, "own, distance or generations", {
                    "own" => Workingset::Own, "distance" => Workingset::Distance,
                    "generations" => Workingset::Generations,
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
                self.young_source = choices!(value, key, "own, ptw or rmap", {
                    "own" => YoungSource::Own, "ptw" => YoungSource::Ptw,
                    "rmap" => YoungSource::Rmap,
                });
            }
            _ => return Err(ConfigError::UnknownKey(key.to_string())),
        }
        Ok(())
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

fn number<T: core::str::FromStr + PartialOrd>(
    key: &str,
    value: &str,
    range: RangeInclusive<T>,
    takes: &'static str,
) -> Result<T, ConfigError> {
    let parsed = value.parse().ok().filter(|n| range.contains(n));
    parsed.ok_or_else(|| bad(key, value, takes))
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
        for (name, _) in Releases::NAMES {
            let mut config = Config::default();
            assert_eq!(config.set(name, "true"), Ok(()));
            assert_eq!(config.releases.states().iter().filter(|(_, on)| *on).count(), 1);
        }
    }

    #[test]
    fn every_variant_has_every_mechanism() {
        for variant in VARIANTS {
            let config = Config::variant(variant.name).unwrap();
            assert_eq!((config.mechanisms, config.tiers), (Mechanisms::ALL, 4), "{}", variant.name);
        }
        for (name, _) in Mechanisms::NAMES {
            let mut config = Config::default();
            assert_eq!(config.set(name, "false"), Ok(()));
            assert_eq!(config.mechanisms.states().iter().filter(|(_, on)| !on).count(), 1);
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
        assert_eq!(config.releases, Releases::NONE);
    }

    #[test]
    fn releases_differ_from_the_series_in_named_switches_only() {
        for (release, series) in [("k7.1", "before"), ("k7.2", "after"), ("k7.3", "after")] {
            let config = Config::variant(release).unwrap();
            assert_ne!(config.releases, Releases::NONE, "{release}");
            let alone = Config { releases: Releases::NONE, ..config };
            assert_eq!(alone, Config::variant(series).unwrap(), "{release}");
        }
    }
}
