//! The passes of the search.

use std::path::Path;

use mglru_guest::order::Steps;
use mglru_guest::report::Step;
use serde::Serialize;

use super::fields::{Values, values};
use super::pages::{Alone, Pages, alone};
use super::tolerance::Tolerance;
use super::window::{Parting, Series};
use crate::backend::Stepping;

/// Accesses between the first stops of the first pass.
const FIRST: u64 = 64;
/// Stops of the first pass after which their distance doubles.
const DOUBLED_AFTER: u64 = 32;
/// Stops of a further pass.
const STOPS: u64 = 48;
/// A window that has this many stops is looked at closely.
const CLOSE: u64 = 64;
/// More passes are not made.
const PASSES: u32 = 8;

/// Lists fields that decide unless others are named: pages that came and went. Levels and
/// generations differ between kernels from the first access on, and are reported late.
pub const DECISIVE: [&str; 4] = ["resident", "pgmajfault", "pgsteal", "pgscan"];

/// Says which runs are compared, and by what.
pub struct Request<'a> {
    /// Holds the two sides.
    pub jobs: [&'a dyn Stepping; 2],
    /// Holds the seed of both.
    pub seed: u64,
    /// Names the fields that decide; empty: [`DECISIVE`].
    pub on: Vec<String>,
    /// Names the pages that `resident` counts; none: all of all files.
    pub pages: Option<Pages>,
    /// Differences up to this do not count.
    pub tolerance: Tolerance,
    /// Names the files of the two kernels' messages.
    pub consoles: [&'a Path; 2],
}

/// Describes the first moment at which the sides differ.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    /// Holds the field that decided.
    pub parting: Parting,
    /// Holds the time since the work began on each side, µs.
    pub at_us: [u64; 2],
    /// Lists pages that only one side has cached then.
    pub pages: Vec<Alone>,
    /// Holds the generations of each side then, as lru_gen lists them.
    pub generations: [String; 2],
    /// Holds trace events of each side from the last equal stop on.
    pub events: [String; 2],
}

/// Holds the result of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Counts accesses of the first process up to the last stop that both made.
    pub accesses: u64,
    /// Counts the boots of each side.
    pub passes: u32,
    /// Holds the stops of the first pass, with all fields of both sides.
    pub series: Series,
    /// Says where each field parts, earliest first, by the first pass.
    pub partings: Vec<Parting>,
    /// Holds the first moment of difference; none: the sides do not differ.
    pub moment: Option<Moment>,
}

/// Searches; `progress` hears of each pass before it begins.
///
/// # Errors
/// Says why a guest gave no result, or that it makes too few accesses.
pub fn find(request: &Request, progress: &dyn Fn(u32, u64, u64)) -> Result<Found, String> {
    let first = Steps {
        from: FIRST,
        to: u64::MAX,
        every: FIRST,
        doubled_after: DOUBLED_AFTER,
        closely: false,
        pages: request.pages.is_some(),
    };
    progress(1, 0, u64::MAX);
    let steps = pass(request, first)?;
    let starts = starts(&steps)?;
    let series = series(&steps, &starts);
    let partings = partings(&series, request);
    let mut found = Found {
        accesses: series.accesses.last().copied().unwrap_or(0),
        passes: 1,
        series,
        partings,
        moment: None,
    };
    let Some(parting) = decisive(&found.partings, request) else { return Ok(found) };
    narrow(request, parting, &starts, &mut found, progress)?;
    Ok(found)
}

type Both = [Vec<Step>; 2];

/// Boots both sides side by side.
fn pass(request: &Request, steps: Steps) -> Result<Both, String> {
    let run = |side: usize| request.jobs[side].step(request.seed, steps, request.consoles[side]);
    let (a, b) = rayon::join(|| run(0), || run(1));
    let mut both = [a?, b?];
    if let Some(pages) = request.pages {
        for step in both.iter_mut().flatten() {
            step.at.resident = vec![pages.cached(&step.pages)];
        }
    }
    Ok(both)
}

/// Counters count from the first stop of the first pass: what a boot leaves is no part of it.
fn starts(steps: &Both) -> Result<[Values; 2], String> {
    let first = |side: &Vec<Step>| side.first().map(|step| values(&step.at));
    match (first(&steps[0]), first(&steps[1])) {
        (Some(a), Some(b)) => Ok([a, b]),
        _ => Err(format!("the first process makes fewer than {FIRST} accesses")),
    }
}

fn series(steps: &Both, starts: &[Values; 2]) -> Series {
    Series::new([&steps[0], &steps[1]], [&starts[0], &starts[1]])
}

/// Leaves out what a side cannot report.
fn partings(series: &Series, request: &Request) -> Vec<Parting> {
    let mut found = series.partings(request.tolerance);
    found.retain(|parting| request.jobs.iter().all(|job| !job.lacks().contains(&parting.field)));
    found
}

fn decisive(partings: &[Parting], request: &Request) -> Option<Parting> {
    let counts = |field: &str| match request.on.is_empty() {
        true => DECISIVE.contains(&field),
        false => request.on.iter().any(|on| on == field),
    };
    partings.iter().find(|parting| counts(parting.field)).copied()
}

fn narrow(
    request: &Request,
    mut parting: Parting,
    starts: &[Values; 2],
    found: &mut Found,
    progress: &dyn Fn(u32, u64, u64),
) -> Result<(), String> {
    loop {
        let (from, to) = (parting.equal_at.max(1), parting.unequal_at);
        let is_close = to - from <= CLOSE || found.passes + 1 >= PASSES;
        let every = if to - from <= CLOSE { 1 } else { (to - from).div_ceil(STOPS) };
        found.passes += 1;
        progress(found.passes, from, to);
        let pages = request.pages.is_some();
        let window = Steps { from, to, every, doubled_after: 0, closely: is_close, pages };
        let steps = pass(request, window)?;
        let series = series(&steps, starts);
        let partings = partings(&series, request);
        let same = partings.into_iter().find(|found| found.field == parting.field);
        // Stops take time: the sides may come to differ one window later than before.
        parting = same.unwrap_or(parting);
        if is_close || same.is_none() {
            found.moment = Some(moment(parting, &steps));
            return Ok(());
        }
    }
}

/// The stop at which the sides differ, with what happened since the one before.
fn moment(parting: Parting, steps: &Both) -> Moment {
    let at = |side: &Vec<Step>| {
        let stop = side.iter().find(|step| step.access >= parting.unequal_at);
        stop.or(side.last()).cloned().unwrap_or_default()
    };
    let [a, b] = [at(&steps[0]), at(&steps[1])];
    Moment {
        parting,
        at_us: [a.at.at_us, b.at.at_us],
        pages: alone([&a.pages, &b.pages]),
        generations: [a.at.lru_gen, b.at.lru_gen],
        events: [a.events, b.events],
    }
}

#[cfg(test)]
mod tests;
