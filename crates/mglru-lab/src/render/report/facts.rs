//! Shapes what a run found into the rows that the page's charts draw. Units stand in the names.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::curves::{self, Curve};
use crate::compare::Comparison;
use crate::judge::PublishedResult;
use crate::record::Record;
use crate::report::Report;

/// More groups than this are drawn as the first ones.
const MOST_GROUPS: usize = 4096;

/// Counters that stand for a task being made to wait.
pub(super) const STALLS: [&str; 5] = [
    "allocstall",
    "throttle_writeback",
    "throttle_isolated",
    "throttle_noprogress",
    "throttle_congested",
];

/// Holds everything that the page draws.
#[derive(Debug, Serialize)]
pub struct Facts {
    variants: Vec<String>,
    base: String,
    changes: Vec<Json>,
    published: Vec<Json>,
    latency: Vec<Json>,
    reclaim: Vec<Json>,
    stalls: Vec<Json>,
    groups: Vec<Json>,
    curves: Vec<curves::Row>,
    heat: Vec<Json>,
    tiers: Vec<Json>,
    events: Vec<Json>,
    counters: Vec<Json>,
}

impl Facts {
    /// Shapes a report and the curves of its runs.
    pub fn new(report: &Report, curves: &[Curve]) -> Self {
        let mut variants: Vec<String> = Vec::new();
        for record in &report.records {
            if !variants.contains(&record.variant) {
                variants.push(record.variant.clone());
            }
        }
        let base = report.comparisons.first().map(|c| c.base.clone());
        let base = base.or_else(|| variants.first().cloned()).unwrap_or_default();
        Self {
            changes: changes(report),
            published: published(report),
            latency: firsts(report, &variants).flat_map(latency).collect(),
            reclaim: firsts(report, &variants).flat_map(reclaim).collect(),
            stalls: firsts(report, &variants).flat_map(stalls).collect(),
            groups: firsts(report, &variants).flat_map(groups).collect(),
            curves: curves.iter().flat_map(Curve::rows).collect(),
            heat: curves.iter().flat_map(Curve::heat).collect(),
            tiers: curves.iter().flat_map(Curve::tiers).collect(),
            events: curves.iter().flat_map(Curve::events).collect(),
            counters: counters(report, &variants),
            variants,
            base,
        }
    }

    /// Counts the counters.
    pub fn counters(&self) -> usize {
        self.counters.len()
    }

    /// Writes the rows as text that is safe within a script element.
    pub fn script(&self) -> String {
        let text = serde_json::to_string(self).expect("keys are strings");
        text.replace('<', "\\u003c")
    }
}

/// Finds the first record of each variant: single runs are drawn, and the page says so.
pub fn firsts<'a>(
    report: &'a Report,
    variants: &'a [String],
) -> impl Iterator<Item = &'a Record> + 'a {
    variants.iter().filter_map(|name| report.records.iter().find(|r| r.variant == *name))
}

fn changes(report: &Report) -> Vec<Json> {
    let drawn = report.comparisons.iter().filter(|c| c.ratio.is_some());
    let change = |c: &Comparison| {
        let [low, high] = c.ci95.unwrap_or([c.ratio.unwrap_or(1.0); 2]);
        let pairs = c.runs[0].iter().zip(&c.runs[1]);
        let seeds: Vec<f64> = pairs.filter(|(b, _)| **b > 0.0).map(|(b, v)| v / b).collect();
        json!({
            "metric": c.metric, "variant": c.variant, "point": c.point, "ratio": c.ratio,
            "low": low, "high": high, "n": c.n, "seeds": seeds,
        })
    };
    drawn.map(change).collect()
}

fn published(report: &Report) -> Vec<Json> {
    let row = |p: &PublishedResult| {
        let (metric, variant, point) = (&p.metric, &p.variant, &p.point);
        json!({ "metric": metric, "variant": variant, "point": point, "ratio": p.ratio })
    };
    report.published.iter().map(row).collect()
}

fn latency(record: &Record) -> Vec<Json> {
    let Some(l) = &record.metrics.latency_us else { return Vec::new() };
    let all = [("p50", l.p50), ("p90", l.p90), ("p95", l.p95), ("p99", l.p99), ("max", l.max)];
    let row = |(at, us): (&str, f64)| json!({ "variant": record.variant, "at": at, "us": us });
    all.into_iter().map(row).collect()
}

fn reclaim(record: &Record) -> Vec<Json> {
    let value = |name: String| record.counters.get(&name).copied().unwrap_or(0);
    let mut rows = Vec::new();
    for by in ["kswapd", "direct", "proactive"] {
        for what in ["scan", "steal"] {
            let pages = value(format!("pg{what}_{by}"));
            rows.push(json!({
                "variant": record.variant, "by": by, "what": what, "pages": pages,
            }));
        }
    }
    rows.retain(|row| row["pages"] != 0);
    rows
}

fn stalls(record: &Record) -> Vec<Json> {
    let found = STALLS.iter().filter_map(|name| Some((name, *record.counters.get(*name)?)));
    let row = |(name, times)| json!({ "variant": record.variant, "why": name, "times": times });
    found.filter(|(_, times)| *times > 0).map(row).collect()
}

/// Tells what each group without groups below it lost, where there are several.
fn groups(record: &Record) -> Vec<Json> {
    let is_leaf = |name: &str| {
        let below = format!("{}/", name.trim_end_matches('/'));
        !record.groups.keys().any(|other| other != name && other.starts_with(&below))
    };
    let leaves = record.groups.iter().filter(|(name, _)| is_leaf(name));
    let found = leaves.filter_map(|(name, group)| Some((name, group.counter("pgsteal")?)));
    let row = |(group, pages): (&String, u64)| {
        let variant = &record.variant;
        json!({ "variant": variant, "group": group, "pages": pages })
    };
    let rows: Vec<Json> = found.map(row).take(MOST_GROUPS).collect();
    if rows.len() > 1 { rows } else { Vec::new() }
}

/// Lists every counter with its mean over the seeds of each variant.
fn counters(report: &Report, variants: &[String]) -> Vec<Json> {
    let mut names: Vec<&String> = Vec::new();
    for name in report.records.iter().flat_map(|record| record.counters.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mean = |name: &str, variant: &String| {
        let of = report.records.iter().filter(|record| record.variant == *variant);
        let all: Vec<u64> = of.filter_map(|record| record.counters.get(name).copied()).collect();
        let sum = all.iter().map(|x| *x as f64).sum::<f64>();
        (!all.is_empty()).then(|| sum / all.len() as f64)
    };
    let row = |name: &String| {
        let values: Vec<Option<f64>> = variants.iter().map(|v| mean(name, v)).collect();
        json!({ "name": name, "values": values })
    };
    names.into_iter().map(row).collect()
}
