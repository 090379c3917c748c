use super::*;
use crate::op::Workload;
use crate::script::Scripted;
use crate::script::tests::{ends, strings};

fn small() -> KernelBuildParams {
    KernelBuildParams { jobs: 20, parallel: 3, heap_pages: 200, ..Default::default() }
}

fn run(seed: u64) -> (Vec<Vec<Op>>, u64) {
    let mut workload = Scripted::new(KernelBuild::new(&small(), seed).unwrap());
    let tasks = strings(&mut workload);
    (tasks, workload.string_hash())
}

#[test]
fn every_file_is_compiled_once_and_linked() {
    let (tasks, _) = run(1);
    assert_eq!((ends(&tasks, 0), ends(&tasks, SETUP)), (20, 3));
    let objects = |write: bool| {
        let of = |op: &&Op| matches!(**op, Op::Touch { region: 6, write: w, .. } if w == write);
        tasks.iter().flatten().filter(of).count() as u32
    };
    assert_eq!((objects(true), objects(false)), (20 * OBJECT_PAGES, 20 * OBJECT_PAGES));
}

#[test]
fn a_heap_is_built_in_order_and_gone_over_behind() {
    let (tasks, _) = run(1);
    let mut built = 0;
    for op in &tasks[1] {
        match *op {
            Op::Map { region: 2 } => built = 0,
            Op::Touch { region: 2, page, .. } => {
                assert!(page <= built, "{page} is not built");
                built += u32::from(page == built);
            }
            _ => {}
        }
    }
}

#[test]
fn a_job_is_the_same_in_any_slot() {
    let hash = |parallel| {
        let params = KernelBuildParams { parallel, ..small() };
        let mut workload = Scripted::new(KernelBuild::new(&params, 1).unwrap());
        strings(&mut workload);
        workload.string_hash()
    };
    assert_eq!((hash(1), hash(3)), (hash(3), run(1).1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn most_revisits_are_young() {
    let mut rng = Rng::new(1, 0);
    let ages: Vec<u32> = (0..100_000).map(|_| 30_000 - revisit(&mut rng, 30_000)).collect();
    let mean = ages.iter().map(|&age| f64::from(age)).sum::<f64>() / 1e5;
    // 0.95·2,000 and 0.05·15,000.
    assert!((mean - 2_650.0).abs() < 60.0, "{mean}");
}

#[test]
fn wrong_numbers_are_named() {
    let params = KernelBuildParams { parallel: 0, ..small() };
    let error = KernelBuild::new(&params, 1).unwrap_err().to_string();
    assert_eq!(error, "kernel-build.parallel = 0: must be from 1 to 4096");
}
