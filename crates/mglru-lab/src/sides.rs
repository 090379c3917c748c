//! One plan on several backends, row by row: do they say the same? The first backend is the measure
//! of the others. Figures of two backends need not be equal (a translated guest has other times
//! than a simulated machine), but what happens must be, and which way a variant moves it.

use serde::Serialize;

use crate::compare::{Comparison, Table};
use crate::judge::Verdict;
use crate::plan::Plan;
use crate::report::Report;
use crate::stats;

/// Changes smaller than this are none: the band of neutrality (experiments §0.7).
const LEAST_CHANGE: f64 = 0.03;

/// Sets reports of the same plan beside each other.
#[derive(Clone, Debug, Serialize)]
pub struct Sides {
    /// Names the plan.
    pub plan: String,
    /// Names the backends, the one that measures first.
    pub backends: Vec<String>,
    /// Holds the rows of the table.
    pub rows: Vec<Row>,
    /// Holds the full reports, by backend.
    pub reports: Vec<Report>,
}

/// Holds one question and each backend's answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Holds the question.
    pub row: String,
    /// Holds the answers as shown, by backend.
    pub answers: Vec<String>,
    /// Says that all answers are the first one's; absent where they are figures that need not be
    /// equal.
    pub agree: Option<bool>,
}

/// Says in which direction a variant moves a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Same,
}

impl Sides {
    /// Pairs reports of the plan, one a backend.
    pub fn new(plan: &Plan, reports: &[Report]) -> Self {
        let tables: Vec<Table> = reports.iter().map(|r| Table::new(&r.records)).collect();
        let variants: Vec<&String> = tables[0].variants().iter().collect();
        let mut rows = Vec::new();
        for point in tables[0].points() {
            for metric in &plan.metrics {
                rows.extend(variants.iter().filter_map(|v| figure(&tables, metric, v, point)));
                let others = variants.iter().filter(|v| ***v != plan.base);
                rows.extend(others.filter_map(|v| change(&tables, plan, metric, v, point)));
            }
        }
        rows.extend(verdicts(reports));
        let backends = reports.iter().map(|report| report.backend.clone()).collect();
        Self { plan: plan.name.clone(), backends, rows, reports: reports.to_vec() }
    }

    /// Returns 1 when the backends disagree anywhere, or any of them misses what the plan expects.
    pub fn exit_status(&self) -> u8 {
        let disagree = self.rows.iter().any(|row| row.agree == Some(false));
        let missed = self.reports.iter().any(|report| report.exit_status() != 0);
        u8::from(disagree || missed)
    }
}

fn all_equal<T: PartialEq>(answers: &[T]) -> bool {
    answers.iter().all(|answer| *answer == answers[0])
}

fn titled(text: String, point: &str) -> String {
    if point.is_empty() { text } else { format!("{text} ({point})") }
}

/// A metric's means. That something happens on one side and never on the other is no agreement;
/// how often it happens is shown.
fn figure(tables: &[Table], metric: &str, variant: &str, point: &str) -> Option<Row> {
    let mean = |table: &Table| {
        let cell = table.cell(variant, point).iter();
        let values: Vec<f64> = cell.filter_map(|record| record.metric(metric)).collect();
        (!values.is_empty()).then(|| stats::mean(&values))
    };
    let means: Vec<f64> = tables.iter().map(mean).collect::<Option<_>>()?;
    let happens: Vec<bool> = means.iter().map(|mean| *mean != 0.0).collect();
    let agree = match (all_equal(&means), all_equal(&happens)) {
        (true, _) => Some(true),
        (_, false) => Some(false),
        _ => None,
    };
    let answers = means.into_iter().map(crate::render::number).collect();
    Some(Row { row: titled(format!("{metric}, {variant}"), point), answers, agree })
}

/// Compares a variant's effect on a metric between the backends.
fn change(tables: &[Table], plan: &Plan, metric: &str, variant: &str, point: &str) -> Option<Row> {
    let of = |table: &Table| table.compare(metric, &plan.base, variant, point);
    let found: Vec<Comparison> = tables.iter().map(of).collect::<Option<_>>()?;
    let ways: Vec<Way> = found.iter().map(way).collect();
    let shown = |(found, way): (&Comparison, &Way)| match (found.ratio, way) {
        (Some(ratio), way) => format!("×{ratio:.3} {}", name(*way)),
        (None, way) => name(*way).to_string(),
    };
    let answers = found.iter().zip(&ways).map(shown).collect();
    let row = titled(format!("{metric}, {variant} against {}", plan.base), point);
    Some(Row { row, answers, agree: Some(all_equal(&ways)) })
}

fn name(way: Way) -> &'static str {
    match way {
        Way::Up => "up",
        Way::Down => "down",
        Way::Same => "same",
    }
}

/// By the 95 % interval where there is one. Counts that are 0 have no ratio: their means decide.
fn way(found: &Comparison) -> Way {
    let Some(ratio) = found.ratio else {
        return match found.mean - found.base_mean {
            0.0 => Way::Same,
            more if more > 0.0 => Way::Up,
            _ => Way::Down,
        };
    };
    let [low, high] = found.ci95.unwrap_or([ratio, ratio]);
    match (low > 1.0, high < 1.0) {
        (true, _) if ratio > 1.0 + LEAST_CHANGE => Way::Up,
        (_, true) if ratio < 1.0 - LEAST_CHANGE => Way::Down,
        _ => Way::Same,
    }
}

/// Judges the plan's expectations on each backend.
fn verdicts(reports: &[Report]) -> Vec<Row> {
    let checks = |report: &Report| -> Vec<(String, Verdict)> {
        let published = report.published.iter().map(|p| {
            (
                titled(format!("{} as published in {}", p.metric, p.seed_document), &p.point),
                p.verdict,
            )
        });
        let others = report.controls.iter().chain(&report.neutral);
        published.chain(others.map(|c| (titled(c.name.clone(), &c.point), c.verdict))).collect()
    };
    let all: Vec<Vec<(String, Verdict)>> = reports.iter().map(checks).collect();
    let row = |at: usize| {
        let answers: Vec<Verdict> = all.iter().map(|checks| checks[at].1).collect();
        let judged = answers.iter().all(|verdict| *verdict != Verdict::NotJudged);
        let agree = judged.then(|| all_equal(&answers));
        let answers = answers.iter().map(Verdict::to_string).collect();
        Row { row: all[0][at].0.clone(), answers, agree }
    };
    (0..all[0].len()).map(row).collect()
}

#[cfg(test)]
mod tests;
