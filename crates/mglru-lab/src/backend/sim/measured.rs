//! Chooses the measured part of a run. A workload that marks a phase `run` is measured from there
//! to the next phase that is not part of it (`run.…`), so that ramp-up and later phases stay out;
//! any other workload is measured as a whole.

use hdrhistogram::Histogram;
use indexmap::IndexMap;
use mglru_sim::Outcome as Found;
use mglru_sim::outcome::{Figures, GroupOutcome, Phase};
use mglru_sim::spec::PAGE_SIZE;
use serde_json::{Value as Json, json};

use crate::backend::Outcome;
use crate::record::{Group, Latency, Metrics};
use crate::stats;

/// Names the phase that is measured.
pub const RUN: &str = "run";

/// Classes of operations that prepare and are not the application's own.
const PREPARING: [&str; 2] = ["ramp", "setup"];

/// Does a class prepare? Among several workloads its name stands behind the workload's.
pub fn is_preparing(class: &str) -> bool {
    PREPARING.contains(&class.rsplit_once('.').map_or(class, |(_, own)| own))
}

/// Counters that are levels, not sums: their value at the end counts.
const LEVELS: [&str; 4] = ["nr_free_pages", "nr_dirty", "nr_writeback", "zram_pool_pages"];

const NS_PER_US: f64 = 1e3;
const NS_PER_S: f64 = 1e9;

/// Returns the outcome of a run, which becomes part of its record.
pub fn outcome(found: &Found, edges: &[u64]) -> Result<Outcome, String> {
    let first = found.phases.iter().position(|phase| phase.name == RUN);
    let start = first.map(|at| &found.phases[at]);
    let after = found.phases.iter().skip(first.map_or(usize::MAX, |at| at + 1));
    let of_it = |phase: &&Phase| start.is_some_and(|start| start.sequence == phase.sequence);
    let end = after.into_iter().filter(of_it).find(|phase| !phase.name.starts_with("run."));
    let counters = counters(found, start, end);
    Ok(Outcome {
        metrics: metrics(found, start, end)?,
        counters,
        groups: groups(found, end),
        custom: shares(found, edges)?
            .chain(class_means(found))
            .chain(custom(found, end))
            .chain(phases(found))
            .collect(),
    })
}

/// The same for what knows no time: no rate, no latency.
pub(super) fn timeless(found: &Found) -> Result<Outcome, String> {
    let mut outcome = outcome(found, &[])?;
    outcome.metrics =
        Metrics { ops: outcome.metrics.ops, ops_per_s: 0.0, latency_us: None, virtual_s: 0.0 };
    outcome.groups.clear();
    Ok(outcome)
}

/// Pages read as misses: right where nothing is read ahead.
pub(super) fn add_misses(outcome: &mut Outcome) {
    let read_kib = outcome.counters.get("pgpgin").copied().unwrap_or(0);
    let misses = read_kib * 1024 / PAGE_SIZE;
    let ratio = misses as f64 / outcome.metrics.ops.max(1) as f64;
    outcome.custom.insert("misses".to_string(), Json::from(misses));
    outcome.custom.insert("miss_ratio".to_string(), Json::from(ratio));
}

fn metrics(found: &Found, start: Option<&Phase>, end: Option<&Phase>) -> Result<Metrics, String> {
    let latency = merged(found)?;
    let before = start.map_or(0, |phase| phase.ops);
    let ended = end.map_or(found.ops, |phase| phase.ops) - before;
    // Near a mark some tasks still end their preparations: those are in no class that counts.
    let ops = ended.min(latency.len());
    let until = end.map_or(found.virtual_ns, |phase| phase.at);
    let virtual_ns = until - start.map_or(0, |phase| phase.at);
    let rate = ops as f64 * NS_PER_S / virtual_ns.max(1) as f64;
    Ok(Metrics {
        ops,
        ops_per_s: rate,
        latency_us: (!latency.is_empty()).then(|| quantiles(&latency)),
        virtual_s: virtual_ns as f64 / NS_PER_S,
    })
}

/// Latencies of all classes but the preparing ones. Histograms know no phases: a workload whose
/// ramp-up or warm phase must not count gives it a class of its own.
fn merged(found: &Found) -> Result<Histogram<u64>, String> {
    let mut all = Histogram::new(3).map_err(|e| e.to_string())?;
    for (class, histogram) in &found.latency {
        if !is_preparing(class) {
            all.add(histogram).map_err(|e| e.to_string())?;
        }
    }
    Ok(all)
}

/// Mean latency of each class, where there are several that count.
fn class_means(found: &Found) -> impl Iterator<Item = (String, Json)> + use<'_> {
    let counted = |(class, histogram): &&(String, Histogram<u64>)| {
        !is_preparing(class) && !histogram.is_empty()
    };
    let several = found.latency.iter().filter(counted).count() > 1;
    let classes = found.latency.iter().filter(counted).filter(move |_| several);
    classes.map(|(class, histogram)| {
        (format!("mean_us.{class}"), Json::from(histogram.mean() / NS_PER_US))
    })
}

/// Share of the operations in each latency class, `latency_share_0` the fastest.
fn shares(
    found: &Found,
    edges: &[u64],
) -> Result<impl Iterator<Item = (String, Json)> + use<>, String> {
    let latency = merged(found)?;
    let total = latency.len().max(1) as f64;
    let below = edges.iter().map(|edge| latency.count_between(0, edge - 1) as f64 / total);
    let below: Vec<f64> = std::iter::once(0.0).chain(below).collect();
    let shares: Vec<f64> = below.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let named = |(n, share)| (format!("latency_share_{n}"), Json::from(share));
    Ok(shares.into_iter().enumerate().map(named))
}

