//! Indicators: does an invariant or a rate give a variant away as faulty? A plan says what is
//! normal; a variant is flagged where it lies outside.

use serde::Serialize;

use crate::compare::Table;
use crate::judge::{ControlResult, Verdict};
use crate::plan::{Indicator, Plan};
use crate::stats;

/// Holds one indicator of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IndicatorResult {
    /// Names the variant.
    pub variant: String,
    /// Names the indicator.
    pub indicator: String,
    /// Names the metric.
    pub metric: String,
    /// Names the variant that the value is a ratio to; absent where it is the figure itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds the figure's mean, or the geometric mean of its ratios.
    pub value: f64,
    /// Holds the normal range.
    pub range: [f64; 2],
    /// Says that the value lies outside. A ratio of several seeds must lie outside with its whole
    /// 95 % interval.
    pub flagged: bool,
}

/// Computes every indicator of every watched variant that ran and has the figure.
pub fn all(plan: &Plan, table: &Table) -> Vec<IndicatorResult> {
    let mut results = Vec::new();
    let watched = |v: &&String| plan.watch.faulty.contains(v) || plan.watch.sound.contains(v);
    for point in table.points() {
        for variant in table.variants().iter().filter(watched) {
            let each = plan.indicators.iter();
            results.extend(each.filter_map(|indicator| judge(indicator, table, variant, point)));
        }
    }
    results
}

fn judge(
    indicator: &Indicator,
    table: &Table,
    variant: &str,
    point: &str,
) -> Option<IndicatorResult> {
    let (value, [low, high]) = match &indicator.base {
        Some(base) if base == variant => return None,
        Some(base) => {
            let found = table.compare(&indicator.metric, base, variant, point)?;
            (found.ratio?, found.ci95.unwrap_or([found.ratio?; 2]))
        }
        None => {
            let cell = table.cell(variant, point).iter();
            let values: Vec<f64> = cell.filter_map(|r| r.metric(&indicator.metric)).collect();
            let value = (!values.is_empty()).then(|| stats::mean(&values))?;
            (value, [value; 2])
        }
    };
    Some(IndicatorResult {
        variant: variant.to_string(),
        indicator: indicator.name.clone(),
        metric: indicator.metric.clone(),
        base: indicator.base.clone(),
        point: point.to_string(),
        value,
        range: indicator.range,
        flagged: low > indicator.range[1] || high < indicator.range[0],
    })
}

/// Checks that faulty variants are flagged and sound ones are not; those that did not run are not
/// judged.
pub fn checks(plan: &Plan, results: &[IndicatorResult]) -> Vec<ControlResult> {
    let faulty = plan.watch.faulty.iter().map(|variant| (variant, true));
    let sound = plan.watch.sound.iter().map(|variant| (variant, false));
    faulty.chain(sound).map(|(variant, expected)| check(plan, variant, expected, results)).collect()
}

fn check(plan: &Plan, variant: &str, expected: bool, results: &[IndicatorResult]) -> ControlResult {
    let of_variant = || results.iter().filter(|r| r.variant == variant);
    let flags = of_variant().filter(|r| r.flagged).count();
    let right = (flags > 0) == expected;
    ControlResult {
        name: match expected {
            true => format!("{variant} is given away"),
            false => format!("{variant} is not suspected"),
        },
        metric: "flagged indicators".to_string(),
        variant: variant.to_string(),
        point: String::new(),
        band: if expected { [1.0, plan.indicators.len() as f64] } else { [0.0, 0.0] },
        ours: (of_variant().count() > 0).then_some(flags as f64),
        interval: None,
        verdict: match (of_variant().count(), right) {
            (0, _) => Verdict::NotJudged,
            (_, true) => Verdict::Reproduced,
            (_, false) => Verdict::Missed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Record, example};

    const PLAN: &str = "\
        name = \"t\"\ntitle = \"t\"\nvariants = [\"good\", \"bad\", \"slow\"]\n\
        watch = { faulty = [\"bad\", \"slow\", \"absent\"], sound = [\"good\"] }\n\
        [[indicator]]\nname = \"never\"\nmetric = \"overruns\"\nrange = [0, 0]\n\
        [[indicator]]\nname = \"rate\"\nmetric = \"ops_per_s\"\n\
        base = \"good\"\nrange = [0.9, 1.1]\n";

    fn record(variant: &str, seed: u64, rate: f64, overruns: u64) -> Record {
        let mut record = example(variant, seed, rate);
        record.counters.insert("overruns".to_string(), overruns);
        record
    }

    fn verdicts(records: &[Record]) -> Vec<(String, Verdict)> {
        let plan = Plan::parse("t", PLAN, &[]).unwrap();
        let results = all(&plan, &Table::new(records));
        checks(&plan, &results).into_iter().map(|c| (c.variant, c.verdict)).collect()
    }

    #[test]
    fn a_variant_is_flagged_by_an_invariant_or_by_a_rate() {
        let of = |seed, noise: f64| {
            let good = 10.0 + noise;
            [
                record("good", seed, good, 0),
                record("bad", seed, good, 3),
                record("slow", seed, good / 2.0, 0),
            ]
        };
        let records: Vec<Record> = [of(1, 0.0), of(2, 0.1), of(3, -0.1)].concat();
        let expected = [
            ("bad", Verdict::Reproduced),
            ("slow", Verdict::Reproduced),
            ("absent", Verdict::NotJudged),
            ("good", Verdict::Reproduced),
        ];
        assert_eq!(verdicts(&records), expected.map(|(v, verdict)| (v.to_string(), verdict)));
    }

    #[test]
    fn a_fault_that_nothing_shows_and_a_false_alarm_are_misses() {
        let records = [record("good", 1, 10.0, 1), record("bad", 1, 10.0, 0)];
        let found = verdicts(&records);
        assert_eq!(found[0], ("bad".to_string(), Verdict::Missed));
        assert_eq!(found[3], ("good".to_string(), Verdict::Missed));
    }

    #[test]
    fn a_rate_that_may_be_chance_flags_nothing() {
        let seeds = [(1, 10.0, 14.0), (2, 10.0, 8.0), (3, 10.0, 13.0)];
        let pair =
            |(seed, good, slow)| [record("good", seed, good, 0), record("slow", seed, slow, 0)];
        let records: Vec<Record> = seeds.map(pair).concat();
        assert_eq!(verdicts(&records)[1], ("slow".to_string(), Verdict::Missed));
    }
}
