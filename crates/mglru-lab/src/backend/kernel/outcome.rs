//! Turns a guest's report into its part of a record. A workload that marks a phase `run` is
//! measured from there, as in the simulated machine.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use indexmap::IndexMap;
use mglru_guest::kernel_text::{generations, pairs, stalled_us, value};
use mglru_guest::report::{Command, Ended, GroupState, Snapshot};
use mglru_workload::Layout;
use serde_json::{Value as Json, json};

use super::oom;
use super::series;
use super::watch::GuestReport;
use crate::backend::Outcome;
use crate::backend::sim::measured::{RUN, is_preparing, quantiles};
use crate::record::{Group, Metrics};
use crate::stats;

/// Names of vmstat's counters that are kept, by how they begin. Levels are not.
const COUNTED: [&str; 13] = [
    "pgpg",
    "pswp",
    "pgfault",
    "pgmajfault",
    "pgscan_",
    "pgsteal_",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "pgrotated",
    "workingset_",
    "oom_kill",
    "allocstall_",
];
/// More of them, by their whole names.
const NAMED: [&str; 8] = [
    "swpin_zero",
    "swpout_zero",
    "slabs_scanned",
    "nr_dirtied",
    "nr_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_throttled_written",
];
/// vmstat counts these for reclaim of the whole machine only; the root group counts all.
const BY_GROUPS: [&str; 5] =
    ["pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct", "pgrefill"];
/// Gives the path of the root group in a snapshot.
pub const ROOT: &str = "/";

/// Returns the outcome of a run, which becomes part of its record.
///
/// # Errors
/// When the guest stopped before the work was over.
pub fn outcome(report: &GuestReport, layout: &Layout) -> Result<Outcome, String> {
    let over = &last(report)?;
    let span = Span::of(report, over, layout);
    let mut custom = IndexMap::new();
    custom.extend(report.workers.iter().filter_map(|w| w.measured.as_ref()).flat_map(|measured| {
        measured.figures.iter().map(|(name, figure)| (name.clone(), Json::from(*figure)))
    }));
    custom.insert("accesses".to_string(), Json::from(over.done.reads + over.done.writes));
    custom.extend(string_hash(&report.workers));
    custom.insert("kernel".to_string(), Json::from(report.kernel.clone()));
    let boot_s = (report.boot.as_secs_f64() * 100.0).round() / 100.0;
    custom.insert("boot_s".to_string(), Json::from(boot_s));
    custom.extend(busy(&span).map(|busy| ("processor_busy".to_string(), Json::from(busy))));
    custom.insert("pressure_us".to_string(), pressure(&span));
    let reclaimed = reclaimed(&span);
    custom.extend(steal_spread(&reclaimed).map(|cv| ("pgsteal_cv".to_string(), Json::from(cv))));
    custom.insert("reclaimed".to_string(), json!(reclaimed));
    custom.insert("events".to_string(), events(over));
    custom.insert("phases".to_string(), phases(report, over, layout));
    custom.insert("lru_gen".to_string(), Json::from(over.lru_gen.clone()));
    custom.insert("series".to_string(), series::of(&report.samples));
    custom.extend(refused(report));
    custom.extend(starvation(report, layout));
    let mut counters = counters(span.from, span.to);
    if report.starved.is_some() {
        counters.insert("oom_kill".to_string(), report.killed.len() as u64);
    }
    Ok(Outcome {
        metrics: metrics(report, &span, layout)?,
        counters,
        groups: over.groups.iter().filter(|(n, _)| *n != ROOT).map(group).collect(),
        custom,
    })
}

/// Returns the counters at the end; of a machine that stopped for want of memory, the last ones,
/// and its last sign of life.
fn last(report: &GuestReport) -> Result<Snapshot, String> {
    if let Some(over) = &report.over {
        return Ok(over.clone());
    }
    if report.starved.is_none() {
        return Err("the guest stopped before the work was over".to_string());
    }
    let last = report.marks.last().map_or(&report.ready, |(_, snapshot)| snapshot);
    let at_us = report.samples.last().map_or(0, |(at_us, _)| *at_us).max(last.at_us);
    Ok(Snapshot { at_us, ..last.clone() })
}

/// Lists processes killed for want of memory, how many tasks of the workload went with them, and
/// the last words of a machine that stopped.
fn starvation(report: &GuestReport, layout: &Layout) -> Vec<(String, Json)> {
    let mut found = Vec::new();
    if !report.killed.is_empty() {
        let killed = oom::as_json(&report.killed, &report.workers, layout);
        let tasks =
            killed.as_array().into_iter().flatten().filter_map(|kill| kill["tasks"].as_u64());
        found.push(("tasks_killed".to_string(), Json::from(tasks.sum::<u64>())));
        found.push(("oom_killed".to_string(), killed));
    }
    found.extend(report.starved.iter().map(|line| ("stopped".to_string(), line.clone().into())));
    found
}

