//! The reference strings themselves: a change of a generator changes these numbers, and no
//! platform, build profile or interleaving may.

use mglru_workload::{Op, Workload, WorkloadSpec};

/// Runs all tasks, one after the other if nothing makes them wait, and returns the hash.
fn hash(spec: &str, scale: f64) -> u64 {
    let spec: WorkloadSpec = toml::from_str(spec).unwrap();
    let mut workload = spec.build(1, scale).unwrap();
    let tasks = workload.layout().tasks;
    let mut done: Vec<bool> = tasks.iter().map(|task| task.background).collect();
    while !done.iter().all(|&done| done) {
        for (task, done) in (0..).zip(&mut done) {
            turn(workload.as_mut(), task, done);
        }
    }
    workload.string_hash()
}

/// Operations of a task until it waits.
fn turn(workload: &mut dyn Workload, task: u32, done: &mut bool) {
    for _ in 0..1000 {
        if *done {
            return;
        }
        let op = workload.next(task);
        *done = op == Op::Done;
        if matches!(op, Op::Think { .. } | Op::Barrier { .. }) {
            return;
        }
    }
}

#[test]
fn strings_are_the_recorded_ones() {
    let cases = [
        ("kind = \"wiredtiger\"", 1.0 / 64.0, 0xdc7b_056e_f0ae_2031_u64),
        ("kind = \"ycsb\"\nmix = \"d\"", 1.0 / 64.0, 0xefa3_731e_f308_14cd),
        ("kind = \"ycsb\"\nmix = \"e\"", 1.0 / 256.0, 0xe36a_2ec9_d24e_a09a),
        ("kind = \"fio\"\nwrite_per_mille = 300", 1.0 / 4096.0, 0xf177_7c37_4011_490f),
        (
            "kind = \"fio\"\ndistribution = \"uniform\"\nrandom_map = true",
            1.0 / 4096.0,
            0xb5e9_b110_bb33_418b,
        ),
        ("kind = \"touch\"\nwrite_per_mille = 100", 1.0 / 16.0, 0xcc34_daf8_ba1c_1e21),
    ];
    let ours = cases.map(|(spec, scale, _)| format!("{spec:?} {:016x}", hash(spec, scale)));
    let recorded = cases.map(|(spec, _, hash)| format!("{spec:?} {hash:016x}"));
    assert_eq!(ours, recorded);
}
