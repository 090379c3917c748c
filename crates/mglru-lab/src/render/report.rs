//! The page of a run: one file that needs no network. The verdict comes first, then what is
//! doubtful about it, then charts, then every figure as a table.

mod curves;
mod facts;
mod sentence;

use minijinja::value::Serde;
use minijinja::{Environment, context};

use self::curves::Curve;
use self::facts::Facts;
use super::{interval, number, ratio};
use crate::judge::Verdict;
use crate::report::Report;
use crate::samples::Series;

const TEMPLATE: &str = include_str!("report/page.html");
pub(super) const HEAD: &str = include_str!("report/head.html");
pub(super) const STYLE: &str = include_str!("report/style.css");
/// Vega, Vega-Lite and Vega-Embed as published (BSD-3-Clause, `report/vega/LICENSE-*`).
const VEGA: [&str; 3] = [
    include_str!("report/vega/vega-6.4.0.min.js"),
    include_str!("report/vega/vega-lite-6.4.3.min.js"),
    include_str!("report/vega/vega-embed-7.3.0.min.js"),
];

/// Lists the scripts of a page: Vega, what all pages share, then its own.
pub(super) fn scripts(of_page: &[&'static str]) -> Vec<&'static str> {
    VEGA.iter().chain(&[include_str!("report/shared.js")]).chain(of_page).copied().collect()
}

/// Lists the scripts of a run's page.
const OF_RUN: [&str; 3] = [
    include_str!("report/charts.js"),
    include_str!("report/time.js"),
    include_str!("report/page.js"),
];

/// Holds what a page shows besides the report, where the run's folder has it.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Holds samples of each run, in the order of the report's records; `None`: none were kept.
    pub series: Vec<Option<Series>>,
    /// Holds the plan as it was read.
    pub plan: String,
    /// Holds the command that repeats the run.
    pub command: String,
}

/// Writes the page.
pub fn html(report: &Report, beside: &Beside) -> String {
    let curves = curves(report, beside);
    let facts = Facts::new(report, &curves);
    let mut env = Environment::new();
    env.add_filter("number", |x: f64| number(x));
    env.add_filter("ratio", |x: Option<f64>| ratio(x));
    env.add_filter("interval", |x: Option<Vec<f64>>, n: usize| {
        interval(x.and_then(|x| x.try_into().ok()), n)
    });
    env.add_template("page.html", TEMPLATE).expect("the template is fixed");
    let template = env.get_template("page.html").expect("just added");
    let page = context! {
        report => Serde(report),
        backend => backend(&report.backend),
        sentence => sentence::of(report),
        judged => report.verdict != Verdict::NotJudged,
        unjudged => unjudged(report),
        runs => runs(report),
        doubts => doubts(report),
        counters => facts.counters(),
        plan_text => &beside.plan,
        command => &beside.command,
        facts => facts.script(),
        head => HEAD,
        style => STYLE,
        scripts => scripts(&OF_RUN),
    };
    template.render(page).expect("the template knows the report")
}

/// Says how many runs there are, and how small.
fn runs(report: &Report) -> String {
    let runs = super::count(report.records.len() as u64, "run", "runs");
    match report.records.first().map_or(1.0, |record| record.scale) {
        1.0 => runs,
        scale => format!("{runs} at scale {scale}"),
    }
}

/// Says how many of the plan's expectations could not be judged.
fn unjudged(report: &Report) -> String {
    match report.verdicts().filter(|verdict| *verdict == Verdict::NotJudged).count() {
        0 => String::new(),
        open => format!(" ({open} of {} not judged)", report.verdicts().count()),
    }
}

/// Takes the looks of the first run of each variant.
fn curves(report: &Report, beside: &Beside) -> Vec<Curve> {
    let mut drawn: Vec<&str> = Vec::new();
    let mut curves = Vec::new();
    for (at, record) in report.records.iter().enumerate() {
        if !drawn.contains(&record.variant.as_str()) {
            drawn.push(&record.variant);
            curves.extend(Curve::new(record, beside.series.get(at).cloned().flatten()));
        }
    }
    curves
}

fn backend(name: &str) -> &str {
    match name {
        "sim" => "the simulated machine",
        "kernel" => "a booted kernel",
        "pager" => "the pager",
        other => other,
    }
}

fn doubts(report: &Report) -> Vec<String> {
    let remarks = report.remarks();
    let gap = (report.verdict == Verdict::Missed && !report.gap.is_empty()).then(|| {
        format!("What the plan says of figures missed at full size: {}", report.gap.trim())
    });
    remarks.lines().map(str::to_string).chain(gap).collect()
}

#[cfg(test)]
#[path = "report/tests.rs"]
mod tests;
