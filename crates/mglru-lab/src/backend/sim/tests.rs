use super::*;
use crate::counters;
use crate::plan::Plan;
use crate::plans;
use crate::record::Record;
use crate::runner::{Progress as Bar, run_all};
use crate::spec::{Experiment, Selection};
use crate::store::Store;

const PLAN: &str = r#"
name = "t"
title = "t"
variants = ["before", "after", "classic"]
seeds = 2
[machine]
memory = "64MiB"
cpus = 2
[groups."/touch"]
memory.max = "4MiB"
[workload]
kind = "touch"
engine = "pread"
pages = 4096
operations = 8000
tasks = 2
write_per_mille = 50
"#;

fn experiment(sets: &[&str]) -> Result<Experiment, String> {
    let sets: Vec<_> = sets.iter().map(|s| s.parse().unwrap()).collect();
    let plan = Plan::parse("t", PLAN, &sets).map_err(|e| e.to_string())?;
    Experiment::new(plan, &Selection::default(), &Sim).map_err(|e| e.to_string())
}

fn run(jobs: usize) -> (String, Vec<Record>) {
    let dir = tempfile::tempdir().unwrap();
    let experiment = experiment(&[]).unwrap();
    let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
    let records = run_all(&experiment, &mut store, jobs, &Bar::hidden()).unwrap();
    (std::fs::read_to_string(dir.path().join("records.jsonl")).unwrap(), records)
}

#[test]
fn jobs_do_not_change_a_byte_and_variants_see_one_string() {
    let (one, records) = run(1);
    assert_eq!(one, run(3).0);
    for pair in records.chunks(2) {
        assert_eq!(pair[0].custom["string_hash"], records[0].custom["string_hash"]);
        assert_eq!(pair[1].custom["string_hash"], records[1].custom["string_hash"]);
        assert_ne!(pair[0].custom["string_hash"], pair[1].custom["string_hash"]);
    }
}

#[test]
fn a_record_has_every_listed_counter_and_all_operations() {
    let (_, records) = run(2);
    for record in &records {
        assert_eq!(record.metrics.ops, 8000);
        let absent = counters::all().into_iter().map(|(name, _)| name);
        let absent: Vec<String> =
            absent.filter(|name| !record.counters.contains_key(name)).collect();
        // Machines of 7.1 and 7.2, workloads with commands, and machines with page frames.
        assert_eq!(absent[..2], ["workingset_nodereclaim", "refused_commands"]);
        assert!(absent[2..].iter().all(|name| name.starts_with("compact_")), "{absent:?}");
        assert!(record.counters["pgpgin"] > 0 && record.counters["pgsteal_direct"] > 0);
    }
}

#[test]
fn mistakes_name_their_key() {
    let cases = [
        ("machine.memry=1", "t: machine.memry: unknown key (did you mean memory?)"),
        ("machine.cpus=0", "t: machine.cpus = 0: must be from 1 to 4096"),
        ("machine.groups.x=1", "t: machine.groups: limits stand in [groups.\"/name\"], outside"),
        ("workload.kind=tuch", "t: workload.kind = tuch: unknown (did you mean touch?)"),
        ("workload.tasks=0", "t: workload.tasks = 0: must be from 1 to"),
        (
            "groups./x.memory.max=4MiB",
            "t: groups./x: the workload has no such group (it has: /touch)",
        ),
        ("reclaim.flor=1", "t: reclaim.flor: unknown key (did you mean floor"),
        ("reclaim.floor=v9", "t: reclaim.floor = v9: must be none, v2, v4, v5 or v7"),
        ("variants=[\"afer\"]", "t: variant = afer: unknown (did you mean after"),
    ];
    for (set, want) in cases {
        let got = experiment(&[set]).err().unwrap_or_default();
        assert!(got.starts_with(want), "--set {set}\n got {got}\nwant {want}");
    }
}

#[test]
fn sweeps_reach_machine_limits_and_rules() {
    let sets = ["machine.cpus=[1,2]", "reclaim.floor=[\"v5\",\"v7\"]", "workload.theta=[0.8,0.9]"];
    assert_eq!(experiment(&sets).unwrap().runs.len(), 3 * 2 * 8);
}

#[test]
fn every_built_in_plan_of_this_backend_can_run() {
    let plans = plans::BUILT_IN.iter().filter(|(name, _)| *name != "trace");
    let plans = plans.map(|(name, _)| plans::find(name, &[]).unwrap());
    for plan in plans.filter(|plan| plan.backends == ["sim"]) {
        // Blocks do not shrink with the machine, nor does a job page by page.
        let exact =
            ["advice", "highalloc", "large-folios", "read-scan"].contains(&plan.name.as_str());
        let scale = (!exact).then_some(1.0 / 64.0);
        let selection = Selection { scale, ..Selection::default() };
        Experiment::new(plan, &selection, &Sim).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_trace_without_a_path_is_refused() {
    let plan = plans::find("trace", &[]).unwrap();
    let error = Experiment::new(plan, &Selection::default(), &Sim).err().unwrap();
    assert_eq!(error.to_string(), "plan trace: workload.path: is missing");
}

/// A job of 2048 pages, read twice.
const JOB: &str = r#"
name = "t"
title = "t"
variants = ["k6.12"]
seeds = 1
[machine]
memory = "64MiB"
readahead_kb = 0
[workload]
kind = "job"
text = """
set memory.max 4M
region kind=pread path=/f pages=2048
stream region=0 gen=seq n=2048 base=0 wr=0
phase all ops=4096 mix=0:1
"""
"#;

fn job(limits: &str) -> Record {
    let plan = Plan::parse("t", &format!("{JOB}{limits}"), &[]).unwrap();
    let experiment = Experiment::new(plan, &Selection::default(), &Sim).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
    run_all(&experiment, &mut store, 1, &Bar::hidden()).unwrap().remove(0)
}

#[test]
fn a_jobs_own_limit_holds_unless_the_plan_gives_another() {
    let peak = |record: &Record| record.groups["/job"].memory_stat["memory.peak"];
    let own = job("");
    assert!(own.counters["pgsteal_direct"] > 0 && peak(&own) <= 4 << 20, "{}", peak(&own));
    let planned = job("[groups.\"/job\"]\nmemory.max = \"16MiB\"");
    assert!(peak(&planned) > 7 << 20 && planned.counters["pgsteal_direct"] == 0);
}