/// The share of the time in which processors worked, to a thousandth.
fn busy(span: &Span) -> Option<f64> {
    let ticks = |at: &Snapshot| {
        let ticks: Vec<u64> =
            at.stat.split_whitespace().skip(1).map_while(|tick| tick.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user.
        let all: u64 = ticks.iter().take(8).sum();
        Some((all, *ticks.get(3)? + *ticks.get(4)?))
    };
    let ((from, idle_from), (to, idle_to)) = (ticks(span.from)?, ticks(span.to)?);
    let (all, idle) = (to.checked_sub(from)?, idle_to.saturating_sub(idle_from));
    (all > 0).then(|| ((all - idle.min(all)) as f64 / all as f64 * 1000.0).round() / 1000.0)
}

/// Holds the measured span: from one snapshot to another.
struct Span<'a> {
    from: &'a Snapshot,
    to: &'a Snapshot,
}

impl<'a> Span<'a> {
    fn of(report: &'a GuestReport, over: &'a Snapshot, layout: &Layout) -> Self {
        let name = |phase: u32| layout.phases.get(phase as usize).map_or("", String::as_str);
        let first = report.marks.iter().position(|(phase, _)| name(*phase) == RUN);
        let Some(first) = first else { return Self { from: &report.ready, to: over } };
        let sequence = layout.sequence(report.marks[first].0);
        let after = report.marks.iter().skip(first + 1);
        let after = after.filter(|(phase, _)| layout.sequence(*phase) == sequence);
        let end = after.into_iter().find(|(phase, _)| !name(*phase).starts_with("run."));
        Self { from: &report.marks[first].1, to: end.map_or(over, |(_, snapshot)| snapshot) }
    }

    fn seconds(&self) -> f64 {
        (self.to.at_us - self.from.at_us) as f64 / 1e6
    }
}

fn metrics(report: &GuestReport, span: &Span, layout: &Layout) -> Result<Metrics, String> {
    let latency = merged(&report.workers, &layout.classes)?;
    let ended = span.to.done.ops - span.from.done.ops;
    let ops = if layout.classes.is_empty() { ended } else { ended.min(latency.len()) };
    let seconds = span.seconds();
    Ok(Metrics {
        ops,
        ops_per_s: if seconds > 0.0 { ops as f64 / seconds } else { 0.0 },
        latency_us: (!latency.is_empty()).then(|| quantiles(&latency)),
        virtual_s: seconds,
    })
}

fn merged(workers: &[Ended], classes: &[String]) -> Result<Histogram<u64>, String> {
    let mut all = Histogram::new(3).map_err(|e| e.to_string())?;
    for measured in workers.iter().filter_map(|worker| worker.measured.as_ref()) {
        for (class, pairs) in classes.iter().zip(&measured.latency) {
            if is_preparing(class) {
                continue;
            }
            for (value, count) in pairs {
                all.record_n(*value, *count).map_err(|e| e.to_string())?;
            }
        }
    }
    Ok(all)
}

/// One hash for all workers; none when one of them was killed.
fn string_hash(workers: &[Ended]) -> Option<(String, Json)> {
    let hashes = workers.iter().map(|worker| Some(worker.measured.as_ref()?.string_hash));
    let hash = hashes.reduce(|a, b| Some(a? ^ b?))??;
    Some(("string_hash".to_string(), Json::from(format!("{hash:016x}"))))
}

/// Returns how far the counters went from one snapshot to another.
pub fn counters(from: &Snapshot, to: &Snapshot) -> IndexMap<String, u64> {
    let kept = |name: &str| {
        (COUNTED.iter().any(|start| name.starts_with(start)) || NAMED.contains(&name))
            && name != "workingset_nodes"
    };
    let before: BTreeMap<&str, u64> = pairs(&from.vmstat).collect();
    let went = |(name, now): (&str, u64)| {
        let since = now.saturating_sub(before.get(name).copied().unwrap_or(0));
        (name.to_string(), since)
    };
    let mut counters: IndexMap<String, u64> =
        pairs(&to.vmstat).filter(|(name, _)| kept(name)).map(went).collect();
    for name in BY_GROUPS {
        let stat = |snapshot: &Snapshot| value(&snapshot.groups.get(ROOT)?.stat, name);
        if let Some(now) = stat(to) {
            counters.insert(name.to_string(), now - stat(from).unwrap_or(0).min(now));
        }
    }
    counters.insert("aging_passes".to_string(), opened(to).saturating_sub(opened(from)));
    counters
}

