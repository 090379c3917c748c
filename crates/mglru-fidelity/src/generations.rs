//! Generations after every step of a job: the kernel's beside the model's.

use mglru_guest::kernel_text::{Generation, generations};
use serde::Serialize;

use super::replay::Measured;
use mglru_lab::record::Record;
use mglru_lab::stats;

/// Names the key in a record's custom figures that holds the texts, one a step.
pub const TEXTS: &str = "lru_gen";

/// Holds the results of a job's steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Windows {
    /// Names the job.
    pub job: String,
    /// Counts steps after which the kernel reported its generations, over all runs.
    pub steps: usize,
    /// Counts steps after which both have the same generations.
    pub same: usize,
    /// Holds the share of the kernel's pages that the model has in another generation, or not at
    /// all: the mean over the steps.
    pub displaced: f64,
}

/// Compares every job in which an administrator ages, evicts or asks for memory. Where a group at
/// its limit ages by itself, a pass more or less shifts all numbers.
pub fn windows(jobs: &[Measured], records: &[Record]) -> Vec<Windows> {
    let mut all: Vec<Windows> = Vec::new();
    let stepped = jobs.iter().zip(records).filter(|(m, _)| m.mglru && is_stepped(m));
    for (measured, record) in stepped {
        let steps = steps(measured, record);
        let mut found = summary(&measured.job, &steps);
        match all.iter_mut().find(|w| w.job == found.job) {
            Some(have) => have.add(&found),
            None if found.steps > 0 => all.push(std::mem::replace(&mut found, summary("", &[]))),
            None => {}
        }
    }
    all
}

fn is_stepped(measured: &Measured) -> bool {
    let words = ["age", "evict", "reclaim"];
    let commands = measured.runs[0].steps.iter().filter_map(|step| step.cmd.as_deref());
    commands.into_iter().any(|cmd| cmd.split(' ').next().is_some_and(|word| words.contains(&word)))
}

/// Whether the generations are the same ones, and the share of pages elsewhere.
type Step = (bool, f64);

fn steps(measured: &Measured, record: &Record) -> Vec<Step> {
    let texts = record.custom.get(TEXTS).and_then(|texts| texts.as_array());
    let model: Vec<Vec<Generation>> =
        texts.into_iter().flatten().map(|text| first_node(text.as_str().unwrap_or(""))).collect();
    let steps = measured.runs.iter().flat_map(|run| run.steps.iter().zip(&model));
    let steps = steps.filter(|(step, _)| !step.lru_gen.trim().is_empty());
    steps.map(|(step, model)| compared(&first_node(&step.lru_gen), model)).collect()
}

/// A record holds the part of the job's group alone, without its head.
fn first_node(text: &str) -> Vec<Generation> {
    let text =
        if text.starts_with("memcg") { text.to_string() } else { format!("memcg 1 /\n{text}") };
    let memcg = generations(&text).into_iter().next();
    memcg.and_then(|memcg| memcg.nodes.into_iter().next()).unwrap_or_default().generations
}

fn compared(kernel: &[Generation], model: &[Generation]) -> Step {
    let seqs = |side: &[Generation]| side.iter().map(|line| line.seq).collect::<Vec<_>>();
    let of = |side: &[Generation], seq: u64| {
        side.iter().find(|line| line.seq == seq).map_or((0, 0), |line| (line.anon, line.file))
    };
    let pages: u64 = kernel.iter().map(|line| line.anon + line.file).sum();
    let missing = |line: &Generation| {
        let (anon, file) = of(model, line.seq);
        line.anon.saturating_sub(anon) + line.file.saturating_sub(file)
    };
    let displaced: u64 = kernel.iter().map(missing).sum();
    (seqs(kernel) == seqs(model), displaced as f64 / pages.max(1) as f64)
}

fn summary(job: &str, steps: &[Step]) -> Windows {
    let shares: Vec<f64> = steps.iter().map(|(_, share)| *share).collect();
    Windows {
        job: job.to_string(),
        steps: steps.len(),
        same: steps.iter().filter(|(same, _)| *same).count(),
        displaced: if shares.is_empty() { 0.0 } else { stats::mean(&shares) },
    }
}

impl Windows {
    fn add(&mut self, more: &Self) {
        let steps = self.steps + more.steps;
        let weighted = |w: &Self| w.displaced * w.steps as f64;
        self.displaced = (weighted(self) + weighted(more)) / steps.max(1) as f64;
        (self.steps, self.same) = (steps, self.same + more.same);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Generation> {
        first_node(text)
    }

    #[test]
    fn pages_elsewhere_are_counted_once() {
        let kernel = lines(" node     0\n 3 10 100 0\n 4 5 0 300\n");
        let model = lines("memcg 2 /job\n node 0\n 3 10 0 0\n 4 5 100 300\n");
        assert_eq!(compared(&kernel, &model), (true, 0.25));
        assert_eq!(compared(&kernel, &kernel), (true, 0.0));
        let other = lines(" node 0\n 3 10 100 0\n");
        assert_eq!(compared(&kernel, &other), (false, 0.75));
    }

    #[test]
    fn steps_of_several_seeds_are_one_job() {
        let mut one = summary("a", &[(true, 0.0), (false, 0.5)]);
        one.add(&summary("a", &[(true, 0.25)]));
        assert_eq!((one.steps, one.same), (3, 2));
        assert!((one.displaced - 0.25).abs() < 1e-12);
    }
}
