//! Names metrics of a plan that no record has: a misspelt one must not leave the table unnoticed.

use std::collections::BTreeSet;

use mglru_error::did_you_mean;

use crate::check::mistakes::unknown_part;
use crate::plan::Plan;
use crate::record::Record;

/// Returns a line for each metric that the plan shows or judges and no record has a figure of, with
/// near names.
pub fn lines(plan: &Plan, records: &[Record]) -> String {
    let expected = plan.expects.iter().map(|one| &one.metric);
    let judged = expected.chain(plan.published.iter().map(|one| &one.metric));
    let judged = judged.chain(plan.neutral.iter().map(|one| &one.metric));
    let judged = judged.chain(plan.indicators.iter().map(|one| &one.metric));
    let judged: BTreeSet<&String> = judged.filter(|name| !plan.metrics.contains(name)).collect();
    let shown = plan.metrics.iter().filter_map(|name| line("not shown", name, records));
    shown.chain(judged.into_iter().filter_map(|name| line("not judged", name, records))).collect()
}

fn line(missing: &str, metric: &str, records: &[Record]) -> Option<String> {
    let known = |name: &str| records.iter().any(|record| record.metric(name.trim()).is_some());
    if records.is_empty() || known(metric) {
        return None;
    }
    let part = unknown_part(metric, known);
    let near = part.map_or(" (its divisor is 0)".to_string(), |part| near(part, records));
    Some(format!("{missing}: {metric}: no record has this figure{near}\n"))
}

fn near(name: &str, records: &[Record]) -> String {
    if let Some((_, phase)) = name.rsplit_once('@') {
        let phases = records.iter().filter_map(|run| run.custom.get("phases")?.as_array());
        let mut names: Vec<&str> =
            phases.flatten().filter_map(|one| one["name"].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if !names.contains(&phase) {
            return format!("; phase {phase}{}", did_you_mean(phase, names));
        }
    }
    let name = name.split('@').next().unwrap_or(name);
    match name.strip_prefix("custom.") {
        Some(custom) => did_you_mean(custom, of_any(records, |run| &run.custom)),
        None => did_you_mean(name, of_any(records, |run| &run.counters)),
    }
}

/// Lists the keys of a table of the first record: all records of a plan have the same.
fn of_any<'a, V: 'a>(
    records: &'a [Record],
    table: impl Fn(&'a Record) -> &'a indexmap::IndexMap<String, V>,
) -> impl Iterator<Item = &'a str> {
    records.first().into_iter().flat_map(move |run| table(run).keys().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn a_metric_that_no_record_has_is_named() {
        let mut run = example("a", 1, 2.0);
        run.counters.insert("pgpgin".into(), 3);
        run.counters.insert("pgscan".into(), 0);
        let phases = serde_json::json!([{"name": "scan", "counters": {"pgpgin": 1}}]);
        run.custom.insert("phases".into(), phases);
        let of =
            |name: &str| line("not shown", name, std::slice::from_ref(&run)).unwrap_or_default();
        assert_eq!(of("pgpgin@scan") + &of("pgpgin/ops") + &of("pgpgin"), "");
        let text = of("pgpgin@scn/ops");
        assert!(text.starts_with("not shown: pgpgin@scn/ops: no record has this"), "{text}");
        assert!(text.ends_with("figure; phase scn (did you mean scan?)\n"), "{text}");
        assert!(of("pgpgi").ends_with("figure (did you mean pgpgin?)\n"), "{}", of("pgpgi"));
        assert!(of("pgpgin/pgscan").contains("(its divisor is 0)"), "{}", of("pgpgin/pgscan"));
        assert_eq!(line("not shown", "x", &[]), None);
    }
}