/// Returns mean and quantiles, in microseconds, of a histogram of nanoseconds.
pub fn quantiles(histogram: &Histogram<u64>) -> Latency {
    let us = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / NS_PER_US;
    Latency {
        mean: histogram.mean() / NS_PER_US,
        p50: us(0.50),
        p90: us(0.90),
        p95: us(0.95),
        p99: us(0.99),
        max: histogram.max() as f64 / NS_PER_US,
    }
}

fn counters(found: &Found, start: Option<&Phase>, end: Option<&Phase>) -> IndexMap<String, u64> {
    let last = end.map_or(&found.counters, |phase| &phase.snapshot.counters);
    let first = start.map(|phase| &phase.snapshot.counters);
    since(first, last)
}

fn since(first: Option<&Figures>, last: &Figures) -> IndexMap<String, u64> {
    let before = |name: &str| match LEVELS.contains(&name) {
        true => 0,
        false => first.and_then(|counters| value(counters, name)).unwrap_or(0),
    };
    last.iter().map(|(name, total)| (name.to_string(), total - before(name))).collect()
}

fn value(figures: &Figures, name: &str) -> Option<u64> {
    figures.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn groups(found: &Found, end: Option<&Phase>) -> IndexMap<String, Group> {
    let groups = end.map_or(&found.groups, |phase| &phase.snapshot.groups);
    let stat = |figures: &Figures| {
        figures.iter().map(|(name, value)| (name.to_string(), *value)).collect()
    };
    let group = |g: &GroupOutcome| Group { memory_stat: stat(&g.stat) };
    groups.iter().map(|g| (g.name.clone(), group(g))).collect()
}

/// Counters of each phase, as a booted kernel's record has them; none where there are no phases. A
/// phase ends where the next of its sequence begins.
fn phases(found: &Found) -> Option<(String, Json)> {
    let phase = |(at, phase): (usize, &Phase)| {
        let after = found.phases.iter().skip(at + 1);
        let end = after.into_iter().find(|next| next.sequence == phase.sequence);
        let (until, ops) = end.map_or((found.virtual_ns, found.ops), |end| (end.at, end.ops));
        let accesses = end.map_or(found.accesses, |end| end.accesses);
        let last = end.map_or(&found.counters, |end| &end.snapshot.counters);
        json!({
            "name": phase.name,
            "seconds": (until - phase.at) as f64 / NS_PER_S,
            "ops": ops - phase.ops,
            "accesses": accesses - phase.accesses,
            "counters": since(Some(&phase.snapshot.counters), last),
        })
    };
    let phases: Vec<Json> = found.phases.iter().enumerate().map(phase).collect();
    (!phases.is_empty()).then(|| ("phases".to_string(), Json::from(phases)))
}

/// Successful attempts at blocks, whole per cent as the published tables have them, per class.
fn success(found: &Found) -> impl Iterator<Item = (String, Json)> + '_ {
    let percent = |[made, successful]: [u64; 2]| Json::from(100 * successful / made.max(1));
    found.blocks.iter().map(move |(class, n)| (format!("success_{class}"), percent(*n)))
}

/// The workload's figures, how evenly its groups were reclaimed from, its string's hash and the
/// number of page accesses.
fn custom(found: &Found, end: Option<&Phase>) -> impl Iterator<Item = (String, Json)> {
    let spread = steal_spread(end.map_or(&found.groups, |phase| &phase.snapshot.groups));
    let spread = spread.map(|value| ("pgsteal_cv".to_string(), Json::from(value)));
    let figures = found.figures.iter().map(|(name, value)| (name.clone(), Json::from(*value)));
    let figures = figures.chain(spread);
    let own = [
        ("accesses".to_string(), Json::from(found.accesses)),
        ("string_hash".to_string(), Json::from(format!("{:016x}", found.string_hash))),
    ];
    figures.chain(success(found)).chain(own)
}

/// Standard deviation over mean of the pages taken from the groups that have no group below them;
/// `None` for fewer than two, or where nothing was taken.
fn steal_spread(groups: &[GroupOutcome]) -> Option<f64> {
    let is_leaf = |g: &&GroupOutcome| {
        let below = format!("{}/", g.name.trim_end_matches('/'));
        !groups.iter().any(|other| other.name != g.name && other.name.starts_with(&below))
    };
    let stolen = |g: &GroupOutcome| {
        let by_type = ["pgsteal_anon", "pgsteal_file"].map(|name| value(&g.stat, name));
        by_type.into_iter().flatten().sum::<u64>() as f64
    };
    let steals: Vec<f64> = groups.iter().filter(is_leaf).map(stolen).collect();
    stats::spread(&steals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, anon: u64, file: u64) -> GroupOutcome {
        let stat = vec![("pgsteal_anon", anon), ("pgsteal_file", file)];
        let (events, pressure, lru_gen) = Default::default();
        GroupOutcome { name: name.to_string(), stat, events, pressure, lru_gen }
    }

    #[test]
    fn the_spread_is_that_of_the_leaves() {
        let all = [group("/", 9, 9), group("/a", 9, 9), group("/a/0", 1, 2), group("/a/1", 5, 0)];
        assert_eq!(steal_spread(&all), Some(0.25), "sd 1, mean 4");
        assert_eq!(steal_spread(&all[..3]), None);
        assert_eq!(steal_spread(&[group("/b", 0, 0), group("/c", 0, 0)]), None);
    }
}
