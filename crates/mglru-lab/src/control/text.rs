//! Verdicts as text: a table for the terminal, a page of markdown for `docs/fidelity.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::causes::{PROGRAMS, cause};
use super::generations::Windows;
use super::replay::on_off;
use super::verdict::{Compared, Verdicts};
use crate::render::number;

/// Rows of the list of worst cases.
const WORST: usize = 20;
/// An error below this is no worst case.
const NOTEWORTHY: f64 = 0.15;

/// A table for people.
pub fn table(verdicts: &Verdicts) -> String {
    let mut out = format!("{:<28}{:>8}{:>8}{:>6}\n", "counter", "median", "p90", "n");
    for (counter, s) in &verdicts.summary {
        let (median, p90) = (percent(s.median_abs_rel_error), percent(s.p90_abs_rel_error));
        let _ = writeln!(out, "{counter:<28}{median:>8}{p90:>8}{:>6}", s.n);
    }
    let _ = writeln!(out, "\n{}", directions(verdicts));
    let _ = writeln!(
        out,
        "\n{:<45}{:<25}{:>9}{:>8}{:>9}{:>9}",
        "worst", "counter", "kernel", "spread", "model", "error"
    );
    for row in worst(verdicts) {
        let Compared { id, counter, kernel, kernel_spread, model, rel_error } = row;
        let (spread, error) = (percent(*kernel_spread), signed(*rel_error));
        let _ = writeln!(out, "{id:<45}{counter:<25}{kernel:>9}{spread:>8}{model:>9}{error:>9}");
    }
    out + "\n" + &programs(verdicts) + &windows(verdicts) + &left_out(verdicts)
}

