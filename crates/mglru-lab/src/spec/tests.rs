use super::*;
use crate::backend::mock::Mock;

const PLAN: &str = r#"
name = "t"
title = "t"
backend = "mock"
variants = ["before", { name = "both", base = "before", set = { p10 = true } }]
seeds = 2
[groups."/a"]
memory.max = "64MiB"
[workload]
kind = "mock"
ops = 640
ops_per_s = 10.0
"#;

fn experiment(sets: &[&str], selection: &Selection) -> Result<Experiment, String> {
    let sets: Vec<_> = sets.iter().map(|s| s.parse().unwrap()).collect();
    let plan = Plan::parse("t.toml", PLAN, &sets).map_err(|e| e.to_string())?;
    Experiment::new(plan, selection, &Mock).map_err(|e| e.to_string())
}

fn titles(sets: &[&str], selection: &Selection) -> Vec<String> {
    experiment(sets, selection).unwrap().runs.iter().map(RunSpec::title).collect()
}

#[test]
fn runs_in_order_variant_seed_point() {
    assert_eq!(
        titles(&["workload.load=[1.0, 2.0]"], &Selection::default())[..5],
        [
            "before seed 1 (workload.load=1.0)",
            "before seed 1 (workload.load=2.0)",
            "before seed 2 (workload.load=1.0)",
            "before seed 2 (workload.load=2.0)",
            "both seed 1 (workload.load=1.0)",
        ]
    );
}

#[test]
fn the_hash_follows_meaning_not_selection() {
    let all = experiment(&[], &Selection::default()).unwrap();
    let some = Selection { variants: vec!["both".into()], seeds: Some(9), ..Selection::default() };
    let some = experiment(&[], &some).unwrap();
    assert_eq!(all.hash, some.hash);
    assert_eq!(some.runs.len(), 9);
    let shared = all.runs.iter().find(|r| r.title() == "both seed 1").unwrap();
    assert_eq!(shared.id, some.runs[0].id);
    let other = experiment(&["workload.ops=641"], &Selection::default()).unwrap();
    assert_ne!(all.hash, other.hash);
    let scaled = Selection { scale: Some(0.5), ..Selection::default() };
    assert_ne!(all.hash, experiment(&[], &scaled).unwrap().hash);
}

#[test]
fn scale_reaches_the_workload() {
    let half = Selection { scale: Some(0.5), ..Selection::default() };
    let experiment = experiment(&[], &half).unwrap();
    let outcome = experiment.runs[0].job.run(1, &|_| ()).unwrap();
    assert_eq!(outcome.metrics.ops, 320);
}

#[test]
fn mistakes_name_file_and_key_before_anything_runs() {
    let cases = [
        ("workload.opps=1", "t.toml: workload.opps: unknown key (did you mean ops, ops_per_s?)"),
        ("machine.memry=1", "t.toml: machine.memry: unknown key (did you mean memory?)"),
        (
            "groups./a.memry.low=128MiB",
            "t.toml: groups./a.memry.low: unknown key (did you mean memory.low, memory.max, \
             memory.min?)",
        ),
        ("variants=[\"afer\"]", "t.toml: variant = afer: unknown (did you mean after?)"),
    ];
    for (set, want) in cases {
        let half = Selection { scale: Some(0.5), ..Selection::default() };
        assert_eq!(experiment(&[set], &half).err().as_deref(), Some(want), "--set {set}");
    }
}

#[test]
fn a_rate_that_is_no_number_is_refused() {
    let e = experiment(&["workload.ops_per_s=0.0"], &Selection::default()).unwrap();
    let outcome = e.runs[0].job.run(1, &|_| ()).unwrap();
    assert_eq!(e.record(&e.runs[0], outcome).unwrap_err(), "a metric is not a finite number");
}
