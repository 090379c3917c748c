use super::*;

fn workload(params: &HighallocParams) -> HighallocWorkload {
    HighallocWorkload::new(params, 1).unwrap()
}

/// Operations of a build over so many jobs.
fn jobs(n: usize) -> Vec<Op> {
    let mut builder = Builder::new(1, 3, 800, 7);
    let (mut ops, mut left) = (Vec::new(), n);
    while left > 0 {
        let op = builder.next();
        left -= usize::from(matches!(op, Op::Free { .. }));
        ops.push(op);
    }
    // The rest of the last job.
    ops.extend((0..3).map(|_| builder.next()));
    ops
}

#[test]
fn three_builds_make_the_load_of_an_attempt() {
    let ops = jobs(40);
    let slots = 40.0 * 10.909;
    let sum = |pick: fn(&Op) -> u64| 3.0 * ops.iter().map(pick).sum::<u64>() as f64 / slots;
    let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.02, "{got}, not {want}");
    close(sum(|op| u64::from(matches!(op, Op::Touch { .. }))), 2_750.0);
    close(sum(|op| if let Op::Write { len, .. } = op { u64::from(*len) >> 12 } else { 0 }), 200.0);
    close(
        sum(|op| if let Op::Kernel(KernelOp::Inodes { nr }) = op { u64::from(*nr) } else { 0 }),
        60.0,
    );
    let slept: u64 = ops.iter().map(|op| if let Op::Think { ns } = op { *ns } else { 0 }).sum();
    close(slept as f64 / 40.0, 10.909 * 0.125 * 1e9);
}

#[test]
fn page_tables_go_with_their_job_and_slab_stays() {
    let mut held = 0_i64;
    let mut least = i64::MAX;
    for op in jobs(5) {
        match op {
            Op::Kernel(KernelOp::Take { pages }) => held += i64::from(pages),
            Op::Kernel(KernelOp::Give { pages }) => held -= i64::from(pages),
            _ => continue,
        }
        least = least.min(held);
    }
    assert_eq!((least, held), (0, 5 * 10), "ten pages of slab stay of each job");
}

#[test]
fn all_that_is_read_and_written_exists() {
    let workload = workload(&HighallocParams::default());
    let layout = workload.layout();
    for op in jobs(60) {
        if let Op::Read { file, off, len } = op {
            assert!(off + u64::from(len) <= layout.files[file as usize].bytes, "{op:?}");
        }
    }
    assert_eq!(layout.tasks.iter().filter(|task| task.background).count(), 3);
    assert_eq!(layout.files[workload.dd_file() as usize].name, "dd");
}

#[test]
fn the_driver_makes_three_passes_and_ends() {
    let mut workload = workload(&HighallocParams::default());
    let mut made = [0; 3];
    let mut builds_end = None;
    loop {
        match workload.next(DRIVER) {
            Op::Kernel(KernelOp::TryBlock { order: 9, repeat: false, class }) => {
                made[usize::from(class)] += 1;
            }
            Op::Truncate { file: 0, .. } => builds_end = Some(workload.next(1)),
            Op::Done => break,
            _ => {}
        }
    }
    assert_eq!(made, [486; 3], "95 per cent of 512 blocks");
    assert_eq!(builds_end, Some(Op::Done), "nobody builds any more");
}

#[test]
fn a_build_that_is_killed_gives_its_page_tables_back() {
    let mut builder = Builder::new(0, 3, 800, 7);
    let mut taken = 0;
    while taken == 0 {
        if let Op::Kernel(KernelOp::Take { pages }) = builder.next() {
            taken = pages;
        }
    }
    assert_eq!(builder.stop(), Op::Kernel(KernelOp::Give { pages: taken }));
    assert_eq!(builder.stop(), Op::Done);
}

#[test]
fn the_string_depends_on_the_seed_alone() {
    let hash = |seed| HighallocWorkload::new(&HighallocParams::default(), seed).unwrap();
    assert_eq!(hash(1).string_hash(), hash(1).string_hash());
    assert_ne!(hash(1).string_hash(), hash(2).string_hash());
}

#[test]
fn wrong_numbers_are_named() {
    let params = HighallocParams { order: 11, ..HighallocParams::default() };
    let error = HighallocWorkload::new(&params, 1).unwrap_err().to_string();
    assert_eq!(error, "highalloc.order = 11: must be from 1 to 10");
}

#[test]
fn objects_change_blocks_of_their_file_system() {
    let layout = workload(&HighallocParams::default()).layout();
    let blocks = layout.blocks.unwrap();
    let (mut changed, mut new) = (std::collections::BTreeSet::new(), 0_u64);
    for op in jobs(40) {
        let Op::Write { file, off, len } = op else { continue };
        if file == blocks {
            assert!(off + u64::from(len) <= layout.files[file as usize].bytes, "{op:?}");
            assert!(off / PAGE_BYTES / super::blocks::TREE_BLOCKS == 1, "of the second tree");
            changed.insert(off / PAGE_BYTES);
            new += u64::from(u64::from(len) == PAGE_BYTES);
        }
    }
    // 200 pages an attempt, a third of them this build's, 30 to an object: one page for each, and
    // a page of the inode table for each sixteen files, of a directory for each ten objects.
    let objects = 40.0 * 10.909 * 200.0 / 3.0 / 30.0;
    assert!((new as f64 / objects - 1.0).abs() < 0.02, "{new}, not {objects}");
    let shared = objects * (3.0 / 16.0 + 1.0 / 10.0) + 1.0;
    assert!((changed.len() as f64 / (objects + shared) - 1.0).abs() < 0.02, "{}", changed.len());
}
