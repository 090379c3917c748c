//! States the bounds that the model must keep: errors of reads and major faults of each version,
//! and each release moved from the one before as the kernel was.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::causes::swing;
use super::replay::on_off;
use super::report::Release;
use super::text::{percent, signed};
use super::verdict::{Compared, LEAST_CHANGE, RESOLUTION, Summary, summary};

/// Counters that the bounds are about: on 7.1 and 7.2 refaults are not misses.
const BOUND: [&str; 2] = ["reads", "pgmajfault"];
/// Largest median of errors.
const MEDIAN: f64 = 0.01;
/// Largest 90th percentile of errors; a job whose own runs differ by more is left out.
const P90: f64 = 0.10;
/// Loops through a mapping that is a little larger than memory: 30 pages of kernel memory more or
/// less move their reads by a tenth.
const TOUCHY: (&str, f64) = ("3loop.mmap", 0.10);
/// Fewer counts than this are not judged: a percentile of them says nothing.
const LEAST: usize = 20;

/// Says how far reads and major faults of a version are off with one LRU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Names the version.
    pub version: String,
    /// Tells whether the multi-gen LRU was on.
    pub mglru: bool,
    /// Sums the errors up.
    #[serde(flatten)]
    pub summary: Summary,
    /// Names the jobs that are left out: their own runs differ by more than the bound.
    pub unsteady: Vec<String>,
    /// Tells whether the bounds hold, or there are too few runs to tell.
    pub holds: bool,
}

/// Says what a new release does to a counter of a job with the multi-gen LRU on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Names the older version.
    pub from: String,
    /// Names the newer one.
    pub to: String,
    /// Names the job.
    pub job: String,
    /// Names the counter.
    pub counter: &'static str,
    /// Holds newer less older, as a share of older, of the kernel.
    pub kernel: f64,
    /// Holds the same of the model.
    pub model: f64,
    /// Tells whether the model moves the same way.
    pub right: bool,
}

/// Job, multi-gen LRU on, counter.
type Key<'a> = (&'a str, bool, &'static str);

/// Means and extremes of one job's runs.
#[derive(Clone, Copy, Debug)]
struct Runs {
    kernel: f64,
    model: f64,
    range: f64,
}

/// Judges the errors of each version.
pub fn bounds(releases: &[Release]) -> Vec<Bound> {
    let classic = spreads(releases.iter().flat_map(|r| &r.verdicts.runs));
    let of = |release| [true, false].map(|mglru| bound(release, mglru, &classic));
    releases.iter().flat_map(of).flatten().collect()
}

/// The classic LRU is the same in all versions: what one differs from another by is chance.
fn bound(release: &Release, mglru: bool, classic: &BTreeMap<Key, f64>) -> Option<Bound> {
    let runs = release.verdicts.runs.iter();
    let runs = runs.filter(|run| run.mglru == mglru && BOUND.contains(&run.counter));
    let spread = |run: &Compared| match mglru {
        true => run.kernel_spread,
        false => classic[&key(run)],
    };
    let (unsteady, steady): (Vec<&Compared>, Vec<_>) = runs.partition(|run| spread(run) > P90);
    let mut unsteady: Vec<String> = unsteady.iter().map(|run| job(run).to_string()).collect();
    unsteady.dedup();
    let errors: Vec<f64> = steady.iter().map(|run| run.rel_error.abs()).collect();
    let summary = (!errors.is_empty()).then(|| summary(errors))?;
    let within = summary.median_abs_rel_error <= MEDIAN && summary.p90_abs_rel_error <= P90;
    let (version, holds) = (release.version.clone(), within || summary.n < LEAST);
    Some(Bound { version, mglru, summary, unsteady, holds })
}

/// Leaves only those directions that are larger than the classic LRU's own chance: it is the same
/// in all versions, and each of them is one more look at it. Where the model showed how much a
/// count depends on when statistics are summed up, chance is at least that.
pub fn leave_out_chance(releases: &mut [Release]) {
    let spreads = spreads(releases.iter().flat_map(|r| &r.verdicts.runs)).into_iter();
    let classic = spreads.filter(|((_, mglru, _), _)| !mglru);
    let classic: BTreeMap<(String, &str), f64> =
        classic.map(|((job, _, counter), spread)| ((job.to_string(), counter), spread)).collect();
    for release in releases {
        release.verdicts.directions.retain(|d| {
            let spread = classic.get(&(d.job.clone(), d.counter)).copied().unwrap_or_default();
            d.kernel.abs() > spread.max(swing(&d.job, d.counter))
        });
    }
}

