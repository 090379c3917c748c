use super::*;
use crate::record::{Record, example};
use serde_json::Value as Json;

fn plan() -> Plan {
    let text = "name=\"t\"\ntitle=\"t\"\nbackend=[\"kernel\",\"sim\"]\nbase=\"classic\"\n\
        variants=[\"classic\",\"k6.12\"]\nmetrics=[\"ops_per_s\",\"custom.kills\"]\n\
        [[control]]\nname=\"all is well\"\nmetric=\"custom.kills\"\nvariant=\"k6.12\"\n\
        value=[0.0,0.0]";
    Plan::parse("t.toml", text, &[]).unwrap()
}

/// Rates of `classic` and `k6.12`, and kills of the latter.
fn report(backend: &str, rates: [f64; 2], kills: u64) -> Report {
    let record = |variant: &str, rate, kills: u64| {
        let mut record: Record = example(variant, 1, rate);
        record.custom.insert("kills".to_string(), Json::from(kills));
        record
    };
    let records = vec![record("classic", rates[0], 0), record("k6.12", rates[1], kills)];
    Report::new(&plan(), backend, records)
}

fn agree(sides: &Sides, row: &str) -> Option<bool> {
    sides.rows.iter().find(|r| r.row == row).unwrap_or_else(|| panic!("no {row}: {sides:?}")).agree
}

#[test]
fn the_way_must_be_the_same_but_not_the_figure() {
    let sides =
        Sides::new(&plan(), &[report("kernel", [10.0, 12.0], 0), report("sim", [100.0, 150.0], 0)]);
    assert_eq!(agree(&sides, "ops_per_s, classic"), None);
    assert_eq!(agree(&sides, "ops_per_s, k6.12 against classic"), Some(true));
    assert_eq!(agree(&sides, "custom.kills, k6.12"), Some(true));
    assert_eq!((agree(&sides, "all is well"), sides.exit_status()), (Some(true), 0));
    let other =
        Sides::new(&plan(), &[report("kernel", [10.0, 12.0], 0), report("sim", [100.0, 101.0], 0)]);
    assert_eq!(agree(&other, "ops_per_s, k6.12 against classic"), Some(false));
    assert_eq!(other.exit_status(), 1);
}

#[test]
fn what_happens_on_one_side_only_is_no_agreement() {
    let same = [10.0, 10.0];
    let sides = Sides::new(&plan(), &[report("kernel", same, 1), report("sim", same, 0)]);
    assert_eq!(agree(&sides, "custom.kills, k6.12"), Some(false));
    assert_eq!(agree(&sides, "custom.kills, k6.12 against classic"), Some(false));
    assert_eq!(agree(&sides, "all is well"), Some(false));
}

#[test]
fn both_missing_an_expectation_agree_but_fail() {
    let same = [10.0, 10.0];
    let sides = Sides::new(&plan(), &[report("kernel", same, 1), report("sim", same, 1)]);
    assert_eq!((agree(&sides, "all is well"), sides.exit_status()), (Some(true), 1));
}
