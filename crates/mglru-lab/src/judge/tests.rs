use super::*;
use crate::record::{Record, example};

const PLAN: &str = r#"
name = "t"
title = "t"
variants = ["before", "after"]
metrics = ["ops_per_s"]
[[published]]
metric = "ops_per_s"
document = "000"
before = 100.0
after = 120.0
[[neutral]]
metric = "ops_per_s"
variant = "after"
[[expect]]
name = "half the gain"
metric = "ops_per_s"
variant = "half"
share = [0.4, 0.6]
of = "after"
[[expect]]
name = "wt"
metric = "custom.wt"
variant = "after"
value = [2.0, 3.0]
[[expect]]
name = "loses"
metric = "ops_per_s"
variant = "random"
ratio = [0.0, 0.95]
"#;

fn plan() -> Plan {
    Plan::parse("t", PLAN, &[]).unwrap()
}

fn records(variant: &str, rates: &[f64]) -> Vec<Record> {
    rates.iter().zip(1..).map(|(rate, seed)| example(variant, seed, *rate)).collect()
}

fn judged(after: &[f64]) -> (Verdict, Verdict) {
    let before = records("before", &vec![100.0; after.len()]);
    let all = [before, records("after", after)].concat();
    let table = Table::new(&all);
    (published(&plan(), &table)[0].verdict, neutral(&plan(), &table)[0].verdict)
}

#[test]
fn direction_and_band_both_count() {
    use Verdict::*;
    assert_eq!(judged(&[118.0, 120.0, 122.0]).0, Reproduced);
    // Right side, wrong size: the band is [1.1, 1.32].
    assert_eq!(judged(&[104.0, 105.0, 106.0]).0, Missed);
    assert_eq!(judged(&[140.0, 141.0, 142.0]).0, Missed);
    // Mean in the band, but the interval holds 1.
    assert_eq!(judged(&[90.0, 120.0, 160.0]).0, Missed);
    assert_eq!(judged(&[80.0, 81.0, 82.0]).0, Missed);
}

#[test]
fn neutral_needs_the_whole_interval_inside() {
    use Verdict::*;
    assert_eq!(judged(&[99.9, 100.0, 100.1]).1, Neutral);
    assert_eq!(judged(&[95.0, 100.0, 105.0]).1, Missed);
    assert_eq!(judged(&[104.0, 104.1, 104.2]).1, Missed);
}

#[test]
fn one_pair_is_judged_by_its_point_estimate() {
    assert_eq!(judged(&[120.0]), (Verdict::Reproduced, Verdict::Missed));
    assert_eq!(judged(&[101.0]), (Verdict::Missed, Verdict::Neutral));
}

#[test]
fn absent_variants_are_not_judged() {
    let all = records("before", &[1.0, 2.0]);
    let table = Table::new(&all);
    assert_eq!(published(&plan(), &table)[0].verdict, Verdict::NotJudged);
    assert!(controls(&plan(), &table).iter().all(|c| c.verdict == Verdict::NotJudged));
}

#[test]
fn controls_by_share_value_and_ratio() {
    let all = [
        records("before", &[100.0, 100.0]),
        records("after", &[121.0, 121.0]),
        records("half", &[110.0, 110.0]),
        records("random", &[99.0, 99.0]),
    ]
    .concat();
    let found = controls(&plan(), &Table::new(&all));
    let verdicts: Vec<Verdict> = found.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [Verdict::Reproduced, Verdict::Reproduced, Verdict::Missed]);
    assert!((found[0].ours.unwrap() - 0.5).abs() < 1e-12);
    assert_eq!(found[1].ours, Some(2.5));
}

#[test]
fn a_miss_anywhere_is_a_miss() {
    use Verdict::*;
    assert_eq!(overall([Reproduced, Missed, Neutral]), Missed);
    assert_eq!(overall([NotJudged, Neutral, Reproduced]), Reproduced);
    assert_eq!(overall([NotJudged, Neutral]), Neutral);
    assert_eq!(overall([]), NotJudged);
}