/// Spread of each counter over all runs of a job.
fn spreads<'a>(runs: impl Iterator<Item = &'a Compared>) -> BTreeMap<Key<'a>, f64> {
    let found = grouped(runs).into_iter();
    found.map(|(key, runs)| (key, runs.range / runs.kernel.max(RESOLUTION))).collect()
}

fn grouped<'a>(runs: impl Iterator<Item = &'a Compared>) -> BTreeMap<Key<'a>, Runs> {
    let mut all: BTreeMap<Key, Vec<&Compared>> = BTreeMap::new();
    runs.for_each(|run| all.entry(key(run)).or_default().push(run));
    let sum = |runs: Vec<&Compared>| {
        let mean = |of: fn(&Compared) -> u64| {
            runs.iter().map(|run| of(run) as f64).sum::<f64>() / runs.len() as f64
        };
        let counts = || runs.iter().map(|run| run.kernel);
        let range = counts().max().unwrap_or(0) - counts().min().unwrap_or(0);
        Runs { kernel: mean(|r| r.kernel), model: mean(|r| r.model), range: range as f64 }
    };
    all.into_iter().map(|(key, runs)| (key, sum(runs))).collect()
}

fn key(run: &Compared) -> Key<'_> {
    (job(run), run.mglru, run.counter)
}

/// `experiment.variant` out of an id: the variant may hold dots.
fn job(run: &Compared) -> &str {
    run.id.rsplitn(4, '.').last().unwrap_or(&run.id)
}

/// Compares each release of a series with the one before, where the kernel's own change is larger
/// than its runs differ.
pub fn moved(releases: &[Release]) -> Vec<Moved> {
    let pairs = releases.windows(2).filter(|pair| series(&pair[0]) == series(&pair[1]));
    pairs.flat_map(|pair| moved_between(&pair[0], &pair[1])).collect()
}

fn series(release: &Release) -> Option<&str> {
    release.version.split('.').next()
}

fn moved_between(old: &Release, new: &Release) -> Vec<Moved> {
    let [before, after] = [old, new].map(|r| grouped(r.verdicts.runs.iter()));
    let judged = |(&(job, mglru, counter), b): (&Key, &Runs)| {
        let a = after.get(&(job, mglru, counter))?;
        let change = a.kernel - b.kernel;
        let chance = if job.starts_with(TOUCHY.0) { TOUCHY.1 } else { 0.0 };
        let ranges = [a, b].map(|r| r.range.max(chance * r.kernel));
        let noise = (ranges[0] + ranges[1]).max(LEAST_CHANGE * b.kernel).max(RESOLUTION);
        let ours = a.model - b.model;
        let says = mglru && BOUND.contains(&counter) && change.abs() > noise;
        says.then(|| Moved {
            from: old.version.clone(),
            to: new.version.clone(),
            job: job.to_string(),
            counter,
            kernel: change / b.kernel.max(RESOLUTION),
            model: ours / b.kernel.max(RESOLUTION),
            right: change.signum() == ours.signum() && ours != 0.0,
        })
    };
    before.iter().filter_map(judged).collect()
}

