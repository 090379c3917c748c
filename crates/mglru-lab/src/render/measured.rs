//! Figures of the live pager beside their targets.

use super::number;
use super::table::{finish, head, new};
use mglru_live::measure::{Finding, Measured, Target};

/// Writes a line for each finding, and how busy the machine was.
pub fn measured(measured: &Measured) -> String {
    let names = ["median", "range", "n", "target", "verdict", "behind it"];
    let mut table = new(head(false, "figure", &names));
    measured.findings.iter().for_each(|finding| _ = table.add_row(row(finding)));
    let missed = measured.findings.iter().filter(|finding| !finding.met).count();
    let [before, after] = measured.load;
    format!(
        "{}\nload of the {} processors: {before} before, {after} after\n{} met, {missed} missed\n",
        finish(table),
        measured.processors,
        measured.findings.len() - missed,
    )
}

fn row(finding: &Finding) -> Vec<String> {
    let Finding { what, spread, target, met, behind, .. } = finding;
    let target = match target {
        Target::AtLeast(least) => format!(">= {}", number(*least)),
        Target::AtMost(most) => format!("<= {}", number(*most)),
    };
    let shown = |figure: f64| number((figure * 1000.0).round() / 1000.0);
    vec![
        what.clone(),
        shown(spread.median),
        format!("[{}, {}]", shown(spread.low), shown(spread.high)),
        spread.n.to_string(),
        target,
        if *met { "met" } else { "MISSED" }.to_string(),
        behind.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_live::measure::{Section, Spread};

    #[test]
    fn a_missed_target_is_reported_with_its_range() {
        let finding = Finding {
            section: Section::Fio,
            what: "ratio".into(),
            spread: Spread { median: 0.84567, low: 0.5, high: 1.25, n: 6 },
            target: Target::AtLeast(1.15),
            met: false,
            behind: "why".into(),
        };
        let result = Measured { findings: vec![finding], processors: 2, load: [0.5, 1.0] };
        let text = super::measured(&result);
        let row = text.lines().find(|line| line.contains("MISSED")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|c| !c.is_empty()).collect();
        assert_eq!(cells, ["ratio", "0.846", "[0.5, 1.25]", "6", ">= 1.15", "MISSED", "why"]);
        assert!(text.ends_with("load of the 2 processors: 0.5 before, 1 after\n0 met, 1 missed\n"));
    }
}
