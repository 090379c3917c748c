//! Turns what is known of a program's memory into limits: from the curve of a trace, a capture of
//! a group's counters, or refault distances.

use mglru_live::steer::sample::Distances;
use mglru_live::steer::top::in_units;
use mglru_traces::tools::Curve;
use serde::Serialize;

use crate::capture::Capture;

const PAGE: u64 = 4096;
/// `memory.max` stands above `memory.high` by its eighth: over `high` the group is slowed and
/// reclaimed, and needs room for what it takes meanwhile.
const ROOM: u64 = 8;
/// A group that lacks memory gets at most its share more at a time.
const STEP: u64 = 4;
/// More memory should spare this share of the major faults that any memory would spare.
const MOST: f64 = 0.9;

/// Holds the limits that a program can do with, and why. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advice {
    /// Names the trace, capture or group that the advice follows from.
    pub from: String,
    /// Counts what is in use now; absent where only a trace is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
    /// Is to be written to `memory.high`; absent: the limit is right as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<u64>,
    /// Is to be written to `memory.max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Is to be asked of `memory.reclaim`, now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<u64>,
    /// Bounds the share of time that tasks wait for memory while one reclaims, percent.
    pub pressure_percent: f64,
    /// Gives the reasons, a sentence each.
    pub because: Vec<String>,
}

/// Says what counts as little pressure, and as cold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Bounds the share of time that tasks may wait for memory, percent.
    pub pressure_percent: f64,
    /// Sets the time after which unused pages are cold, ms.
    pub cold_ms: f64,
}

impl Advice {
    fn limited(mut self, high: u64) -> Self {
        let high = high.next_multiple_of(PAGE);
        self.high = Some(high);
        self.max = Some((high + high / ROOM).next_multiple_of(PAGE));
        self
    }

    fn because(mut self, sentence: String) -> Self {
        self.because.push(sentence);
        self
    }
}

/// Advises from a trace: the least size whose misses beyond first uses are under 1 % of all
/// requests.
pub fn from_curve(curve: &Curve, bounds: Bounds) -> Advice {
    let advice = begun(&curve.trace, bounds);
    let all = format!("It touches {} in all.", size(curve.unique * PAGE));
    let Some(knee) = curve.knee() else {
        return advice.because(all).because("No size looked at is enough.".to_string());
    };
    let enough = size(knee.enough * PAGE);
    let advice = advice.limited(knee.enough * PAGE).because(all).because(format!(
        "With {enough}, misses beyond first uses stay under 1 % of its requests, if pages leave in \
         the order of their last use."
    ));
    match knee.doubled {
        0 => advice,
        pages => {
            let times = match knee.is_steep() {
                true => format!("{:.0} times", knee.times),
                false => "twice".to_string(),
            };
            advice.because(format!("With {} there are {times} as many misses.", size(pages * PAGE)))
        }
    }
}

/// Advises from a group's counters: memory of which much is missed grows, memory that is cold goes.
///
/// # Errors
/// The capture has no `memory.current`.
pub fn from_capture(
    name: &str,
    capture: &Capture,
    group: Option<&str>,
    bounds: Bounds,
) -> Result<Advice, String> {
    let (figures, last) = (capture.figures(), capture.last());
    let now = |name: &str| last.values.get(name).copied();
    let current = now("memory.current").or_else(|| now("memory.usage_in_bytes"));
    let current = current.ok_or("no memory.current in it: capture with --group PATH")? as u64;
    let advice = Advice { current: Some(current), ..begun(name, bounds) };
    let seconds = figures.get("seconds").copied();
    let stalled = match (seconds, figures.get("memory.pressure.some.total")) {
        (Some(seconds), Some(us)) => Some(us / seconds / 1e4),
        _ => now("memory.pressure.some.avg300"),
    };
    let Some(stalled) = stalled else {
        return Ok(advice.because("Pressure is unknown: nothing is advised.".to_string()));
    };
    let grown = |name: &str| figures.get(name).copied().unwrap_or(0.0) as u64;
    let refaults =
        grown("memory.stat.workingset_refault_anon") + grown("memory.stat.workingset_refault_file");
    let advice = advice.because(format!("Tasks wait for memory for {stalled:.2} % of the time."));
    if stalled > bounds.pressure_percent {
        return Ok(more(advice, current, seconds.map(|_| refaults)));
    }
    Ok(less(advice, current, cold(capture, group, bounds)?))
}

