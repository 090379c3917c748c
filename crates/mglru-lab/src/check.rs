//! Bounds of a plan judged on the runs of one kernel: what `mglru check` says.

mod generations;
pub(crate) mod mistakes;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

pub use mistakes::check as mistakes;
pub use text::{junit, lines, tap};

use crate::plan::bound::{Bound, Rule};
use crate::record::{Metrics, Record};
use mglru_error::{Error, KeyError, did_you_mean};

/// Tells how a bound came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Says that the bound holds on every run.
    Holds,
    /// Says that the bound does not hold on at least one run.
    Broken,
    /// Says that a run does not have the figure.
    Unknown,
}

/// Holds a bound, judged on the runs of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Names the bound.
    pub name: String,
    /// Names the variant.
    pub variant: String,
    /// Holds the condition that must hold.
    pub wanted: String,
    /// Holds the judgement.
    pub judged: Judged,
    /// Holds the finding: figures, or why there is none.
    pub found: String,
}

/// Holds the records that bounds refer to, by file.
pub type Stored = BTreeMap<PathBuf, Vec<Record>>;

/// Reads the records that bounds refer to, before anything runs.
///
/// # Errors
/// Names the bound whose file cannot be read.
pub fn stored(bounds: &[Bound], plan: &str) -> Result<Stored, Error> {
    let mut stored = Stored::new();
    for (at, bound) in bounds.iter().enumerate() {
        if let Rule::Near(_, path, _) = bound.rule() {
            let records = read(path).map_err(|problem| {
                KeyError::value(format!("bound[{at}].record"), path.display(), problem)
            });
            stored.insert(path.clone(), records.map_err(|e| e.in_file(plan))?);
        }
    }
    Ok(stored)
}

fn read(path: &Path) -> Result<Vec<Record>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let line = |(at, line)| Record::parse(line).map_err(|e| format!("line {}: {e}", at + 1));
    let records = text.lines().enumerate().map(line).collect::<Result<Vec<_>, _>>()?;
    if records.is_empty() { Err("no record".to_string()) } else { Ok(records) }
}

/// Judges every bound on the runs of every variant it is said of.
pub fn judge(bounds: &[Bound], records: &[Record], stored: &Stored) -> Vec<Verdict> {
    let mut variants: Vec<&str> = Vec::new();
    for record in records {
        if !variants.contains(&record.variant.as_str()) {
            variants.push(&record.variant);
        }
    }
    let of = |variant: &&str| {
        let runs: Vec<&Record> = records.iter().filter(|r| r.variant == **variant).collect();
        let meant = |bound: &&Bound| bound.variant.as_deref().is_none_or(|name| name == *variant);
        let judged = bounds.iter().filter(meant).map(|bound| one(bound, variant, &runs, stored));
        judged.collect::<Vec<_>>()
    };
    variants.iter().flat_map(of).collect()
}

/// Tells the exit status: 1 when a bound is broken, 125 when that cannot be said, else 0.
pub fn status(verdicts: &[Verdict]) -> u8 {
    let any = |judged| verdicts.iter().any(|verdict| verdict.judged == judged);
    match (any(Judged::Broken), any(Judged::Unknown) || verdicts.is_empty()) {
        (true, _) => 1,
        (false, true) => UNJUDGED,
        _ => 0,
    }
}

/// Gives the exit status by which `git bisect run` passes a version over.
pub const UNJUDGED: u8 = 125;

fn one(bound: &Bound, variant: &str, runs: &[&Record], stored: &Stored) -> Verdict {
    let found: Vec<Result<Found, String>> =
        runs.iter().map(|run| look(bound, run, stored)).collect();
    let broken = found.iter().flatten().any(|found| !found.holds);
    let unknown = found.iter().find_map(|found| found.as_ref().err());
    let judged = match (broken, unknown) {
        (true, _) => Judged::Broken,
        (false, Some(_)) => Judged::Unknown,
        _ => Judged::Holds,
    };
    let mut texts: Vec<&str> = found.iter().flatten().map(|found| found.text.as_str()).collect();
    texts.dedup();
    Verdict {
        name: bound.title(),
        variant: variant.to_string(),
        wanted: bound.condition(),
        judged,
        found: match (judged, unknown) {
            (Judged::Unknown, Some(why)) => why.clone(),
            _ => texts.join(", "),
        },
    }
}

/// Holds the figures of a run.
struct Found {
    holds: bool,
    text: String,
}

