//! Model beside kernel: relative errors, the kernel's own spread, and whether switching the LRU
//! moves a counter the same way.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answers::{self, Answer, Moved};
use super::counts::{COUNTERS, JUDGED, kernel, model};
use super::generations::{self, Windows};
use super::replay::Measured;
use mglru_lab::record::Record;

/// Counts below this differ by less than the measurement resolves: reclaim isolates 64 pages at a
/// time.
pub(super) const RESOLUTION: f64 = 64.0;
/// Share of a count by which switching the LRU must change it for the direction to be judged:
/// repetitions of one run differ by up to 3 %.
pub(super) const LEAST_CHANGE: f64 = 0.03;

/// Compares one counter of one measured run with the model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Names the measured run.
    pub id: String,
    /// Names the version of its kernel.
    pub version: String,
    /// Tells whether the multi-gen LRU was on.
    pub mglru: bool,
    /// Names the counter.
    pub counter: &'static str,
    /// Holds the measured value.
    pub kernel: u64,
    /// Holds the largest less smallest of the job's runs with this LRU, as a share of their mean.
    pub kernel_spread: f64,
    /// Holds the model's value.
    pub model: u64,
    /// Holds `(model − kernel) / max(kernel, 64)`.
    pub rel_error: f64,
}

/// Says how far a counter is off over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Holds the median of `|rel_error|`.
    pub median_abs_rel_error: f64,
    /// Holds the 90th percentile of `|rel_error|`.
    pub p90_abs_rel_error: f64,
    /// Counts the runs compared.
    pub n: usize,
}

/// Holds the effect of switching the LRU on upon a counter of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// Names the job.
    pub job: String,
    /// Names the counter.
    pub counter: &'static str,
    /// Holds on less off, as a share of off, of the kernel.
    pub kernel: f64,
    /// Holds the same of the model.
    pub model: f64,
    /// Says that the model moves in the same direction.
    pub right: bool,
}

/// Holds everything there is to say of one version.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// Holds every counter of every run; a counter that is 0 in both is left out.
    pub runs: Vec<Compared>,
    /// Sums up by counter, and over those of [`JUDGED`] as `all`.
    pub summary: BTreeMap<String, Summary>,
    /// Lists jobs whose measured change is larger than their spread.
    pub directions: Vec<Direction>,
    /// Lists outcomes of runs that are no jobs.
    pub answers: Vec<Answer>,
    /// Holds the effect of switching the LRU on.
    pub moved: Vec<Moved>,
    /// Compares generations after the steps of each job.
    pub windows: Vec<Windows>,
    /// Lists jobs that are not replayed, with the reason.
    pub left_out: BTreeMap<String, String>,
}

impl Verdicts {
    /// Compares the records of the model with what was measured, one for one.
    pub fn new(jobs: &[Measured], records: &[Record], left_out: &[(Measured, String)]) -> Self {
        let pairs: Vec<Pair> = jobs.iter().zip(records).collect();
        let runs = compared(&pairs);
        let reasons = left_out.iter().map(|(m, why)| (m.job.clone(), why.clone()));
        let answers = answers::answers(jobs, records);
        Self {
            moved: answers::moved(&answers),
            answers,
            windows: generations::windows(jobs, records),
            summary: summaries(runs.iter()),
            directions: directions(&pairs),
            runs,
            left_out: reasons.collect(),
        }
    }

    /// Sums up the runs with the multi-gen LRU on, or off.
    pub fn with_lru(&self, on: bool) -> BTreeMap<String, Summary> {
        summaries(self.runs.iter().filter(|run| run.mglru == on))
    }

    /// Lists directions that are wrong.
    pub fn wrong(&self) -> impl Iterator<Item = &Direction> {
        self.directions.iter().filter(|d| !d.right)
    }
}

type Pair<'a> = (&'a Measured, &'a Record);

fn compared(pairs: &[Pair]) -> Vec<Compared> {
    let spreads = spreads(pairs);
    let mut all = Vec::new();
    for (measured, record) in pairs {
        for (run, counter) in measured.runs.iter().flat_map(|r| COUNTERS.map(|c| (r, c))) {
            let counts = kernel(run, counter).zip(model(record, counter));
            let Some((kernel, model)) = counts.filter(|&counts| counts != (0, 0)) else { continue };
            let kernel_spread = spreads[&(measured.job.as_str(), measured.mglru, counter)];
            let rel_error = relative_error(kernel, model);
            let (id, version, mglru) = (run.id.clone(), measured.version.clone(), measured.mglru);
            all.push(Compared {
                id,
                version,
                mglru,
                counter,
                kernel,
                kernel_spread,
                model,
                rel_error,
            });
        }
    }
    all
}