/// Too little memory: what came back would have stayed with at most as much more. A page that came
/// back twice counts twice, so a long capture would ask for more and more: a quarter at a time.
fn more(advice: Advice, current: u64, refaults: Option<u64>) -> Advice {
    match refaults {
        None => advice.because("One sample does not say how many pages came back.".to_string()),
        Some(0) => advice.because("No page came back: more memory would not help.".to_string()),
        Some(pages) => {
            let (all, step) = (pages.saturating_mul(PAGE), current / STEP);
            let advice = advice.limited(current.saturating_add(all.min(step))).because(format!(
                "{pages} times a page came back after it was evicted: {} more would have kept them \
                 all, and less if some came back several times.",
                size(all)
            ));
            match all > step {
                true => advice.because("Give a quarter more, and capture again.".to_string()),
                false => advice,
            }
        }
    }
}

/// Enough memory: what is cold can go.
fn less(advice: Advice, current: u64, cold: Cold) -> Advice {
    let total = (cold.anon + cold.file) * PAGE;
    if total == 0 {
        return advice.because(format!(
            "{} Reclaim 1 % each minute while the pressure allows it (mglru ctl hold does so for a \
             pager).",
            cold.why
        ));
    }
    let advice = advice.limited(current.saturating_sub(total)).because(cold.why);
    let advice = Advice { reclaim: Some(total.min(current)), ..advice };
    match cold.anon {
        0 => advice,
        anon => advice.because(format!("{} of it are anonymous and need swap.", size(anon * PAGE))),
    }
}

/// Pages that were not used for long.
#[derive(Default)]
struct Cold {
    anon: u64,
    file: u64,
    why: String,
}

fn cold(capture: &Capture, group: Option<&str>, bounds: Bounds) -> Result<Cold, String> {
    let values = &capture.last().values;
    let unknown = |why: &str| Ok(Cold { why: why.to_string(), ..Cold::default() });
    let ages: Vec<&str> = values
        .keys()
        .filter_map(|key| key.strip_prefix("lru_gen.")?.strip_suffix(".age_ms.oldest"))
        .collect();
    let group = match (group, &ages[..]) {
        (Some(group), ages) if ages.contains(&group) => group,
        (Some(group), _) => return Err(format!("group {group} is not in its lru_gen")),
        (None, [only]) => only,
        (None, []) => return unknown("It has no lru_gen: ages of pages are unknown."),
        (None, _) => return unknown("Its lru_gen has several groups: name one with --group."),
    };
    let of = |name: String| values.get(&format!("lru_gen.{group}.{name}")).copied();
    // A generation was in use until the next one was born.
    let unused = |rank: usize| of(format!("age_ms.{}", rank + 1));
    let cold = (0..).take_while(|&rank| unused(rank).is_some_and(|age| age >= bounds.cold_ms));
    let ranks = cold.count();
    if ranks == 0 {
        let age = unused(0).unwrap_or(0.0) / 1e3;
        let why =
            format!("Its oldest generation is unused for {age:.0} s at least: nothing is cold.");
        return Ok(Cold { why, ..Cold::default() });
    }
    let sum =
        |kind: &str| -> f64 { (0..ranks).filter_map(|rank| of(format!("{kind}.{rank}"))).sum() };
    let (anon, file) = (sum("anon") as u64, sum("file") as u64);
    let (total, age) = (size((anon + file) * PAGE), unused(ranks - 1).unwrap_or(0.0) / 1e3);
    Ok(Cold { anon, file, why: format!("{total} were not used for {age:.0} s at least.") })
}

/// Advises from refault distances of a running pager.
pub fn from_distances(group: &str, distances: &Distances, bounds: Bounds) -> Advice {
    let advice = Advice { current: Some(distances.resident), ..begun(group, bounds) };
    let spared: u64 = distances.classes.iter().map(|class| class.1).sum();
    let faults = format!("{} major faults so far.", distances.major);
    if spared == 0 {
        let why = "No evicted page came back: more memory would spare none of them.";
        return advice.because(format!("{faults} {why}"));
    }
    let wanted = (spared as f64 * MOST).ceil() as u64;
    let mut so_far = 0;
    let reached = distances.classes.iter().find(|class| {
        so_far += class.1;
        so_far >= wanted
    });
    let more = reached.map_or(0, |class| class.0);
    advice.limited(distances.resident + more).because(format!(
        "{faults} {} more would have spared {} % of the {spared} that memory can spare.",
        size(more),
        (MOST * 100.0) as u64
    ))
}

fn begun(from: &str, bounds: Bounds) -> Advice {
    let pressure_percent = bounds.pressure_percent;
    Advice { from: from.to_string(), pressure_percent, ..Advice::default() }
}

/// Writes bytes as people say them.
pub fn size(bytes: u64) -> String {
    in_units(bytes, [" bytes", " KiB", " MiB", " GiB", " TiB"])
}

#[cfg(test)]
mod tests;