/// Outcomes of runs that are no jobs.
fn programs(verdicts: &Verdicts) -> String {
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
fn windows(verdicts: &Verdicts) -> String {
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

/// The page `docs/fidelity.md`.
pub fn markdown(verdicts: &Verdicts) -> String {
    let mut out = String::from(
        "# How far is the model from the real kernel?\n\n\
         Written by `mglru control --format markdown`; do not edit. Jobs measured on Linux \
         6.12.117 are replayed\npage by page in the model as `k6.12` (multi-gen LRU on) and \
         `k6.12+lru=classic` (off). Counts are those of\nthe whole job. An error is \
         (model − kernel) / max(kernel, 64 pages).\n\n\
         | counter | median | 90th percentile | runs |\n|---|---:|---:|---:|\n",
    );
    for (counter, s) in &verdicts.summary {
        let (median, p90) = (percent(s.median_abs_rel_error), percent(s.p90_abs_rel_error));
        let _ = writeln!(out, "| {counter} | {median} | {p90} | {} |", s.n);
    }
    let _ = write!(out, "\n{}\n\n", directions(verdicts));
    out += &rules();
    out += &causes(verdicts);
    out += "## Every job\n\nMeans of its runs.\n\n\
            | job | LRU | counter | kernel | spread | model | error |\n\
            |---|---|---|---:|---:|---:|---:|\n";
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
    let programs = programs(verdicts);
    if !programs.is_empty() {
        out += "\n## Programs\n\nWhat they did is not known page by page: the same thing is run \
                in the model, and outcomes are\ncompared. `agrees`: the model's figure lies \
                among the kernel's, give or take 3 %, or is the same\nanswer to yes or no.\n\n";
        out += &programs;
        out += &program_causes();
    }
    let windows = windows(verdicts);
    if !windows.is_empty() {
        out += "\n## Generations\n\nThe tables of lru_gen after every step of the jobs in which an \
                administrator ages, evicts or asks for\nmemory.\n\n";
        out += &windows;
    }
    let left_out = left_out(verdicts);
    match left_out.is_empty() {
        true => out,
        false => out + "\n## Not replayed\n\n" + &left_out,
    }
}

/// Why programs' outcomes are off.
fn program_causes() -> String {
    PROGRAMS.iter().map(|says| format!("- {says}\n")).collect()
}

/// What the comparison taught the model.
fn rules() -> String {
    let mut out = String::from("## Rules found by comparing\n\n");
    for rule in super::causes::RULES {
        let _ = writeln!(out, "- {rule}");
    }
    out + "\n"
}

fn causes(verdicts: &Verdicts) -> String {
    let mut by_cause: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((job, off, counter), rows) in grouped(verdicts) {
        let mean = rows.iter().map(|r| r.rel_error).sum::<f64>() / rows.len() as f64;
        if mean.abs() > NOTEWORTHY {
            let name = format!("{job} {} `{counter}` {}", on_off(!off), signed(mean));
            by_cause.entry(cause(&job, !off)).or_default().push(name);
        }
    }
    let mut out = format!("## Worse than {}, and why\n\n", percent(NOTEWORTHY));
    for (cause, jobs) in by_cause {
        let _ = writeln!(out, "- {}:\n  {cause}\n", jobs.join(", "));
    }
    out
}

type Key = (String, bool, &'static str);

fn grouped(verdicts: &Verdicts) -> BTreeMap<Key, Vec<&Compared>> {
    let mut all: BTreeMap<Key, Vec<&Compared>> = BTreeMap::new();
    for row in &verdicts.runs {
        let (job, off) = job_of(&row.id);
        all.entry((job, off, row.counter)).or_default().push(row);
    }
    all
}

/// `experiment.variant` and whether the LRU was off, out of an id: the variant may hold dots.
fn job_of(id: &str) -> (String, bool) {
    let parts: Vec<&str> = id.rsplitn(4, '.').collect();
    (parts.last().unwrap_or(&id).to_string(), parts.get(2) == Some(&"off"))
}

fn directions(verdicts: &Verdicts) -> String {
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

fn worst(verdicts: &Verdicts) -> Vec<&Compared> {
    let mut rows: Vec<&Compared> = verdicts.runs.iter().collect();
    rows.sort_by(|a, b| b.rel_error.abs().total_cmp(&a.rel_error.abs()).then(a.id.cmp(&b.id)));
    rows.truncate(WORST);
    rows
}

fn left_out(verdicts: &Verdicts) -> String {
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

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::verdict::{Direction, Summary};

    fn verdicts() -> Verdicts {
        let id = "6mix.pread_z0.99.off.s1.r0".to_string();
        let row = Compared {
            id,
            counter: "pgmajfault",
            kernel: 100,
            kernel_spread: 0.01,
            model: 150,
            rel_error: 0.5,
        };
        let summary = Summary { median_abs_rel_error: 0.5, p90_abs_rel_error: 0.5, n: 1 };
        let direction = Direction {
            job: "6mix.pread_z0.99".into(),
            counter: "pgmajfault",
            kernel: 0.1,
            model: -0.1,
            right: false,
        };
        Verdicts {
            runs: vec![row],
            summary: [("pgmajfault".to_string(), summary)].into(),
            directions: vec![direction],
            answers: Vec::new(),
            moved: Vec::new(),
            windows: Vec::new(),
            left_out: [("8dd.x".to_string(), "is no job".to_string())].into(),
        }
    }

    #[test]
    fn a_variant_may_hold_dots() {
        assert_eq!(job_of("1mmap.z0.99_n8.on.s1.r0"), ("1mmap.z0.99_n8".to_string(), false));
    }

    #[test]
    fn the_table_names_the_worst_and_the_wrong() {
        let text = table(&verdicts());
        assert!(text.contains("the direction is right in 0 of 1\n- wrong: 6mix.pread_z0.99"));
        assert!(text.contains("6mix.pread_z0.99.off.s1.r0"), "{text}");
        assert!(text.contains("+50.0 %") && text.contains("not replayed, is no job: 8dd.x"));
    }

    #[test]
    fn the_page_gives_a_cause_to_what_is_far_off() {
        let text = markdown(&verdicts());
        assert!(
            text.contains("- 6mix.pread_z0.99 off `pgmajfault` +50.0 %:\n  when the kernel"),
            "{text}"
        );
        assert!(text.contains("| 6mix.pread_z0.99 | off | pgmajfault | 100 | 1.0 % | 150 |"));
    }
}