/// Returns `(model − kernel) / max(kernel, 64)`.
pub fn relative_error(kernel: u64, model: u64) -> f64 {
    (model as f64 - kernel as f64) / (kernel as f64).max(RESOLUTION)
}

/// Spread of each counter over the repetitions and seeds of a job with one LRU.
fn spreads<'a>(pairs: &[Pair<'a>]) -> BTreeMap<(&'a str, bool, &'static str), f64> {
    let mut values: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (measured, _) in pairs {
        for (run, counter) in measured.runs.iter().flat_map(|r| COUNTERS.map(|c| (r, c))) {
            let key = (measured.job.as_str(), measured.mglru, counter);
            values.entry(key).or_default().push(kernel(run, counter).unwrap_or(0) as f64);
        }
    }
    values.into_iter().map(|(key, values)| (key, spread(&values))).collect()
}

/// Largest less smallest, as a share of the mean.
fn spread(values: &[f64]) -> f64 {
    range(values) / mglru_lab::stats::mean(values).max(RESOLUTION)
}

fn range(values: &[f64]) -> f64 {
    let ends = values.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
    ends.1 - ends.0
}

/// Sums up how far each counter is off over runs, and the judged ones together as `all`.
pub fn summaries<'a>(runs: impl Iterator<Item = &'a Compared>) -> BTreeMap<String, Summary> {
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let all = JUDGED.contains(&run.counter).then_some("all");
        for name in [run.counter].into_iter().chain(all) {
            errors.entry(name.to_string()).or_default().push(run.rel_error.abs());
        }
    }
    errors.into_iter().map(|(name, errors)| (name, summary(errors))).collect()
}

/// Quantiles by nearest rank.
pub(super) fn summary(mut errors: Vec<f64>) -> Summary {
    errors.sort_by(f64::total_cmp);
    let n = errors.len();
    let rank = |share: f64| errors[((share * n as f64).ceil() as usize).clamp(1, n) - 1];
    Summary { median_abs_rel_error: rank(0.5), p90_abs_rel_error: rank(0.9), n }
}

/// Jobs measured with the LRU on and off: one pair a seed and repetition.
fn directions(pairs: &[Pair]) -> Vec<Direction> {
    let mut jobs: BTreeMap<&str, (Vec<Pair>, Vec<Pair>)> = BTreeMap::new();
    for pair in pairs {
        let (on, off) = jobs.entry(&pair.0.job).or_default();
        if pair.0.mglru { on } else { off }.push(*pair);
    }
    let judged = |(job, (on, off)): (&&str, &(Vec<Pair>, Vec<Pair>))| {
        JUDGED.into_iter().filter_map(|c| direction(job, c, on, off)).collect::<Vec<_>>()
    };
    jobs.iter().flat_map(judged).collect()
}