/// Sum of all groups' youngest generations' numbers.
fn opened(snapshot: &Snapshot) -> u64 {
    let memcgs = generations(&snapshot.lru_gen);
    let nodes = memcgs.iter().flat_map(|memcg| &memcg.nodes);
    nodes.filter_map(|node| node.generations.last()).map(|generation| generation.seq).sum()
}

fn group((name, state): (&String, &GroupState)) -> (String, Group) {
    let mut stat = IndexMap::from([
        ("memory.current".to_string(), state.current),
        ("memory.swap.current".to_string(), state.swap_current),
    ]);
    stat.extend(state.peak.map(|peak| ("memory.peak".to_string(), peak)));
    stat.extend(pairs(&state.stat).map(|(name, value)| (name.to_string(), value)));
    (name.clone(), Group { memory_stat: stat })
}

/// Reads each group's reclaim counters, by the names of truth files.
type Reclaimed = BTreeMap<String, BTreeMap<&'static str, u64>>;

fn reclaimed(span: &Span) -> Reclaimed {
    let names = [
        ("pgsteal", "pgsteal"),
        ("pgscan", "pgscan"),
        ("refault_anon", "workingset_refault_anon"),
        ("refault_file", "workingset_refault_file"),
    ];
    let of = |(name, after): (&String, &GroupState)| {
        let before = span.from.groups.get(name).map_or("", |state| &state.stat);
        let went = |(short, stat)| {
            let at = |text| value(text, stat).unwrap_or(0);
            (short, at(&after.stat).saturating_sub(at(before)))
        };
        (name.clone(), names.map(went).into())
    };
    span.to.groups.iter().filter(|(name, _)| *name != ROOT).map(of).collect()
}

/// How evenly the groups that have none below them were reclaimed from.
fn steal_spread(groups: &Reclaimed) -> Option<f64> {
    let parent = |name: &str| groups.keys().any(|other| other.starts_with(&format!("{name}/")));
    let leaves = groups.iter().filter(|(name, _)| !parent(name));
    stats::spread(&leaves.map(|(_, went)| went["pgsteal"] as f64).collect::<Vec<_>>())
}

/// Time lost to pressure, microseconds.
fn pressure(span: &Span) -> Json {
    let went = |text: fn(&Snapshot) -> &str, kind| {
        let at = |snapshot| stalled_us(text(snapshot), kind);
        at(span.to).map(|now| now - at(span.from).unwrap_or(0).min(now))
    };
    json!({
        "memory_some": went(|s| &s.pressure.memory, "some"),
        "memory_full": went(|s| &s.pressure.memory, "full"),
        "io_some": went(|s| &s.pressure.io, "some"),
    })
}

fn events(over: &Snapshot) -> Json {
    let of = |state: &GroupState| -> BTreeMap<String, u64> {
        pairs(&state.events).map(|(name, count)| (name.to_string(), count)).collect()
    };
    let groups = over.groups.iter().filter(|(name, _)| *name != ROOT);
    groups.map(|(name, state)| (name.clone(), json!(of(state)))).collect()
}

/// Commands that the kernel refused, with its errors; none where it refused none.
fn refused(report: &GuestReport) -> Option<(String, Json)> {
    let refused = report.commands.iter().filter(|(_, command)| command.rc != 0);
    let line = |(_, command): &(usize, Command)| json!({ "text": command.text, "rc": command.rc });
    let refused: Vec<Json> = refused.map(line).collect();
    (!refused.is_empty()).then(|| ("refused".to_string(), Json::from(refused)))
}

/// Counters and generations of each phase, which ends where the next of its sequence begins.
fn phases(report: &GuestReport, over: &Snapshot, layout: &Layout) -> Json {
    let phase = |(at, (number, from)): (usize, &(u32, Snapshot))| {
        let sequence = layout.sequence(*number);
        let mut after = report.marks.iter().skip(at + 1);
        let end = after.find(|(next, _)| layout.sequence(*next) == sequence);
        let to = end.map_or(over, |(_, snapshot)| snapshot);
        json!({
            "name": layout.phases.get(*number as usize),
            "seconds": (to.at_us - from.at_us) as f64 / 1e6,
            "ops": to.done.ops - from.done.ops,
            "accesses": (to.done.reads + to.done.writes) - (from.done.reads + from.done.writes),
            "counters": counters(from, to),
            "lru_gen": to.lru_gen,
        })
    };
    report.marks.iter().enumerate().map(phase).collect()
}

#[cfg(test)]
mod tests;
