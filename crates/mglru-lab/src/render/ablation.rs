//! The table of an ablation: a row for each prediction, a column for each way of comparing.

use super::table::{finish, head, new};
use super::{number, ratio};
use crate::ablation::mechanisms::Mechanisms;
use crate::ablation::{Ablation, Cell, Effect, Finding, Mode, Row, VersionRow};

/// Writes the whole result.
pub fn ablation(found: &Ablation) -> String {
    let Ablation { plan, from, to, .. } = found;
    let mut out = format!("{plan}: patches of the series, from {from} to {to}\n");
    if !found.predictions.is_empty() {
        out += &predictions(&found.predictions);
    }
    if !found.versions.is_empty() {
        out += "\nversions of the series; ratios to v7, with 95 % intervals\n";
        out += &versions(&found.versions);
    }
    out
}

/// Writes a row for each mechanism, a column for each figure.
pub fn mechanisms(found: &Mechanisms) -> String {
    let Mechanisms { plan, on, rows } = found;
    let mut out = format!(
        "{plan}: figures with one mechanism changed over those of {on}, with 95 % intervals\n"
    );
    let sweep = rows.iter().any(|row| !row.point.is_empty());
    let figures = rows.first().map(|row| row.figures.as_slice()).unwrap_or_default();
    let names: Vec<&str> = figures.iter().map(|(name, _)| *name).chain(["instead"]).collect();
    let mut table = new(head(sweep, "changed to", &names));
    for row in rows {
        let point = sweep.then(|| row.point.clone());
        let cells = row
            .figures
            .iter()
            .map(|(_, effect)| effect.as_ref().map_or_else(|| "–".to_string(), of_effect));
        let all = point.into_iter().chain([row.mechanism.to_string()]).chain(cells);
        table.add_row(all.chain([row.instead.to_string()]).collect::<Vec<String>>());
    }
    out += &finish(table);
    out
}

fn predictions(rows: &[Row]) -> String {
    let sweep = rows.iter().any(|row| !row.point.is_empty());
    let modes: Vec<Mode> = rows[0].cells.iter().map(|cell| cell.mode).collect();
    let columns = modes.iter().map(|mode| column(*mode));
    let names: Vec<&str> =
        ["needs", "figure", "predicted"].into_iter().chain(columns).chain(["found"]).collect();
    let mut table = new(head(sweep, "patch", &names));
    for row in rows {
        let point = sweep.then(|| row.point.clone());
        let fixed = [
            row.patch.clone(),
            row.needs.join(" "),
            row.metric.to_string(),
            row.expected.to_string(),
        ];
        let cells = row.cells.iter().map(cell);
        let found = [row.finding.to_string()];
        let all: Vec<String> = point.into_iter().chain(fixed).chain(cells).chain(found).collect();
        table.add_row(all);
    }
    finish(table)
}

fn column(mode: Mode) -> &'static str {
    match mode {
        Mode::Cumulative => "after all before it",
        Mode::OneIn => "with what it needs alone",
        Mode::LeaveOneOut => "without it (and what needs it)",
        Mode::Versions => "versions",
    }
}

fn cell(cell: &Cell) -> String {
    let along = match cell.along.is_empty() {
        true => String::new(),
        false => format!(" (with {}: does not count)", cell.along.join(" ")),
    };
    let text = match (&cell.effect, &cell.moved) {
        (Some(effect), _) => of_effect(effect),
        (None, Some(moved)) => format!("{moved} differs"),
        (None, None) if cell.finding == Finding::Confirmed => "the same".to_string(),
        (None, None) => "–".to_string(),
    };
    text + &along
}

fn of_effect(effect: &Effect) -> String {
    match (effect.ratio, effect.interval) {
        (Some(found), Some([low, high])) => {
            format!("{} [{low:.3}, {high:.3}]", ratio(Some(found)))
        }
        (Some(found), None) => format!("{} (n=1)", ratio(Some(found))),
        (None, _) => format!("{} → {}", number(effect.without), number(effect.with)),
    }
}

fn versions(rows: &[VersionRow]) -> String {
    let sweep = rows.iter().any(|row| !row.point.is_empty());
    let names: Vec<&str> = rows[0].versions.iter().map(|(name, _)| *name).collect();
    let mut table = new(head(sweep, "figure", &names));
    for row in rows {
        let point = sweep.then(|| row.point.clone());
        let (last, others) = row.versions.split_last().expect("four versions");
        let base = last.1.as_ref().map_or_else(|| "–".to_string(), |e| number(e.with));
        let cells = others.iter().map(|(_, effect)| beside(effect.as_ref()));
        let all = point.into_iter().chain([row.metric.clone()]).chain(cells).chain([base]);
        table.add_row(all.collect::<Vec<String>>());
    }
    finish(table)
}

/// A figure, and its ratio to the last version's.
fn beside(effect: Option<&Effect>) -> String {
    match effect {
        None => "–".to_string(),
        Some(e) if e.ratio.is_none() => number(e.with),
        Some(e) => format!("{}: {}", number(e.with), of_effect(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ablation::Expected;

    fn row(patch: &str, cells: Vec<Cell>) -> Row {
        Row {
            patch: patch.to_string(),
            needs: vec!["p04"],
            metric: "pgrefill",
            expected: Expected::Down,
            point: String::new(),
            cells,
            finding: Finding::Confirmed,
        }
    }

    #[test]
    fn a_row_shows_ratio_interval_and_who_goes_along() {
        let effect = Effect {
            without: 10.0,
            with: 5.0,
            ratio: Some(0.5),
            difference: -5.0,
            interval: Some([0.4, 0.6]),
            n: 3,
            finding: Finding::Confirmed,
        };
        let from_nothing = Effect { ratio: None, without: 0.0, ..effect.clone() };
        let cell = |mode, effect, along: &[&str]| Cell {
            mode,
            along: along.iter().map(|a| a.to_string()).collect(),
            effect: Some(effect),
            moved: None,
            finding: Finding::Confirmed,
        };
        let found = Ablation {
            plan: "t".to_string(),
            from: "before".to_string(),
            to: "after".to_string(),
            predictions: vec![row(
                "p05",
                vec![
                    cell(Mode::OneIn, from_nothing, &[]),
                    cell(Mode::LeaveOneOut, effect, &["p10", "p14"]),
                ],
            )],
            versions: Vec::new(),
        };
        let text = ablation(&found);
        let line = text.lines().last().unwrap();
        assert!(line.contains("| 0 → 5 "), "{line}");
        assert!(line.contains("0.500 [0.400, 0.600] (with p10 p14: does not count)"), "{line}");
        assert!(line.ends_with("| confirmed |"), "{line}");
    }
}