fn direction(job: &str, counter: &'static str, on: &[Pair], off: &[Pair]) -> Option<Direction> {
    let (mut changes, mut base, mut ours) = (Vec::new(), Vec::new(), 0.0);
    for (m_on, r_on) in on {
        let (m_off, r_off) = off.iter().find(|(m, _)| m.seed == m_on.seed)?;
        let model = |record| model(record, counter).unwrap_or(0) as f64;
        ours += model(r_on) - model(r_off);
        let count = |run| kernel(run, counter).unwrap_or(0) as f64;
        for (a, b) in m_on.runs.iter().zip(&m_off.runs) {
            changes.push(count(a) - count(b));
            base.push(count(b));
        }
    }
    let (change, base) = (mglru_lab::stats::mean(&changes), mglru_lab::stats::mean(&base));
    let noise = range(&changes).max(LEAST_CHANGE * base).max(RESOLUTION);
    (change.abs() > noise).then(|| Direction {
        job: job.to_string(),
        counter,
        kernel: change / base.max(RESOLUTION),
        model: ours / on.len() as f64 / base.max(RESOLUTION),
        right: change.signum() == ours.signum() && ours != 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Run, Step};
    use indexmap::IndexMap;

    fn measured(mglru: bool, counts: &[u64]) -> Measured {
        let run = |(rep, &n): (usize, &u64)| Run {
            id: format!("x.a.{mglru}.s1.r{rep}"),
            exp: "x".into(),
            variant: "a".into(),
            mglru: mglru.into(),
            seed: 1,
            kernel: "6.12.117".into(),
            mem_mb: 64,
            zram_mb: 0,
            spec: String::new(),
            pre: String::new(),
            filesystem: Default::default(),
            cmd: String::new(),
            steps: vec![Step { d: IndexMap::from([("pgmajfault".into(), n)]), ..Step::default() }],
            fair: None,
            run: None,
            mixoom: None,
        };
        let runs = counts.iter().enumerate().map(run).collect();
        Measured { version: "6.12.117".into(), job: "x.a".into(), seed: 1, mglru, runs }
    }

    fn record(n: u64) -> Record {
        let mut record = mglru_lab::record::example("k6.12", 1, 1.0);
        record.counters = IndexMap::from([("pgmajfault".to_string(), n)]);
        record
    }

    fn judge(on: &[u64], off: &[u64], model_on: u64, model_off: u64) -> Verdicts {
        let jobs = [measured(true, on), measured(false, off)];
        Verdicts::new(&jobs, &[record(model_on), record(model_off)], &[])
    }

    #[test]
    fn errors_are_relative_and_small_counts_to_the_resolution() {
        assert_eq!(relative_error(200, 250), 0.25);
        assert_eq!(relative_error(0, 64), 1.0);
        assert_eq!(relative_error(32, 0), -0.5);
    }

    #[test]
    fn runs_carry_the_kernels_spread_and_zeros_are_left_out() {
        let found = judge(&[100, 110], &[0, 0], 105, 0);
        assert_eq!(found.runs.len(), 2, "0 and 0 say nothing");
        let first = &found.runs[0];
        assert_eq!((first.kernel, first.model, first.rel_error), (100, 105, 0.05));
        assert!((first.kernel_spread - 10.0 / 105.0).abs() < 1e-12);
        assert_eq!(found.summary["pgmajfault"], found.summary["all"]);
        assert_eq!(found.summary["all"].n, 2);
        assert_eq!((first.version.as_str(), first.mglru), ("6.12.117", true));
        assert_eq!(found.with_lru(true)["all"].n, 2);
        assert!(found.with_lru(false).is_empty(), "0 and 0 say nothing");
    }

    #[test]
    fn reads_are_compared_and_leave_all_and_directions_alone() {
        let with_reads = |mut measured: Measured| {
            let step = &mut measured.runs[0].steps[0];
            step.vm = IndexMap::from([("pgpgin".into(), 4000)]);
            measured
        };
        let mut record = record(100);
        record.counters.insert("pgpgin".into(), 4400);
        let jobs = [with_reads(measured(true, &[100])), measured(false, &[100])];
        let found = Verdicts::new(&jobs, &[record.clone(), record], &[]);
        let reads: Vec<&Compared> = found.runs.iter().filter(|r| r.counter == "reads").collect();
        assert_eq!((reads.len(), reads[0].kernel, reads[0].model), (1, 1000, 1100));
        assert_eq!((found.summary["reads"].n, found.summary["all"].n), (1, 2));
        assert!(found.directions.is_empty());
    }

    #[test]
    fn quantiles_are_measured_values() {
        let s = summary((1..=10).map(f64::from).collect());
        assert_eq!((s.median_abs_rel_error, s.p90_abs_rel_error), (5.0, 9.0));
        assert_eq!(summary(vec![0.5]).p90_abs_rel_error, 0.5);
    }

    #[test]
    fn a_direction_is_judged_only_beyond_the_spread() {
        let moved = judge(&[1000, 1010], &[500, 505], 900, 480);
        assert_eq!((moved.directions.len(), moved.wrong().count()), (1, 0));
        let wrong = judge(&[1000, 1010], &[500, 505], 400, 480);
        assert_eq!(wrong.wrong().count(), 1);
        let still = judge(&[1000], &[500], 480, 480);
        assert_eq!(still.wrong().count(), 1, "no change is not the right change");
        assert!(judge(&[510], &[500], 1, 9).directions.is_empty(), "too small a change");
        assert!(judge(&[600, 1000], &[500, 400], 1, 9).directions.is_empty(), "too wide a spread");
    }
}
