//! Compares records: each metric of each variant against the base, paired by seed
//! and sweep point. Pure: records in, comparisons out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::judge::{self, Verdict};
use crate::plan::Plan;
use crate::record::Record;
use crate::stats::{self, DIRECTION, EQUIVALENCE, Independent, Paired};

/// Compares one metric of one variant with the base at one sweep point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Names the metric.
    pub metric: String,
    /// Names the variant compared with.
    pub base: String,
    /// Names the variant under test.
    pub variant: String,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds the mean of the base over the paired seeds.
    pub base_mean: f64,
    /// Holds the mean of the variant over the paired seeds.
    pub mean: f64,
    /// Holds the geometric mean of variant/base; null when a value is not positive.
    pub ratio: Option<f64>,
    /// Holds the 95 % interval of the ratio; null for one pair.
    pub ci95: Option<[f64; 2]>,
    /// Counts the pairs.
    pub n: usize,
    /// Holds the verdict of the plan's expectation, or `neutral` by equivalence test, or
    /// `not-judged`.
    pub verdict: Verdict,
    /// Holds the 90 % interval, for equivalence tests.
    #[serde(skip)]
    pub ci90: Option<[f64; 2]>,
    /// Holds the figure of each run of the base and of the variant.
    #[serde(skip)]
    pub runs: [Vec<f64>; 2],
}

impl Comparison {
    /// Compares a metric of two sets of records; `None` when no pair has it on both sides.
    pub fn new(metric: &str, base: &[&Record], variant: &[&Record]) -> Option<Self> {
        let pairs = pairs(metric, base, variant);
        if pairs.is_empty() {
            return None;
        }
        let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let paired = Paired::new(&pairs);
        let names = [&base[0].variant, &variant[0].variant].map(String::as_str);
        let ratio = paired.as_ref().map(Paired::ratio);
        let interval = |confidence| paired.as_ref().and_then(|p| p.interval(confidence));
        let found = Self::of(metric, names, [before, after], ratio, interval);
        Some(Self { point: base[0].point().to_string(), ..found })
    }

    /// Compares runs that are no pairs: captures of machines, whatever their number on each side.
    pub fn unpaired(metric: &str, names: [&str; 2], runs: [Vec<f64>; 2]) -> Self {
        let sides = Independent::new(&runs[0], &runs[1]);
        let ratio = sides.as_ref().map(Independent::ratio);
        let interval = |confidence| sides.as_ref().and_then(|s| s.interval(confidence));
        Self::of(metric, names, runs, ratio, interval)
    }

    fn of(
        metric: &str,
        names: [&str; 2],
        runs: [Vec<f64>; 2],
        ratio: Option<f64>,
        interval: impl Fn(f64) -> Option<[f64; 2]>,
    ) -> Self {
        Self {
            metric: metric.to_string(),
            base: names[0].to_string(),
            variant: names[1].to_string(),
            point: String::new(),
            base_mean: stats::mean(&runs[0]),
            mean: stats::mean(&runs[1]),
            ratio,
            ci95: interval(DIRECTION),
            n: runs[0].len().min(runs[1].len()),
            verdict: Verdict::NotJudged,
            ci90: interval(EQUIVALENCE),
            runs,
        }
    }
}

/// Holds records of an experiment by variant and sweep point, in the order they were run.
pub struct Table<'a> {
    points: Vec<String>,
    variants: Vec<String>,
    cells: BTreeMap<(String, String), Vec<&'a Record>>,
}

impl<'a> Table<'a> {
    /// Sorts records into cells.
    pub fn new(records: &'a [Record]) -> Self {
        let mut table = Self { points: Vec::new(), variants: Vec::new(), cells: BTreeMap::new() };
        for record in records {
            let (variant, _, point) = record.key();
            let (variant, point) = (variant.to_string(), point.to_string());
            remember(&mut table.variants, &variant);
            remember(&mut table.points, &point);
            table.cells.entry((variant, point)).or_default().push(record);
        }
        table
    }

    /// Returns the sweep points; one empty name without a sweep.
    pub fn points(&self) -> &[String] {
        &self.points
    }

    /// Lists variants that have records.
    pub fn variants(&self) -> &[String] {
        &self.variants
    }