/// Writes one line for each version and LRU, and one for each release and the one before.
pub fn text(bounds: &[Bound], moved: &[Moved]) -> String {
    let mut out = String::new();
    for b in bounds {
        let Summary { median_abs_rel_error, p90_abs_rel_error, n } = b.summary;
        let _ = writeln!(
            out,
            "- {} {}: median {} (at most {}), 90th percentile {} (at most {}) of {n}: {}",
            b.version,
            on_off(b.mglru),
            percent(median_abs_rel_error),
            percent(MEDIAN),
            percent(p90_abs_rel_error),
            percent(P90),
            match (b.holds, n < LEAST) {
                (false, _) => "does not hold",
                (true, true) => "too few to judge",
                (true, false) => "holds",
            }
        );
        if !b.unsteady.is_empty() {
            let _ = writeln!(out, "  left out, own runs differ by more: {}", b.unsteady.join(", "));
        }
    }
    let mut pairs: Vec<_> = moved.iter().map(|m| (&m.from, &m.to)).collect();
    pairs.dedup();
    for (from, to) in pairs {
        let of = || moved.iter().filter(|m| (&m.from, &m.to) == (from, to));
        let (right, all) = (of().filter(|m| m.right).count(), of().count());
        let _ = writeln!(out, "- {from} to {to}: the direction is right in {right} of {all}");
        for m in of().filter(|m| !m.right) {
            let (kernel, model) = (signed(m.kernel), signed(m.model));
            let _ =
                writeln!(out, "  wrong: {} {}: kernel {kernel}, model {model}", m.job, m.counter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Direction, Verdicts};

    fn release(version: &str, rows: &[(&str, bool, u64, u64)]) -> Release {
        let row = |&(job, mglru, kernel, model): &(&str, bool, u64, u64)| Compared {
            id: format!("{job}.{}.s1.r0", on_off(mglru)),
            version: version.into(),
            mglru,
            counter: "reads",
            kernel,
            kernel_spread: if job.ends_with("wild") { 0.2 } else { 0.0 },
            model,
            rel_error: model as f64 / kernel as f64 - 1.0,
        };
        let runs = rows.iter().map(row).collect();
        let verdicts = Verdicts { runs, ..Verdicts::default() };
        Release { version: version.into(), rules: Some("k7.2"), verdicts }
    }

    fn rows(n: usize, model: u64) -> Vec<(&'static str, bool, u64, u64)> {
        vec![("x.a", true, 1000, model); n]
    }

    #[test]
    fn bounds_are_of_the_median_and_of_the_90th_percentile() {
        let holds = |rows: &[_]| bounds(&[release("7.2.1", rows)])[0].holds;
        assert!(holds(&rows(20, 1009)) && !holds(&rows(20, 1011)));
        assert!(holds(&rows(19, 2000)), "too few to decide");
        let few = |bad: usize| [rows(20 - bad, 1000), rows(bad, 1200)].concat();
        assert!(holds(&few(2)) && !holds(&few(3)));
    }

    #[test]
    fn jobs_whose_own_runs_differ_by_more_are_left_out_and_named() {
        let wild = vec![("x.wild", true, 1000, 9000); 30];
        let found = bounds(&[release("7.2.1", &[rows(20, 1000), wild].concat())]);
        assert!(found[0].holds && found[0].summary.n == 20);
        assert!(text(&found, &[]).contains("left out, own runs differ by more: x.wild"));
        let classic = |version, n| release(version, &[("x.a", false, n, 900); 20]);
        let found = bounds(&[classic("7.1.1", 1000), classic("7.2.1", 1200)]);
        assert_eq!(found, [], "the classic LRU is the same in both: its spread is 18 %");
    }

    #[test]
    fn a_direction_within_the_chance_of_the_classic_lru_is_not_judged() {
        let row = |version, n| release(version, &[("x.a", false, n, 900)]);
        let mut releases = [row("7.1.1", 1000), row("7.2.1", 1200)];
        let of = |kernel| {
            let (job, counter) = ("x.a".to_string(), "reads");
            Direction { job, counter, kernel, model: 0.5, right: false }
        };
        releases[1].verdicts.directions = vec![of(0.17), of(-0.3)];
        leave_out_chance(&mut releases);
        assert_eq!(releases[1].verdicts.directions, [of(-0.3)], "200 of 1100 is chance");
    }

    #[test]
    fn a_release_is_set_beside_the_one_before_of_its_series() {
        let touchy = |n| ("3loop.mmap_n1", true, n, 1000);
        let x = |a, b, c, d| [("x.a", true, a, b), ("x.b", true, c, d)];
        let old = [&x(1000, 990, 1000, 1000)[..], &[touchy(1000)]].concat();
        let new = [&x(1200, 980, 1010, 900)[..], &[touchy(1200)]].concat();
        let (old, new) = (release("7.1.1", &old), release("7.2.1", &new));
        let found = moved(&[release("6.12.1", &rows(1, 1)), old, new]);
        assert_eq!(
            found.len(),
            1,
            "1 % is no change, a touchy loop is chance, 6.12 is another series"
        );
        assert!(!found[0].right && (found[0].kernel - 0.2).abs() < 1e-9);
        let table = text(&[], &found);
        assert!(table.contains("7.1.1 to 7.2.1: the direction is right in 0 of 1\n  wrong: x.a"));
    }
}
