//! Says how much each mechanism of the LRU is worth: runs of a variant with one of them changed
//! beside runs of the variant itself.

use serde::Serialize;

use super::effect::{self, Effect};
use crate::compare::Table;
use crate::policy;
use crate::record::Record;
use crate::variant::Variant;
use mglru::config::Algorithm;

/// Describes one change of a mechanism, and the setting that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Names the change in tables, such as `1 tier`.
    pub name: &'static str,
    /// Holds the setting that changes a variant, such as `tiers=1`.
    pub off: &'static str,
    /// Says in one line what takes the mechanism's place.
    pub instead: &'static str,
}

const fn change(name: &'static str, off: &'static str, instead: &'static str) -> Mechanism {
    Mechanism { name, off, instead }
}

/// Lists the changes of the multi-gen LRU, from the smallest to the whole.
const OF_GENERATIONS: &[Mechanism] = &[
    change("no refault controller", "refault_controller=false", "no refault is learned from"),
    change("3 tiers", "tiers=3", "the highest two tiers are one"),
    change("2 tiers", "tiers=2", "the highest three tiers are one"),
    change("1 tier", "tiers=1", "all folios of a generation are alike"),
    change("no protection of programs", "exec_protection=false", "programs are as other files"),
    change("no Bloom filters", "bloom_filters=false", "a walk visits sparse tables too"),
    change("no accessed bits of tables", "nonleaf_young=false", "a walk visits unused tables too"),
    change("no page-table walks", "young_source=rmap", "the reverse map alone finds accesses"),
    change("no memcg LRU", "memcg_walk=iter", "root reclaim visits every group in turn"),
    change("2 generations", "generations=2", "one is kept, one is evicted from"),
    change("3 generations", "generations=3", "one is kept"),
    change("8 generations", "generations=8", "four are kept"),
    change("64 generations", "generations=64", "thirty-two are kept"),
    change("two clocks", "one_clock=false", "anon and file are aged each by itself"),
    change("refaults by distance", "workingset=distance", "the classic LRU's measure of refaults"),
    change("active and inactive lists", "lru=classic", "the classic LRU"),
    change("first in, first out", "lru=fifo", "accesses count for nothing"),
];

/// Lists the changes of the classic LRU.
const OF_LISTS: &[Mechanism] = &[
    change("no protection of programs", "exec_protection=false", "programs are as other files"),
    change("page-table walks", "young_source=ptw", "each turn of the lists begins with a walk"),
    change(
        "refaults by turns",
        "workingset=generations",
        "the multi-gen LRU's measure of refaults",
    ),
    change("generations", "lru=mglru", "the multi-gen LRU"),
    change("first in, first out", "lru=fifo", "accesses count for nothing"),
];

/// Lists the changes that the LRU of a variant can undergo.
///
/// # Errors
/// No such variant, or a control without mechanisms.
pub fn of(on: &str) -> Result<&'static [Mechanism], String> {
    let variant = Variant::parse(on).map_err(|e| e.to_string())?;
    let config = policy::config(&toml::Table::new(), &variant).map_err(|e| e.to_string())?;
    match config.lru {
        Algorithm::Mglru => Ok(OF_GENERATIONS),
        Algorithm::Classic => Ok(OF_LISTS),
        _ => Err(format!("`{on}` is a control: it has no mechanisms to change")),
    }
}

/// A figure that is compared.
struct Figure {
    name: &'static str,
    of: fn(&Record) -> Option<f64>,
}

const FIGURES: [Figure; 5] = [
    Figure { name: "KiB read", of: |record| record.metric("pgpgin") },
    Figure { name: "major faults", of: |record| record.metric("pgmajfault") },
    Figure { name: "pages scanned", of: |record| sum(record, ["pgscan_anon", "pgscan_file"]) },
    Figure { name: "reclaim's processor time", of: |r| sum(r, ["reclaim_us", "kswapd_us"]) },
    Figure { name: "operations a second", of: |record| record.metric("ops_per_s") },
];

fn sum(record: &Record, names: [&str; 2]) -> Option<f64> {
    names.iter().map(|name| record.metric(name)).sum()
}

