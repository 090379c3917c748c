use super::*;
use crate::op::Workload;
use crate::script::Scripted;

fn small() -> AndroidParams {
    AndroidParams { rounds: 3, ..AndroidParams::default() }.scaled(1.0 / 64.0)
}

fn heavy() -> AndroidParams {
    AndroidParams {
        swipes: 20,
        music: true,
        fixed_pages: 5_000,
        camera_threads: 4,
        camera_buffer_pages: 6_400,
        camera_pages: 3_200,
        camera_file_pages: 1_280,
        photo_pages: 640,
        ..small()
    }
}

/// Lists the operations of every foreground task, all turns.
fn strings(params: &AndroidParams, seed: u64) -> (Vec<Vec<Op>>, u64) {
    let mut workload = Scripted::new(Android::new(params, seed).unwrap());
    let counted = (params.apps + params.camera_threads) as usize;
    let mut tasks = vec![Vec::new(); counted];
    while tasks.iter().any(|ops: &Vec<Op>| ops.last() != Some(&Op::Done)) {
        (0..).zip(&mut tasks).for_each(|(task, ops)| workload.fill(task, ops));
    }
    (tasks, workload.string_hash())
}

fn count(tasks: &[Vec<Op>], op: Op) -> usize {
    tasks.iter().flatten().filter(|&&other| other == op).count()
}

#[test]
fn every_app_is_launched_once_a_round_and_the_camera_opened() {
    let (tasks, _) = strings(&small(), 1);
    assert_eq!(count(&tasks, Op::End { class: LAUNCH }), 30);
    assert_eq!(count(&tasks, Op::End { class: CAMERA_START }), 0);
    let (tasks, _) = strings(&heavy(), 1);
    assert_eq!(count(&tasks, Op::End { class: LAUNCH }), 30);
    assert_eq!(count(&tasks, Op::End { class: CAMERA_START }), 3);
}

#[test]
fn all_tasks_stand_at_every_barrier_once() {
    let (tasks, _) = strings(&heavy(), 1);
    for id in 0..=3 * 12 {
        assert_eq!(count(&tasks, Op::Barrier { id }), tasks.len(), "{id}");
    }
}

#[test]
fn an_app_is_mapped_when_it_starts_and_unmapped_when_it_is_killed() {
    let (tasks, _) = strings(&small(), 1);
    // Six stay; of ten apps in turn none is there any more when its turn comes again.
    assert_eq!(count(&tasks, Op::Map { region: 0 }), 3);
    let unmapped = |op: &&Op| matches!(op, Op::Unmap { .. });
    let killed = tasks.iter().flatten().filter(unmapped).count() as u32 / APP_REGIONS;
    assert_eq!(killed, 30 - 6);
    let params = AndroidParams { keep: 10, ..small() };
    assert_eq!(count(&strings(&params, 1).0, Op::Map { region: 0 }), 1);
}

#[test]
fn launches_of_an_app_are_alike_and_stay_in_their_files() {
    let (tasks, _) = strings(&small(), 1);
    let layout = Android::new(&small(), 1).unwrap().layout();
    let launches: Vec<&[Op]> = tasks[4]
        .split(|op| *op == Op::End { class: SETUP })
        .filter(|part| part.contains(&Op::End { class: LAUNCH }))
        .map(|part| part.split(|op| *op == Op::End { class: LAUNCH }).next().unwrap())
        .collect();
    assert_eq!(launches.len(), 3);
    assert!(launches.windows(2).all(|pair| pair[0] == pair[1]));
    for op in &tasks[4] {
        match *op {
            Op::Touch { region, page, .. } => assert!(page < layout.regions[region as usize].pages),
            Op::Read { file, off, len } => {
                assert!(off + u64::from(len) <= layout.files[file as usize].bytes);
            }
            _ => {}
        }
    }
}

#[test]
fn the_background_never_ends_and_stays_in_its_files() {
    let mut workload = Scripted::new(Android::new(&heavy(), 1).unwrap());
    let layout = workload.layout();
    let background: Vec<u32> =
        (0..).zip(&layout.tasks).filter(|(_, task)| task.background).map(|(id, _)| id).collect();
    assert_eq!(background.len(), 3);
    for task in background {
        let mut ops = Vec::new();
        (0..5_000).for_each(|_| workload.fill(task, &mut ops));
        assert!(ops.iter().any(|op| matches!(op, Op::Think { .. })));
        for op in ops {
            if let Op::Read { file, off, len } | Op::Write { file, off, len } = op {
                assert!(off + u64::from(len) <= layout.files[file as usize].bytes);
            }
        }
    }
}

#[test]
fn seeds_differ_and_repeat() {
    assert_eq!(strings(&small(), 1).1, strings(&small(), 1).1);
    assert_ne!(strings(&small(), 1).1, strings(&small(), 2).1);
}

#[test]
fn wrong_numbers_are_named() {
    let params = AndroidParams { keep: 0, ..small() };
    let error = Android::new(&params, 1).unwrap_err().to_string();
    assert_eq!(error, "android.keep = 0: must be from 1 to 1024");
}

#[test]
fn files_are_loaded_and_shown_once_and_cached_apps_wake() {
    let asleep = AndroidParams { loaded_pages: 640, shown_pages: 320, ..small() };
    let awake = AndroidParams { awake_per_mille: 30, ..asleep.clone() };
    let layout = Android::new(&awake, 1).unwrap().layout();
    let (tasks, _) = strings(&awake, 1);
    for (file, pages, write) in [(LOADED, 640, true), (SHOWN, 320, false)] {
        let mut parts: Vec<(u64, u64)> = tasks
            .iter()
            .flatten()
            .filter_map(|op| match *op {
                Op::Write { file: at, off, len } if write && at == file => Some((off, len)),
                Op::Read { file: at, off, len } if !write && at == file => Some((off, len)),
                _ => None,
            })
            .map(|(off, len)| (off, u64::from(len)))
            .collect();
        parts.sort_unstable();
        assert!(
            parts.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0),
            "no gap, no repeat"
        );
        let bytes = 30 * pages * PAGE_BYTES;
        assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), bytes);
        assert_eq!(layout.files[file as usize].bytes, bytes);
    }
    let of_others = |params: &AndroidParams| {
        let (tasks, _) = strings(params, 1);
        let of = |op: &Op| match *op {
            Op::Touch { region, .. } => Some(region / APP_REGIONS),
            _ => None,
        };
        let all = (0..).zip(&tasks).flat_map(|(app, ops)| ops.iter().map(move |op| (app, op)));
        all.filter(|&(app, op)| of(op).is_some_and(|other: u32| other != app)).count()
    };
    assert_eq!(of_others(&asleep), 0);
    assert!(of_others(&awake) > 0);
}