fn look(bound: &Bound, run: &Record, stored: &Stored) -> Result<Found, String> {
    match bound.rule() {
        Rule::Between(metric, low, high) => {
            let value = figure(run, metric, bound.phase.as_deref())?;
            Ok(Found { holds: low <= value && value <= high, text: number(value) })
        }
        Rule::Near(metric, path, share) => {
            let value = figure(run, metric, bound.phase.as_deref())?;
            let records = stored.get(path).map_or(&[][..], Vec::as_slice);
            let other = partner(run, records)
                .ok_or_else(|| format!("{}: no record of seed {}", path.display(), run.seed))?;
            let before = figure(other, metric, bound.phase.as_deref())
                .map_err(|e| format!("{}: {e}", path.display()))?;
            let holds = (value - before).abs() <= share * before.abs();
            Ok(Found { holds, text: format!("{} against {}", number(value), number(before)) })
        }
        Rule::NoOomKill => Ok(killed(run)),
        Rule::Generations => {
            let text = run.custom.get("lru_gen").and_then(Json::as_str).unwrap_or_default();
            let found = generations::faults(text)?;
            let holds = found.is_empty();
            let text = if holds { "sound".to_string() } else { found.join("; ") };
            Ok(Found { holds, text })
        }
    }
}

/// The record of the same seed and point, and of the same variant where there are several.
fn partner<'a>(run: &Record, records: &'a [Record]) -> Option<&'a Record> {
    let same = |r: &&Record| r.seed == run.seed && r.point() == run.point();
    let mut all = records.iter().filter(same);
    let named = all.clone().find(|record| record.variant == run.variant);
    named.or_else(|| all.next().filter(|_| all.next().is_none()))
}

fn killed(run: &Record) -> Found {
    let counted = run.counters.get("oom_kill").copied().unwrap_or(0);
    let tasks = run.custom.get("tasks_killed").and_then(Json::as_u64).unwrap_or(0);
    let stopped = run.custom.get("stopped").and_then(Json::as_str);
    let text = match (stopped, counted.max(tasks)) {
        (Some(line), _) => line.to_string(),
        (None, 0) => "nobody".to_string(),
        (None, killed) => format!("{killed} killed"),
    };
    Found { holds: stopped.is_none() && counted.max(tasks) == 0, text }
}

/// The figure, of the whole run or of a phase.
fn figure(run: &Record, metric: &str, phase: Option<&str>) -> Result<f64, String> {
    let metric = metric.split('/').map(str::trim).collect::<Vec<_>>().join("/");
    let record = figures(run, phase)?;
    record.metric(&metric).ok_or_else(|| absent(&record, &metric))
}

/// The record that has the figures of the whole run, or of a phase.
fn figures<'a>(run: &'a Record, phase: Option<&str>) -> Result<Cow<'a, Record>, String> {
    match phase {
        Some(name) => of_phase(run, name).map(Cow::Owned),
        None => Ok(Cow::Borrowed(run)),
    }
}

/// A record whose figures are those of a phase.
fn of_phase(run: &Record, name: &str) -> Result<Record, String> {
    let phases = run.custom.get("phases").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let known = || phases.iter().filter_map(|phase| phase["name"].as_str());
    let phase = phases.iter().find(|phase| phase["name"] == name);
    let phase = phase.ok_or_else(|| format!("no phase {name}{}", did_you_mean(name, known())))?;
    let counters = phase["counters"].as_object().into_iter().flatten();
    let counters = counters.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)));
    let (ops, seconds) = (phase["ops"].as_u64(), phase["seconds"].as_f64().unwrap_or(0.0));
    let ops = ops.unwrap_or(0);
    let ops_per_s = if seconds > 0.0 { ops as f64 / seconds } else { 0.0 };
    let metrics = Metrics { ops, ops_per_s, virtual_s: seconds, latency_us: None };
    let accesses = ("accesses".to_string(), phase["accesses"].clone());
    Ok(Record {
        metrics,
        counters: counters.collect(),
        custom: [accesses].into_iter().collect(),
        groups: Default::default(),
        ..run.clone()
    })
}

/// Why there is no such figure.
fn absent(record: &Record, metric: &str) -> String {
    let known = |name: &str| record.metric(name).is_some();
    match metric.split('/').find(|name| !known(name)) {
        _ if metric.starts_with('/') => format!("no figure {metric}"),
        Some(name) => {
            let near = did_you_mean(name, record.counters.keys().map(String::as_str));
            format!("no figure {name}{near}")
        }
        None => format!("{metric}: divided by 0"),
    }
}

/// A figure for people: whole, or with four digits that count.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
#[path = "check/tests.rs"]
mod tests;
