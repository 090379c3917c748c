//! All published experiments on one page of Markdown: figures first, then why some are missed.

use super::table::{finish, head, new};
use super::{interval, number, ratio};
use crate::judge::{ControlResult, Verdict};
use crate::report::Report;

const INTRODUCTION: &str = "\
# Published experiments

Written by `mglru run all`. Each line is a published change and ours, after divided by before. A
change is reproduced when its 95 % interval excludes 1 on the right side and the ratio lies in the
plan's band; where no change was published, the 90 % interval must lie in the band. Failures that
come and go, such as out-of-memory kills, stand with what must be seen, a mean over runs.
`mglru show PLAN` says under which conditions an experiment runs, and `mglru run PLAN` runs it
whole, with every variant and control.
";

/// Writes the page of all reports.
pub fn page(reports: &[Report]) -> String {
    let names =
        ["metric", "variant", "document", "published", "band", "ours", "interval", "n", "verdict"];
    let mut table = new(head(false, "experiment", &names));
    for report in reports {
        for p in &report.published {
            table.add_row(vec![
                report.plan.clone(),
                p.metric.clone(),
                p.variant.clone(),
                p.seed_document.clone(),
                ratio(Some(p.ratio)),
                interval(Some(p.band), p.n),
                ratio(p.ours),
                interval(p.interval, p.n),
                p.n.to_string(),
                p.verdict.to_string(),
            ]);
        }
    }
    for (report, c) in reports.iter().flat_map(|r| r.neutral.iter().map(move |c| (r, c))) {
        table.add_row(vec![
            report.plan.clone(),
            c.metric.clone(),
            c.variant.clone(),
            "–".to_string(),
            "unchanged".to_string(),
            interval(Some(c.band), 0),
            ratio(c.ours),
            interval(c.interval, 0),
            "–".to_string(),
            c.verdict.to_string(),
        ]);
    }
    let pass_or_fail = reports.iter().filter(|r| r.published.is_empty() && r.neutral.is_empty());
    for (report, c) in pass_or_fail.flat_map(|r| r.controls.iter().map(move |c| (r, c))) {
        table.add_row(vec![
            report.plan.clone(),
            c.metric.clone(),
            c.variant.clone(),
            "–".to_string(),
            c.name.clone(),
            interval(Some(c.band), 0),
            c.ours.map_or_else(|| "–".to_string(), number),
            "–".to_string(),
            "–".to_string(),
            c.verdict.to_string(),
        ]);
    }
    let missed: Vec<String> = reports.iter().filter_map(misses).collect();
    let causes = match missed.is_empty() {
        true => String::new(),
        false => format!("\n## What is missed, and why\n{}", missed.concat()),
    };
    format!("{INTRODUCTION}\n{}{causes}", finish(table))
}

/// Lists what an experiment misses, with the plan's reason.
fn misses(report: &Report) -> Option<String> {
    let published = report.published.iter().filter(|p| p.verdict == Verdict::Missed);
    let published = published.map(|p| {
        format!(
            "- {} of {}: {} of published {}",
            p.metric,
            p.variant,
            ratio(p.ours),
            ratio(Some(p.ratio))
        )
    });
    let checks = report.controls.iter().chain(&report.neutral);
    let checks = checks.filter(|c| c.verdict == Verdict::Missed).map(check);
    let lines: Vec<String> = published.chain(checks).collect();
    let gap = if report.gap.is_empty() { "No cause is known." } else { &report.gap };
    (!lines.is_empty()).then(|| format!("\n### {}\n\n{}\n\n{gap}\n", report.plan, lines.join("\n")))
}

fn check(c: &ControlResult) -> String {
    let ours = c.ours.map_or_else(|| "–".to_string(), number);
    let [low, high] = c.band.map(number);
    format!("- {} ({} of {}): {ours}, should be in [{low}, {high}]", c.name, c.metric, c.variant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::record::example;

    fn report(after: f64) -> Report {
        let text = "name=\"t\"\ntitle=\"t\"\nvariants=[\"before\", \"after\"]\n\
            gap=\"The disk is too fast.\"\n[[published]]\nmetric=\"ops_per_s\"\n\
            document=\"000\"\nbefore=10.0\nafter=12.0";
        let plan = Plan::parse("t.toml", text, &[]).unwrap();
        let pair = |seed, slack: f64| {
            [example("before", seed, 10.0), example("after", seed, after + slack)]
        };
        Report::new(&plan, "mock", [pair(1, 0.0), pair(2, 0.1)].concat())
    }

    #[test]
    fn misses_stand_with_their_cause() {
        let text = page(&[report(12.0), report(10.0)]);
        assert_eq!(text.matches("[1.100, 1.320]").count(), 2, "{text}");
        assert_eq!(text.matches("| reproduced").count(), 1, "{text}");
        assert_eq!(text.matches("The disk is too fast.").count(), 1, "{text}");
        assert!(text.contains("- ops_per_s of after: 1.005 of published 1.200"), "{text}");
    }

    #[test]
    fn what_passes_or_fails_stands_with_what_must_be_seen() {
        let text = "name=\"t\"\ntitle=\"t\"\nvariants=[\"before\"]\n[[expect]]\n\
            name=\"it is killed\"\nmetric=\"ops_per_s\"\nvariant=\"before\"\nvalue=[9.0, 11.0]";
        let plan = Plan::parse("t.toml", text, &[]).unwrap();
        let page = page(&[Report::new(&plan, "mock", vec![example("before", 1, 10.0)])]);
        assert!(page.contains("| it is killed | [9.000, 11.000] |"), "{page}");
    }

    #[test]
    fn nothing_missed_nothing_explained() {
        assert!(!page(&[report(12.0)]).contains("What is missed"));
    }
}
