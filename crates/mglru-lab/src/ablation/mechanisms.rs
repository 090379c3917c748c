//! Says how much each mechanism of the LRU is worth: runs of a variant without it beside runs of
//! the variant itself.

use serde::Serialize;

use super::effect::{self, Effect};
use crate::compare::Table;
use crate::record::Record;

/// Describes a mechanism, and the setting that goes without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// Names the mechanism in tables.
    pub name: &'static str,
    /// Holds the setting of a variant that goes without it, such as `tiers=1`.
    pub off: &'static str,
    /// Says in one line what takes its place.
    pub instead: &'static str,
}

const fn without(name: &'static str, off: &'static str, instead: &'static str) -> Mechanism {
    Mechanism { name, off, instead }
}

/// Lists all mechanisms, from the smallest to the whole.
pub const MECHANISMS: &[Mechanism] = &[
    without("refault controller", "refault_controller=false", "no refault is learned from"),
    without("tiers", "tiers=1", "all folios of a generation are alike"),
    without("protection of programs", "exec_protection=false", "programs are as other files"),
    without("Bloom filters", "bloom_filters=false", "a walk visits sparse tables too"),
    without("accessed bits of tables", "nonleaf_young=false", "a walk visits unused tables too"),
    without("page-table walks", "young_source=rmap", "accesses are found by the reverse map alone"),
    without("memcg LRU", "memcg_walk=iter", "root reclaim visits every group in turn"),
    without("generations", "lru=classic", "active and inactive lists"),
    without("recency", "lru=fifo", "first in, first out"),
];

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
    /// Names the mechanism.
    pub mechanism: &'static str,
    /// Holds the setting that goes without it.
    pub off: &'static str,
    /// Says what takes its place.
    pub instead: &'static str,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds figures of runs without it against runs with it, by name; absent where none has the
    /// figure.
    pub figures: Vec<(&'static str, Option<Effect>)>,
}

/// Lists the worths of all mechanisms on one plan, in the shape of the command's JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Mechanisms {
    /// Names the plan.
    pub plan: String,
    /// Names the variant that has the mechanisms.
    pub on: String,
    /// Holds one row per mechanism and sweep point.
    pub rows: Vec<Worth>,
}

/// Names the variants to run: `on`, and `on` without each mechanism.
pub fn variants(on: &str) -> Vec<String> {
    let off = MECHANISMS.iter().map(|mechanism| name(on, mechanism));
    std::iter::once(on.to_string()).chain(off).collect()
}

fn name(on: &str, mechanism: &Mechanism) -> String {
    format!("{on}+{}", mechanism.off)
}

impl Mechanisms {
    /// Compares the records of [`variants`].
    pub fn new(plan: &str, on: &str, records: &[Record]) -> Self {
        let table = Table::new(records);
        let points = table.points();
        let row = |point: &String, mechanism: &Mechanism| worth(&table, on, mechanism, point);
        let rows = points.iter().flat_map(|p| MECHANISMS.iter().map(move |m| row(p, m)));
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
    use crate::policy;
    use crate::record::example;
    use crate::variant::Variant;

    #[test]
    fn every_mechanism_is_a_setting_that_changes_a_variant() {
        let config = |name: &str| {
            let variant = Variant::parse(name).unwrap();
            policy::config(&toml::Table::new(), &variant).unwrap()
        };
        for name in variants("k7.3").iter().skip(1) {
            assert_ne!(config(name), config("k7.3"), "{name}");
        }
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
        let found = Mechanisms::new("t", "k7.3", &records);
        let tiers = found.rows.iter().find(|row| row.off == "tiers=1").unwrap();
        let scanned = tiers.figures.iter().find(|(name, _)| *name == "pages scanned").unwrap();
        assert_eq!(scanned.1.as_ref().and_then(|effect| effect.ratio), Some(2.0));
        let filters = found.rows.iter().find(|row| row.off == "bloom_filters=false").unwrap();
        assert!(filters.figures.iter().all(|(_, effect)| effect.is_none()), "was not run");
    }
}