/// Holds the worth of one mechanism at one sweep point.
#[derive(Clone, Debug, Serialize)]
pub struct Worth {
    /// Names the change.
    pub mechanism: &'static str,
    /// Holds the setting that makes it.
    pub off: &'static str,
    /// Says what takes the mechanism's place.
    pub instead: &'static str,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds figures of runs with the change against runs without it, by name; absent where none
    /// has the figure.
    pub figures: Vec<(&'static str, Option<Effect>)>,
}

/// Lists the worths of all mechanisms on one plan, in the shape of the command's JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Mechanisms {
    /// Names the plan.
    pub plan: String,
    /// Names the variant that has the mechanisms.
    pub on: String,
    /// Holds one row per change and sweep point.
    pub rows: Vec<Worth>,
}

/// Names the variants to run: `on`, and `on` with each of the changes.
pub fn variants(on: &str, changes: &[Mechanism]) -> Vec<String> {
    let off = changes.iter().map(|mechanism| name(on, mechanism));
    std::iter::once(on.to_string()).chain(off).collect()
}

fn name(on: &str, mechanism: &Mechanism) -> String {
    format!("{on}+{}", mechanism.off)
}

impl Mechanisms {
    /// Compares the records of [`variants`].
    pub fn new(plan: &str, on: &str, changes: &[Mechanism], records: &[Record]) -> Self {
        let table = Table::new(records);
        let points = table.points();
        let row = |point: &String, mechanism: &Mechanism| worth(&table, on, mechanism, point);
        let rows = points.iter().flat_map(|p| changes.iter().map(move |m| row(p, m)));
        Self { plan: plan.to_string(), on: on.to_string(), rows: rows.collect() }
    }
}

fn worth(table: &Table, on: &str, mechanism: &Mechanism, point: &str) -> Worth {
    let off = name(on, mechanism);
    let figure = |figure: &Figure| {
        let (with, without) = (table.cell(on, point), table.cell(&off, point));
        let value = |record: &&Record| (figure.of)(record).map(|value| (record.seed, value));
        let without: Vec<(u64, f64)> = without.iter().filter_map(value).collect();
        let pair = |(seed, value): (u64, f64)| {
            let other = without.iter().find(|(other, _)| *other == seed);
            other.map(|(_, other)| (value, *other))
        };
        let pairs: Vec<(f64, f64)> = with.iter().filter_map(value).filter_map(pair).collect();
        (figure.name, (!pairs.is_empty()).then(|| effect::unpredicted(&pairs)))
    };
    Worth {
        mechanism: mechanism.name,
        off: mechanism.off,
        instead: mechanism.instead,
        point: point.to_string(),
        figures: FIGURES.iter().map(figure).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn every_mechanism_is_a_setting_that_changes_a_variant() {
        let config = |name: &str| {
            let variant = Variant::parse(name).unwrap();
            policy::config(&toml::Table::new(), &variant).unwrap()
        };
        for on in ["k7.3", "classic", "k6.12"] {
            for name in variants(on, of(on).unwrap()).iter().skip(1) {
                assert_ne!(config(name), config(on), "{name}");
            }
        }
    }

    #[test]
    fn a_control_has_no_mechanisms() {
        assert_eq!(of("fifo").unwrap_err(), "`fifo` is a control: it has no mechanisms to change");
        assert!(of("k7.9").unwrap_err().contains("k7.9"));
        assert_ne!(of("k7.3+lru=classic").unwrap(), of("k7.3").unwrap());
    }

    #[test]
    fn figures_without_a_mechanism_stand_over_those_with_it() {
        let record = |variant: &str, seed: u64, anon: u64| {
            let mut record = example(variant, seed, 1.0);
            record.counters.insert("pgscan_anon".to_string(), anon);
            record.counters.insert("pgscan_file".to_string(), 10);
            record
        };
        let mut records: Vec<Record> = (1..=3).map(|seed| record("k7.3", seed, 0)).collect();
        records.extend((1..=3).map(|seed| record("k7.3+tiers=1", seed, 10)));
        let found = Mechanisms::new("t", "k7.3", OF_GENERATIONS, &records);
        let tiers = found.rows.iter().find(|row| row.off == "tiers=1").unwrap();
        let scanned = tiers.figures.iter().find(|(name, _)| *name == "pages scanned").unwrap();
        assert_eq!(scanned.1.as_ref().and_then(|effect| effect.ratio), Some(2.0));
        let filters = found.rows.iter().find(|row| row.off == "bloom_filters=false").unwrap();
        assert!(filters.figures.iter().all(|(_, effect)| effect.is_none()), "was not run");
    }
}
