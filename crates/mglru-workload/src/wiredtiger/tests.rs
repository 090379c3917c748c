use proptest::prelude::*;

use super::*;
use crate::rng::Rng;
use crate::ycsb::Mix;

const SMALL: f64 = 1.0 / 64.0;

fn small() -> WiredTigerParams {
    WiredTigerParams::at_scale(SMALL)
}

/// Runs the tasks in turns: `turns(task)` operations each; hands every operation to `see`.
fn drive(
    workload: &mut WiredTigerWorkload,
    mut turns: impl FnMut(TaskId) -> usize,
    mut see: impl FnMut(TaskId, Op),
) {
    let tasks = workload.layout().tasks;
    let mut done = vec![false; tasks.len()];
    while (0..tasks.len()).any(|task| !tasks[task].background && !done[task]) {
        for (task, done) in (0..).zip(&mut done) {
            for _ in 0..turns(task) {
                if *done {
                    break;
                }
                let op = workload.next(task);
                *done = op == Op::Done;
                see(task, op);
            }
        }
    }
}

fn figure(workload: &WiredTigerWorkload, name: &str) -> f64 {
    workload.figures().into_iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn a_64th_misses_as_published() {
    let mut workload = WiredTigerWorkload::new(&small(), 1).unwrap();
    let mut ends = 0;
    drive(&mut workload, |_| 8, |_, op| ends += u64::from(matches!(op, Op::End { class: 0..5 })));
    assert_eq!(ends, 93_750);
    let misses = figure(&workload, "wt_misses_per_op");
    assert!((0.60..0.72).contains(&misses), "{misses}");
    let index = figure(&workload, "wt_index_reads_per_op");
    assert!((0.14..0.18).contains(&index), "{index}");
    let written = figure(&workload, "wt_blocks_written_per_update");
    assert!((0.5..0.95).contains(&written), "{written}");
    assert_eq!(figure(&workload, "wt_checkpoints"), 1.0);
}

#[test]
fn keys_do_not_depend_on_interleaving() {
    let params = WiredTigerParams { operations: 20_000, mix: Mix::A, ..small() };
    let hash = |seed: u64, order: u64| {
        let mut workload = WiredTigerWorkload::new(&params, seed).unwrap();
        let mut rng = Rng::new(order, 0);
        drive(&mut workload, |_| rng.below(40) as usize, |_, _| {});
        (workload.string_hash(), figure(&workload, "wt_misses"))
    };
    let (first, second) = (hash(1, 1), hash(1, 2));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1, "the interleavings were the same");
    assert_ne!(first.0, hash(2, 1).0);
}

#[test]
fn the_same_order_gives_the_same_operations() {
    let params = WiredTigerParams { operations: 5000, ..small() };
    let ops = || {
        let mut all = Vec::new();
        let mut workload = WiredTigerWorkload::new(&params, 1).unwrap();
        drive(&mut workload, |_| 5, |task, op| all.push((task, op)));
        all
    };
    assert!(ops() == ops());
}

#[test]
fn blocks_are_read_only_from_where_they_were_written() {
    let params = WiredTigerParams { operations: 60_000, mix: Mix::A, ..small() };
    let mut workload = WiredTigerWorkload::new(&params, 1).unwrap();
    let loaded = workload.layout().files[layout::TABLE_FILE as usize].bytes;
    let (mut written, mut moved) = (std::collections::BTreeSet::new(), 0);
    let mut rng = Rng::new(7, 0);
    drive(
        &mut workload,
        |_| rng.below(40) as usize,
        |_, op| match op {
            Op::Write { file: layout::TABLE_FILE, off, len } => {
                assert_eq!((len, off % 4096), (28_672, 0));
                written.insert(off);
            }
            Op::Read { file: layout::TABLE_FILE, off, len } => {
                assert_eq!(len, 28_672);
                assert!(off + u64::from(len) <= loaded || written.contains(&off));
                moved += u64::from(written.contains(&off));
            }
            _ => {}
        },
    );
    let growth = figure(&workload, "wt_table_growth_pages") as u64 * 4096;
    assert!(moved > 0 && growth > 0);
    assert!(written.last().unwrap() + 28_672 <= loaded + growth);
}

#[test]
fn operations_stay_inside_the_layout() {
    let params = WiredTigerParams { operations: 20_000, ..small() };
    let mut workload = WiredTigerWorkload::new(&params, 1).unwrap();
    let layout = workload.layout();
    drive(
        &mut workload,
        |_| 8,
        |_, op| match op {
            Op::Touch { region, page, .. } => assert!(page < layout.regions[region as usize].pages),
            Op::Read { file, off, len } if file != layout::TABLE_FILE => {
                assert!(off + u64::from(len) <= layout.files[file as usize].bytes);
            }
            Op::Write { file, off, len } if file != layout::TABLE_FILE => {
                assert!((200..=300).contains(&len));
                assert!(off + u64::from(len) <= layout.files[file as usize].bytes);
            }
            Op::Fsync { file } => assert!((file as usize) < layout.files.len()),
            Op::Mark { phase } => assert!((phase as usize) < layout.phases.len()),
            Op::End { class } => assert!((class as usize) < layout.classes.len()),
            _ => {}
        },
    );
}

#[test]
fn phases_begin_in_order_and_clients_pass_the_gate() {
    let params = WiredTigerParams { operations: 1000, warm_operations: 500, ..small() };
    let params = WiredTigerParams { split_run: true, ..params };
    let mut workload = WiredTigerWorkload::new(&params, 1).unwrap();
    assert_eq!(workload.layout().phases, ["populate", "run", "run.last_half", "warm"]);
    let (mut marks, mut gates, mut touched) = (Vec::new(), 0, 0);
    drive(
        &mut workload,
        |_| 8,
        |_, op| match op {
            Op::Mark { phase } => marks.push(phase),
            Op::Barrier { id } => gates += u32::from(id == POPULATED),
            Op::Touch { region: layout::OTHER, write: true, .. } => touched += 1,
            _ => {}
        },
    );
    assert_eq!(marks, [0, 1, 2, 3]);
    assert_eq!(gates, params.threads);
    assert_eq!(touched, params.other_pages() + 1500);
}

#[test]
fn clients_evict_when_the_workers_do_not() {
    let params = WiredTigerParams { operations: 30_000, mix: Mix::A, ..small() };
    let mut workload = WiredTigerWorkload::new(&params, 1).unwrap();
    drive(&mut workload, |task| if task < params.threads { 8 } else { 0 }, |_, _| {});
    assert!(figure(&workload, "wt_client_evictions") > 5000.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_interleaving_completes(
        seed: u64, cache_blocks in 60u32..300, mix in prop::sample::select(vec![
            Mix::A, Mix::B, Mix::C, Mix::F,
        ]),
    ) {
        let params = WiredTigerParams {
            records: 20_000,
            operations: 3000,
            checkpoint_every: 500,
            cache_blocks,
            mix,
            ..small()
        };
        let mut workload = WiredTigerWorkload::new(&params, seed).unwrap();
        let (mut rng, mut ends) = (Rng::new(seed, 99), 0);
        drive(&mut workload, |_| rng.below(30) as usize, |_, op| {
            ends += u64::from(matches!(op, Op::End { class: 0..5 }));
        });
        prop_assert_eq!(ends, 3000);
    }
}
