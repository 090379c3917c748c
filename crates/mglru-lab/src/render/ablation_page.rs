//! The page of an ablation: a sentence, a chart with a row for each comparison, the table.

use serde_json::{Value as Json, json};

use super::ablation::{ablation, mechanisms};
use super::picture::Picture;
use crate::ablation::mechanisms::Mechanisms;
use crate::ablation::{Ablation, Effect, Finding, Row};

/// Draws what each patch does.
pub fn ablation_page(found: &Ablation) -> String {
    let Ablation { plan, from, to, predictions, .. } = found;
    let rows = predictions.iter().flat_map(|row| {
        let label = label(&row.patch, row.metric, &row.point);
        row.cells.iter().filter_map(move |cell| {
            let finding = match cell.along.is_empty() {
                true => cell.finding.to_string(),
                false => "does not count".to_string(),
            };
            drawn(&label, &cell.mode.name(), &finding, cell.effect.as_ref()?)
        })
    });
    let sentence = format!(
        "From {from} to {to}, {} predictions: {}.",
        predictions.len(),
        counted(predictions)
    );
    let how = "Each mark is a figure with the patch over the figure without it, with its 95 % \
               interval; shapes are ways of comparing. Left of the line: less with the patch.";
    page(&format!("{plan}: what each patch does"), &sentence, how, rows, &ablation(found))
}

/// Counts the findings that there are.
fn counted(predictions: &[Row]) -> String {
    let names = [
        (Finding::Confirmed, "confirmed"),
        (Finding::Contradicted, "contradicted"),
        (Finding::Mixed, "mixed"),
        (Finding::NotSeen, "not seen at this scale"),
        (Finding::NotJudged, "not judged (fewer than two seeds, or no such figure)"),
    ];
    let counted = |(finding, name): (Finding, &str)| {
        let n = predictions.iter().filter(|row| row.finding == finding).count();
        (n > 0).then(|| format!("{n} {name}"))
    };
    names.into_iter().filter_map(counted).collect::<Vec<_>>().join(", ")
}

/// Draws what each mechanism is worth.
pub fn mechanisms_page(found: &Mechanisms) -> String {
    let Mechanisms { plan, on, rows } = found;
    let drawn = rows.iter().flat_map(|row| {
        row.figures.iter().filter_map(move |(name, effect)| {
            let label = label(row.mechanism, "", &row.point);
            drawn(&label, name, "", effect.as_ref()?)
        })
    });
    let sentence = format!("What {on} does with one of its mechanisms changed at a time.");
    let how = "Each mark is a figure with the change over the figure without it, with its 95 % \
               interval; shapes are figures. Right of the line: more with the change.";
    let title = format!("{plan}: what each mechanism is worth");
    page(&title, &sentence, how, drawn, &mechanisms(found))
}

fn label(what: &str, metric: &str, point: &str) -> String {
    let parts = [what, metric, point].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// A mark of the chart; none where there is no ratio.
fn drawn(label: &str, way: &str, finding: &str, effect: &Effect) -> Option<Json> {
    let ratio = effect.ratio.filter(|ratio| *ratio > 0.0)?;
    let [low, high] = effect.interval.unwrap_or([ratio, ratio]);
    Some(json!({
        "label": label, "way": way, "finding": finding, "n": effect.n,
        "ratio": ratio, "low": low.max(f64::MIN_POSITIVE), "high": high,
    }))
}

fn page(
    title: &str,
    sentence: &str,
    how: &str,
    rows: impl Iterator<Item = Json>,
    table: &str,
) -> String {
    Picture {
        title,
        heading: title,
        sentence,
        how,
        about: "Ratios by patch or mechanism",
        table,
        chart: include_str!("report/ablation.js"),
        facts: json!({ "rows": rows.collect::<Vec<Json>>() }),
    }
    .html()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ablation::{Cell, Expected, Mode};

    fn effect(ratio: Option<f64>) -> Effect {
        Effect {
            without: 10.0,
            with: 5.0,
            ratio,
            difference: -5.0,
            interval: ratio.map(|_| [0.4, 0.6]),
            n: 3,
            finding: Finding::Confirmed,
        }
    }

    #[test]
    fn the_page_has_a_mark_for_each_ratio_and_says_what_was_found() {
        let cell = |effect, along: &[&str]| Cell {
            mode: Mode::OneIn,
            along: along.iter().map(ToString::to_string).collect(),
            effect,
            moved: None,
            finding: Finding::Confirmed,
        };
        let row = Row {
            patch: "p10".into(),
            needs: Vec::new(),
            metric: "pgpgin/ops",
            expected: Expected::Down,
            point: String::new(),
            cells: vec![
                cell(Some(effect(Some(0.5))), &[]),
                cell(Some(effect(None)), &[]),
                cell(Some(effect(Some(0.7))), &["p12"]),
            ],
            finding: Finding::Confirmed,
        };
        let found = Ablation {
            plan: "<p>".into(),
            from: "before".into(),
            to: "after".into(),
            predictions: vec![row],
            versions: Vec::new(),
        };
        let page = ablation_page(&found);
        assert!(page.contains("From before to after, 1 predictions: 1 confirmed."));
        assert_eq!(page.matches("\"label\":\"p10 · pgpgin/ops\"").count(), 2);
        assert_eq!(page.matches("\"finding\":\"does not count\"").count(), 1);
        assert!(page.contains("&lt;p&gt;: what each patch does") && !page.contains("<h1><p>"));
    }
}
