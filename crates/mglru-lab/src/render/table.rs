//! Tables for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{interval, number, ratio};
use crate::compare::Comparison;
use crate::indicator::IndicatorResult;
use crate::judge::{ControlResult, PublishedResult};
use crate::report::Report;
use mglru_traces::tools::ReplayResult;

/// Writes the whole report.
pub fn report(report: &Report) -> String {
    let mut out =
        format!("{} on {}: {} records\n", report.plan, report.backend, report.records.len());
    out += &report.remarks();
    let checks: Vec<&ControlResult> = report.controls.iter().chain(&report.neutral).collect();
    out += &comparisons(&report.comparisons);
    if !report.published.is_empty() {
        out += &format!("\npublished figures\n{}", published(&report.published));
    }
    if !report.indicators.is_empty() {
        out += &format!("\nindicators\n{}", indicators(&report.indicators));
    }
    if !checks.is_empty() {
        out += &format!("\ncontrols\n{}", controls(&checks));
    }
    out + &format!("\nverdict: {}\n", report.verdict)
}

/// Writes comparisons, one line each.
pub fn comparisons(list: &[Comparison]) -> String {
    if list.is_empty() {
        return "nothing to compare: needs the base and another variant with a common metric\n"
            .to_string();
    }
    let sweep = list.iter().any(|c| !c.point.is_empty());
    let names = ["base", "variant", "base mean", "mean", "ratio", "95 % interval", "n", "verdict"];
    let mut table = new(head(sweep, "metric", &names));
    for c in list {
        let cells = vec![
            c.metric.clone(),
            c.base.clone(),
            c.variant.clone(),
            number(c.base_mean),
            number(c.mean),
            ratio(c.ratio),
            interval(c.ci95, c.n),
            c.n.to_string(),
            c.verdict.to_string(),
        ];
        table.add_row(row(sweep, &c.point, cells));
    }
    finish(table)
}

/// Writes misses of flat caches.
pub fn misses(list: &[ReplayResult]) -> String {
    let mut table = new(head(false, "policy", &["size", "misses", "miss ratio"]));
    for r in list {
        let (size, misses) = (r.size_pages.to_string(), r.misses.to_string());
        table.add_row(vec![r.policy.clone(), size, misses, format!("{:.6}", r.miss_ratio)]);
    }
    finish(table)
}

/// Writes rows of text below their heads.
pub fn plain(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = new(head.iter().map(ToString::to_string).collect());
    rows.into_iter().for_each(|row| _ = table.add_row(row));
    finish(table)
}

/// Rows of a name and figures below their heads.
pub(super) fn figures(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = new(head.iter().map(ToString::to_string).collect());
    rows.into_iter().for_each(|row| _ = table.add_row(row));
    let columns = table.column_iter_mut().skip(1);
    columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    finish(table)
}

/// Writes names with descriptions.
pub fn list(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter()
        .map(|(name, about)| format!("{name:width$}  {about}").trim_end().to_string() + "\n")
        .collect()
}

fn published(list: &[PublishedResult]) -> String {
    let sweep = list.iter().any(|p| !p.point.is_empty());
    let names = ["document", "before", "after", "ratio", "band", "ours", "verdict"];
    let mut table = new(head(sweep, "metric", &names));
    for p in list {
        let cells = vec![
            p.metric.clone(),
            p.seed_document.clone(),
            number(p.before),
            number(p.after),
            ratio(Some(p.ratio)),
            interval(Some(p.band), p.n),
            with_n(ratio(p.ours), p.n),
            p.verdict.to_string(),
        ];
        table.add_row(row(sweep, &p.point, cells));
    }
    finish(table)
}

fn indicators(list: &[IndicatorResult]) -> String {
    let sweep = list.iter().any(|r| !r.point.is_empty());
    let names = ["indicator", "metric", "relative to", "value", "normal range", "flagged"];
    let mut table = new(head(sweep, "variant", &names));
    for r in list {
        let cells = vec![
            r.variant.clone(),
            r.indicator.clone(),
            r.metric.clone(),
            r.base.clone().unwrap_or_else(|| "–".to_string()),
            number(r.value),
            format!("[{}, {}]", number(r.range[0]), number(r.range[1])),
            if r.flagged { "flagged" } else { "" }.to_string(),
        ];
        table.add_row(row(sweep, &r.point, cells));
    }
    finish(table)
}

fn controls(list: &[&ControlResult]) -> String {
    let sweep = list.iter().any(|c| !c.point.is_empty());
    let mut table = new(head(sweep, "control", &["metric", "variant", "band", "ours", "verdict"]));
    for c in list {
        let cells = vec![
            c.name.clone(),
            c.metric.clone(),
            c.variant.clone(),
            format!("[{}, {}]", number(c.band[0]), number(c.band[1])),
            c.ours.map_or_else(|| "–".to_string(), number),
            c.verdict.to_string(),
        ];
        table.add_row(row(sweep, &c.point, cells));
    }
    finish(table)
}

fn with_n(text: String, n: usize) -> String {
    if n == 1 { format!("{text} (n=1)") } else { text }
}

pub(super) fn head(sweep: bool, first: &str, rest: &[&str]) -> Vec<String> {
    let point = sweep.then_some("point");
    point.into_iter().chain([first]).chain(rest.iter().copied()).map(String::from).collect()
}

fn row(sweep: bool, point: &str, cells: Vec<String>) -> Vec<String> {
    sweep.then(|| point.to_string()).into_iter().chain(cells).collect()
}

/// Markdown, so that a table can be pasted into a report. Figures stand right, words left; the
/// layout never depends on the terminal's width, so that a file holds what the screen shows.
pub(super) fn new(head: Vec<String>) -> Table {
    const FIGURES: [&str; 10] = [
        "value",
        "base mean",
        "mean",
        "ratio",
        "n",
        "before",
        "ours",
        "size",
        "misses",
        "miss ratio",
    ];
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let figures: Vec<usize> = head
        .iter()
        .enumerate()
        .filter(|(_, h)| FIGURES.contains(&h.as_str()))
        .map(|(i, _)| i)
        .collect();
    table.set_header(head);
    for column in figures {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

pub(super) fn finish(table: Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n") + "\n"
}
