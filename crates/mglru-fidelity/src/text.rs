//! Verdicts as tables for the terminal; [`super::page`] uses the same parts.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::bounds;
use super::generations::Windows;
use super::replay::on_off;
use super::report::{Release, Report};
use super::verdict::{Compared, Summary, Verdicts};
use mglru_lab::render::number;

/// Rows of the list of worst cases.
const WORST: usize = 20;

/// Writes a table for people for each version.
pub fn table(report: &Report) -> String {
    let versions: String = report.releases.iter().map(|r| version_table(r) + "\n").collect();
    let bounds = bounds::text(&report.bounds, &report.steps);
    format!("{versions}reads and major faults\n{bounds}\n")
}

fn version_table(release: &Release) -> String {
    let verdicts = &release.verdicts;
    let mut out = release.title() + "\n";
    if verdicts.runs.is_empty() {
        return out + &programs(verdicts) + &left_out(verdicts);
    }
    out += &summary(verdicts);
    let _ = writeln!(out, "\n{}", directions(verdicts));
    out += &worst(verdicts);
    out + "\n" + &programs(verdicts) + &windows(verdicts) + &left_out(verdicts)
}

/// Errors by counter: of all runs, and of those with the LRU on and off.
fn summary(verdicts: &Verdicts) -> String {
    let mut out = format!("{:<26}", "counter");
    for head in ["median", "on: median", "off: median"] {
        let _ = write!(out, "{head:>12}{:>9}{:>6}", "p90", "n");
    }
    let lrus = [true, false].map(|on| verdicts.with_lru(on));
    for (counter, all) in &verdicts.summary {
        let _ = write!(out, "\n{counter:<26}{}", cells(Some(all)));
        lrus.iter().for_each(|lru| out += &cells(lru.get(counter)));
    }
    out + "\n"
}

fn cells(summary: Option<&Summary>) -> String {
    let percent = |of: fn(&Summary) -> f64| summary.map_or("-".to_string(), |s| percent(of(s)));
    let (median, p90) = (percent(|s| s.median_abs_rel_error), percent(|s| s.p90_abs_rel_error));
    format!("{median:>12}{p90:>9}{:>6}", summary.map_or(0, |s| s.n))
}

fn worst(verdicts: &Verdicts) -> String {
    let mut out = format!(
        "\n{:<45}{:<25}{:>9}{:>8}{:>9}{:>9}\n",
        "worst", "counter", "kernel", "spread", "model", "error"
    );
    let mut rows: Vec<&Compared> = verdicts.runs.iter().collect();
    rows.sort_by(|a, b| b.rel_error.abs().total_cmp(&a.rel_error.abs()).then(a.id.cmp(&b.id)));
    for row in rows.into_iter().take(WORST) {
        let Compared { id, counter, kernel, kernel_spread, model, rel_error, .. } = row;
        let (spread, error) = (percent(*kernel_spread), signed(*rel_error));
        let _ = writeln!(out, "{id:<45}{counter:<25}{kernel:>9}{spread:>8}{model:>9}{error:>9}");
    }
    out
}

/// Outcomes of runs that are no jobs.
pub(super) fn programs(verdicts: &Verdicts) -> String {
    if verdicts.answers.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "| run | LRU | figure | kernel | from … to | model | error | agrees |\n\
         |---|---|---|---:|---:|---:|---:|---|\n",
    );
    for a in &verdicts.answers {
        let [least, most] = a.range.map(number);
        let (kernel, model, error) = (number(a.kernel), number(a.model), signed(a.rel_error));
        let (lru, agrees) = (on_off(a.mglru), if a.agrees { "yes" } else { "no" });
        let _ = writeln!(
            out,
            "| {} | {lru} | {} | {kernel} | {least} … {most} | {model} | {error} | {agrees} |",
            a.job, a.what
        );
    }
    let right = verdicts.moved.iter().filter(|m| m.right).count();
    let judged = verdicts.moved.len();
    let _ = writeln!(out, "\non against off: the way is right in {right} of {judged}");
    for m in verdicts.moved.iter().filter(|m| !m.right) {
        let (kernel, model) = (number(m.kernel), number(m.model));
        let _ = writeln!(out, "- wrong: {} {}: kernel ×{kernel}, model ×{model}", m.job, m.what);
    }
    out + "\n"
}

/// Generations after every step.
pub(super) fn windows(verdicts: &Verdicts) -> String {
    let sum = |f: fn(&Windows) -> usize| verdicts.windows.iter().map(f).sum::<usize>();
    let (steps, same) = (sum(|w| w.steps), sum(|w| w.same));
    if steps == 0 {
        return String::new();
    }
    let mut out = format!("the same generations after {same} of {steps} steps\n");
    let mut far: Vec<&Windows> = verdicts.windows.iter().collect();
    far.sort_by(|a, b| b.displaced.total_cmp(&a.displaced).then(a.job.cmp(&b.job)));
    for w in far.into_iter().take(WORST) {
        let (job, same, steps, displaced) = (&w.job, w.same, w.steps, percent(w.displaced));
        let _ = writeln!(out, "- {job}: {same} of {steps}, {displaced} of the pages elsewhere");
    }
    out + "\n"
}

pub(super) fn directions(verdicts: &Verdicts) -> String {
    let judged = verdicts.directions.len();
    let wrong: Vec<String> = verdicts
        .wrong()
        .map(|d| {
            let (kernel, model) = (signed(d.kernel), signed(d.model));
            format!("{} {}: kernel {kernel}, model {model}", d.job, d.counter)
        })
        .collect();
    let right = judged - wrong.len();
    let mut out = format!("on against off: the direction is right in {right} of {judged}");
    for line in wrong {
        let _ = write!(out, "\n- wrong: {line}");
    }
    out
}

pub(super) fn left_out(verdicts: &Verdicts) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (job, reason) in &verdicts.left_out {
        reasons.entry(reason).or_default().push(job);
    }
    let mut out = String::new();
    for (reason, jobs) in reasons {
        let _ = writeln!(out, "- not replayed, {reason}: {}", jobs.join(", "));
    }
    out
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}
