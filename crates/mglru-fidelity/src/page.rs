//! Verdicts as the page `docs/fidelity.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::bounds;
use super::causes::{PROGRAMS, RULES, cause};
use super::replay::on_off;
use super::report::{Release, Report};
use super::text::{directions, left_out, percent, programs, signed, windows};
use super::verdict::{Compared, Summary, Verdicts};
use mglru_lab::backend::kernel::version;

/// An error below this is no worst case.
const NOTEWORTHY: f64 = 0.15;

const HEAD: &str = "\
# How far is the model from the real kernel?

Written by `mglru validate --format markdown`; do not edit. Jobs measured on several versions of
Linux (`truth/`) are replayed page by page in the model, each under the rules of its version
(multi-gen LRU on) and under the same with `lru=classic` (off). Counts are those of the whole job;
`reads` are pages read from devices. An error is (model − kernel) / max(kernel, 64 pages). `all`
sums up refaults and major faults. On 7.1 and 7.2 with the multi-gen LRU on, nodes of shadows are
dropped: refaults are not misses there, and reads and major faults count first.

";

/// Writes the page.
pub fn markdown(report: &Report) -> String {
    let mut out = HEAD.to_string() + &overview(report) + &kept(report) + &rules();
    for release in &report.releases {
        out += &section(release);
    }
    out.trim_end().to_string() + "\n"
}

/// One row for each version and LRU.
fn overview(report: &Report) -> String {
    let mut out = String::from(
        "| kernel | replayed as | LRU | all: median | 90th percentile | counts | reads: median | \
         90th percentile | runs |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for release in &report.releases {
        let Some(rules) = release.rules else { continue };
        for lru in [true, false] {
            let found = release.verdicts.with_lru(lru);
            let cells = ["all", "reads"].map(|name| cells(found.get(name))).join(" | ");
            let _ =
                writeln!(out, "| {} | `{rules}` | {} | {cells} |", release.version, on_off(lru));
        }
    }
    out + "\n"
}

fn cells(summary: Option<&Summary>) -> String {
    summary.map_or("– | – | 0".to_string(), |s| {
        let (median, p90) = (percent(s.median_abs_rel_error), percent(s.p90_abs_rel_error));
        format!("{median} | {p90} | {}", s.n)
    })
}

/// Lists the bounds of the model, and whether it keeps to them.
fn kept(report: &Report) -> String {
    let bounds = bounds::text(&report.bounds, &report.steps);
    format!(
        "## Bounds\n\nErrors of reads and major faults. `mglru validate` ends with status 0 only \
             where these hold.\n\n{bounds}\n"
    )
}

/// Lists the rules that the comparison taught the model.
fn rules() -> String {
    let rules: String = RULES.iter().map(|rule| format!("- {rule}\n")).collect();
    format!("## Rules found by comparing\n\n{rules}\n")
}

fn section(release: &Release) -> String {
    let verdicts = &release.verdicts;
    let mut out = format!("## {}\n\n", release.title());
    if !verdicts.runs.is_empty() {
        out += &counters(verdicts);
        let _ = write!(out, "\n{}\n\n", directions(verdicts));
        out += &causes(release);
        out += &jobs(verdicts);
    }
    out += &outcomes(release);
    let windows = windows(verdicts);
    if !windows.is_empty() {
        out += "### Generations\n\nThe tables of lru_gen after every step of the jobs in which \
                an administrator ages, evicts or asks for\nmemory.\n\n";
        out += &windows;
    }
    match left_out(verdicts) {
        none if none.is_empty() => out,
        listed => out + "### Not replayed\n\n" + &listed + "\n",
    }
}

fn counters(verdicts: &Verdicts) -> String {
    let mut out =
        String::from("| counter | median | 90th percentile | runs |\n|---|---:|---:|---:|\n");
    for (counter, s) in &verdicts.summary {
        let _ = writeln!(out, "| {counter} | {} |", cells(Some(s)));
    }
    out
}

fn causes(release: &Release) -> String {
    let mut by_cause: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((job, off, counter), rows) in grouped(&release.verdicts) {
        let mean = rows.iter().map(|r| r.rel_error).sum::<f64>() / rows.len() as f64;
        if mean.abs() > NOTEWORTHY {
            let name = format!("{job} {} `{counter}` {}", on_off(!off), signed(mean));
            by_cause.entry(cause(&release.version, &job, !off)).or_default().push(name);
        }
    }
    let mut out = format!("### Worse than {}, and why\n\n", percent(NOTEWORTHY));
    for (cause, jobs) in by_cause {
        let _ = writeln!(out, "- {}:\n  {cause}\n", jobs.join(", "));
    }
    out
}

fn jobs(verdicts: &Verdicts) -> String {
    let mut out = String::from(
        "### Every job\n\nMeans of its runs.\n\n\
         | job | LRU | counter | kernel | spread | model | error |\n\
         |---|---|---|---:|---:|---:|---:|\n",
    );
    for ((job, off, counter), rows) in grouped(verdicts) {
        let mean =
            |f: fn(&Compared) -> f64| rows.iter().map(|r| f(r)).sum::<f64>() / rows.len() as f64;
        let (kernel, model) = (mean(|r| r.kernel as f64), mean(|r| r.model as f64));
        let (spread, error) = (percent(rows[0].kernel_spread), signed(mean(|r| r.rel_error)));
        let lru = on_off(!off);
        let _ = writeln!(
            out,
            "| {job} | {lru} | {counter} | {kernel:.0} | {spread} | {model:.0} | {error} |"
        );
    }
    out + "\n"
}

fn outcomes(release: &Release) -> String {
    let programs = programs(&release.verdicts);
    if programs.is_empty() {
        return String::new();
    }
    let known = version::is_of(&release.version, "6.12");
    let why = PROGRAMS.iter().filter(|_| known).map(|says| format!("- {says}\n"));
    "### Programs\n\nWhat they did is not known page by page: the same thing is run in the model, \
     and outcomes are\ncompared. `agrees`: the model's figure lies among the kernel's, give or \
     take 3 %, or is the same\nanswer to yes or no.\n\n"
        .to_string()
        + &programs
        + &why.collect::<String>()
        + "\n"
}

type Key = (String, bool, &'static str);

fn grouped(verdicts: &Verdicts) -> BTreeMap<Key, Vec<&Compared>> {
    let mut all: BTreeMap<Key, Vec<&Compared>> = BTreeMap::new();
    for row in &verdicts.runs {
        all.entry((job_of(&row.id), !row.mglru, row.counter)).or_default().push(row);
    }
    all
}

/// `experiment.variant` out of an id: the variant may hold dots.
fn job_of(id: &str) -> String {
    id.rsplitn(4, '.').last().unwrap_or(id).to_string()
}

#[cfg(test)]
mod tests;