    /// Returns the records of a variant at a point.
    pub fn cell(&self, variant: &str, point: &str) -> &[&'a Record] {
        let key = (variant.to_string(), point.to_string());
        self.cells.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Compares a metric of `variant` with `base` at a point, where both have it.
    pub fn compare(
        &self,
        metric: &str,
        base: &str,
        variant: &str,
        point: &str,
    ) -> Option<Comparison> {
        let (base, variant) = (self.cell(base, point), self.cell(variant, point));
        Comparison::new(metric, base, variant)
    }
}

/// Compares every metric of the plan, for every variant but the base, and adds verdicts.
pub fn all(plan: &Plan, table: &Table) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for point in table.points() {
        for metric in &plan.metrics {
            for variant in table.variants().iter().filter(|v| **v != plan.base) {
                let found = table.compare(metric, &plan.base, variant, point);
                comparisons.extend(found.map(|c| judge::comparison(plan, c)));
            }
        }
    }
    comparisons
}

/// Lists the metrics any record has, when no plan names some: rates first, then counters.
pub fn every_metric(records: &[Record]) -> Vec<String> {
    let mut names: Vec<String> =
        ["ops_per_s", "latency_us.mean", "latency_us.p99", "virtual_s"].map(String::from).to_vec();
    for record in records {
        record.counters.keys().for_each(|name| remember(&mut names, name));
    }
    names
}

fn remember(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|have| have == name) {
        names.push(name.to_string());
    }
}

/// Pairs a metric of both sides by seed and sweep point.
pub fn pairs(metric: &str, base: &[&Record], variant: &[&Record]) -> Vec<(f64, f64)> {
    let partner = |a: &&Record| {
        let b = variant.iter().find(|b| b.seed == a.seed && b.point() == a.point())?;
        Some((a.metric(metric)?, b.metric(metric)?))
    };
    base.iter().filter_map(partner).collect()
}

/// Compares each variant with its namesake in other records; two lone variants with each other.
pub fn namesakes(a: &[Record], b: &[Record], metrics: &[String]) -> Vec<Comparison> {
    let (left, right) = (Table::new(a), Table::new(b));
    let lone = left.variants().len() == 1 && right.variants().len() == 1;
    let mut found = Vec::new();
    for point in left.points() {
        for base in left.variants() {
            let variant = if lone { &right.variants()[0] } else { base };
            let cells = (left.cell(base, point), right.cell(variant, point));
            if cells.0.is_empty() || cells.1.is_empty() {
                continue;
            }
            found.extend(metrics.iter().filter_map(|m| Comparison::new(m, cells.0, cells.1)));
        }
    }
    for c in &mut found {
        c.verdict = judge::unexpected(c);
        c.base = format!("A {}", c.base);
        c.variant = format!("B {}", c.variant);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn pairs_by_seed_whatever_the_order() {
        let records = [
            example("before", 1, 10.0),
            example("before", 2, 20.0),
            example("before", 3, 30.0),
            example("after", 2, 40.0),
            example("after", 1, 20.0),
        ];
        let table = Table::new(&records);
        let c = table.compare("ops_per_s", "before", "after", "").unwrap();
        assert_eq!((c.n, c.base_mean, c.mean), (2, 15.0, 30.0));
        assert!((c.ratio.unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_metric_one_side_lacks_is_not_compared() {
        let records = [example("before", 1, 10.0), example("after", 1, 10.0)];
        assert!(Table::new(&records).compare("pswpin", "before", "after", "").is_none());
    }

    #[test]
    fn zero_has_means_but_no_ratio() {
        let records = [example("before", 1, 10.0), example("after", 1, 10.0)];
        let c = Table::new(&records).compare("zero", "before", "after", "").unwrap();
        assert_eq!((c.base_mean, c.ratio, c.ci95, c.n), (0.0, None, None, 1));
    }

    fn sides(a: &[Record], b: &[Record]) -> Vec<String> {
        let found = namesakes(a, b, &["ops_per_s".to_string()]);
        found.into_iter().map(|c| format!("{} {}", c.base, c.variant)).collect()
    }

    #[test]
    fn namesakes_are_compared_and_lone_variants_with_each_other() {
        let before = example("before", 1, 1.0);
        let after = example("after", 1, 1.0);
        let both = [before.clone(), after.clone()];
        assert_eq!(sides(&both, &both), ["A before B before", "A after B after"]);
        assert_eq!(sides(&[before], &[after]), ["A before B after"]);
    }
}
