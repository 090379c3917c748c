//! Outcomes of runs that are no jobs: the kernel's and the model's, figure by figure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::program::Program;
use super::replay::Measured;
use super::verdict::LEAST_CHANGE;
use mglru_lab::record::Record;
use mglru_lab::stats;

/// Figures of this name are questions of yes or no.
const YES_OR_NO: &str = "oom_kill";

/// Compares one figure of a run on the kernel and in the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Names the run, without seeds and repetitions.
    pub job: String,
    /// Says that the multi-gen LRU was on.
    pub mglru: bool,
    /// Names the figure.
    pub what: &'static str,
    /// Holds the mean over the kernel's runs.
    pub kernel: f64,
    /// Holds the smallest and largest of them.
    pub range: [f64; 2],
    /// Holds the mean over the model's seeds.
    pub model: f64,
    /// Says that the model's answer lies among the kernel's, or as near to them as they lie to each
    /// other in jobs; for a question of yes or no: is the same.
    pub agrees: bool,
    /// Says how far it is off the kernel's mean, as a share.
    pub rel_error: f64,
}

/// Says in which direction switching the LRU on moves a figure. Where the kernel's runs on and off
/// overlap, there is no direction to judge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Names the run.
    pub job: String,
    /// Names the figure.
    pub what: &'static str,
    /// Holds on over off of the kernel's means.
    pub kernel: f64,
    /// Holds on over off of the model's.
    pub model: f64,
    /// Says that both move in the same direction.
    pub right: bool,
}

/// Run, LRU off, figure: the order of the answers.
type Key = (String, bool, &'static str);

/// Compares every program that was run again.
pub fn answers(jobs: &[Measured], records: &[Record]) -> Vec<Answer> {
    let mut found: BTreeMap<Key, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (measured, record) in jobs.iter().zip(records) {
        let Some(Ok(program)) = measured.program() else { continue };
        let model = program.found(&record.counters, &record.custom, record.metrics.ops);
        for (what, value) in model {
            let kernel = kernel(&program, measured, what);
            let key = (measured.job.clone(), !measured.mglru, what);
            let (ours, theirs) = found.entry(key).or_default();
            ours.push(value);
            theirs.extend(kernel);
        }
    }
    let found = found.into_iter().filter(|(_, (_, kernel))| !kernel.is_empty());
    found
        .map(|((job, off, what), (model, kernel))| answer(job, !off, what, &model, &kernel))
        .collect()
}

fn kernel(program: &Program, measured: &Measured, what: &str) -> Vec<f64> {
    measured.runs.iter().filter_map(|run| program.measured(run).get(what).copied()).collect()
}

fn answer(job: String, mglru: bool, what: &'static str, model: &[f64], kernel: &[f64]) -> Answer {
    let (model, mean) = (stats::mean(model), stats::mean(kernel));
    let least = kernel.iter().copied().fold(f64::MAX, f64::min);
    let most = kernel.iter().copied().fold(f64::MIN, f64::max);
    let agrees = match what {
        YES_OR_NO => (mean > 0.0) == (model > 0.0),
        _ => (least - LEAST_CHANGE * mean..=most + LEAST_CHANGE * mean).contains(&model),
    };
    let rel_error = match mean > 0.0 {
        true => (model - mean) / mean,
        false => f64::from(u8::from(model > 0.0)),
    };
    Answer { job, mglru, what, kernel: mean, range: [least, most], model, agrees, rel_error }
}

/// Pairs figures of both LRUs.
pub fn moved(answers: &[Answer]) -> Vec<Moved> {
    let on = answers.iter().filter(|a| a.mglru && a.what != YES_OR_NO);
    let pair = |on: &Answer| {
        let off = answers.iter().find(|a| !a.mglru && a.job == on.job && a.what == on.what)?;
        let apart = on.range[0] > off.range[1] || on.range[1] < off.range[0];
        let apart = apart && (on.kernel - off.kernel).abs() > LEAST_CHANGE * off.kernel;
        apart.then(|| Moved {
            job: on.job.clone(),
            what: on.what,
            kernel: on.kernel / off.kernel,
            model: on.model / off.model,
            right: (on.kernel > off.kernel) == (on.model > off.model) && on.model != off.model,
        })
    };
    on.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_a_question_of_yes_or_no() {
        let of = |model: f64, kernel: &[f64]| answer("a".into(), true, YES_OR_NO, &[model], kernel);
        assert!(of(1.0, &[1.0, 0.0]).agrees && of(0.0, &[0.0]).agrees);
        assert!(!of(1.0, &[0.0]).agrees);
        assert_eq!((of(1.0, &[0.0]).rel_error, of(0.0, &[0.0]).rel_error), (1.0, 0.0));
    }

    #[test]
    fn other_figures_must_lie_among_the_kernels() {
        let of = |model: f64| answer("a".into(), true, "x", &[model], &[0.2, 0.4]);
        assert!(of(0.25).agrees && of(0.405).agrees && !of(0.45).agrees && !of(0.1).agrees);
        assert!((of(0.45).rel_error - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_way_is_judged_where_the_kernels_runs_do_not_overlap() {
        let of = |mglru, kernel: &[f64], model| answer("a".into(), mglru, "x", &[model], kernel);
        let way = |on: &[f64], off: &[f64], ours: f64, classic: f64| {
            moved(&[of(true, on, ours), of(false, off, classic)]).first().map(|m| m.right)
        };
        assert_eq!(way(&[0.1, 0.2], &[0.5, 0.9], 0.3, 0.4), Some(true));
        assert_eq!(way(&[0.1, 0.2], &[0.5, 0.9], 0.4, 0.3), Some(false));
        assert_eq!(way(&[0.1, 0.6], &[0.5, 0.9], 0.4, 0.3), None);
        assert_eq!(way(&[1.00, 1.01], &[1.02, 1.03], 0.4, 0.3), None, "too small a change");
    }
}
