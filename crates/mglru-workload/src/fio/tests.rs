use super::*;

const E7_BLOCKS: u64 = 786_432;

fn small() -> FioParams {
    FioParams {
        jobs: 3,
        blocks: 1024,
        ramp_operations: 100,
        operations: 1000,
        ..Default::default()
    }
}

fn run(params: &FioParams) -> (Vec<Vec<Op>>, u64) {
    let mut workload = FioWorkload::new(params, 1).unwrap();
    let jobs = (0..params.jobs).map(|job| {
        let mut ops = Vec::new();
        while ops.last() != Some(&Op::Done) {
            workload.fill(job, &mut ops);
        }
        ops
    });
    (jobs.collect(), workload.string_hash())
}

/// Draws per block, the most frequent first.
fn popularity(params: &FioParams, draws: usize) -> Vec<u32> {
    let mut choice = BlockChoice::new(params, 1, 0);
    let mut rng = Rng::new(1, 0);
    let mut seen = vec![0u32; params.blocks as usize];
    (0..draws).for_each(|_| seen[choice.draw(&mut rng) as usize] += 1);
    seen.sort_unstable_by(|a, b| b.cmp(a));
    seen
}

#[test]
fn zipf_mass_is_as_computed_for_e7() {
    let draws = 4_000_000;
    let mut ranks = vec![0u32; E7_BLOCKS as usize];
    let zipf = GrayZipf::new(E7_BLOCKS, 1.2);
    let mut rng = Rng::new(1, 0);
    (0..draws).for_each(|_| ranks[zipf.rank(rng.unit32()) as usize] += 1);
    let mass = |n: u64| {
        let hits: u64 = ranks[..n as usize].iter().map(|&n| u64::from(n)).sum();
        hits as f64 / f64::from(draws)
    };
    for (blocks, expected) in [(1, 0.190), (E7_BLOCKS / 100, 0.910), (E7_BLOCKS / 10, 0.965)] {
        assert!((mass(blocks) - expected).abs() < 0.002, "{blocks}: {}", mass(blocks));
    }
}

#[test]
fn reachable_blocks_are_as_computed_for_e7() {
    let reachable = |blocks: u64| {
        let mut seen = vec![false; blocks as usize];
        (0..blocks).for_each(|rank| seen[spread(rank, 12_345, blocks) as usize] = true);
        seen.iter().filter(|seen| **seen).count() as f64 / blocks as f64
    };
    for (blocks, expected) in [(E7_BLOCKS, 0.935), (49_152, 0.42), (98_304, 0.51)] {
        assert!((reachable(blocks) - expected).abs() < 0.006, "{blocks}: {}", reachable(blocks));
    }
    assert_eq!(reachable(65_536), 1.0);
}

#[test]
fn uniform_has_no_popular_block() {
    let params = FioParams { distribution: Distribution::Uniform, ..small() };
    let seen = popularity(&params, 1_024_000);
    assert!(seen[0] < 1_150 && seen[1023] > 850, "{} {}", seen[0], seen[1023]);
}

#[test]
fn random_map_takes_each_block_once_per_pass() {
    let distribution = Distribution::Uniform;
    let params = FioParams { distribution, random_map: true, blocks: 1000, ..small() };
    assert!(popularity(&params, 3000).iter().all(|&n| n == 3));
}

#[test]
fn phases_are_marked_once_and_all_operations_done() {
    let (jobs, _) = run(&small());
    let count = |ops: &[Op], op| ops.iter().filter(|&&other| other == op).count();
    let all = jobs.concat();
    assert_eq!((count(&all, Op::Mark { phase: 0 }), count(&all, Op::Mark { phase: 1 })), (1, 1));
    assert_eq!(count(&all, Op::Barrier { id: 0 }), 3);
    // Accesses of the ramp are a class of their own, and so is each job's wait for the others.
    assert_eq!(count(&all, Op::End { class: RAMP }), 100 + 3);
    assert_eq!(count(&all, Op::End { class: 0 }), 1000);
    assert_eq!(jobs[0][0], Op::Mark { phase: 0 });
}

#[test]
fn nothing_is_measured_before_the_run_is_marked() {
    for ramp_operations in [0, 100] {
        let (jobs, _) = run(&FioParams { ramp_operations, ..small() });
        for (id, ops) in jobs.iter().enumerate() {
            let gate = ops.iter().position(|op| *op == Op::Barrier { id: 1 }).unwrap();
            let first = ops.iter().position(|op| *op == Op::End { class: 0 }).unwrap();
            assert!(gate < first);
            assert_eq!(ops[..gate].contains(&Op::Mark { phase: 1 }), id == 0);
        }
    }
}

#[test]
fn batches_and_single_steps_agree() {
    let params = FioParams { write_per_mille: 500, engine: Engine::Pread, ..small() };
    let (batched, hash) = run(&params);
    let mut single = FioWorkload::new(&params, 1).unwrap();
    let mut ops = vec![Vec::new(); 3];
    while ops.iter().any(|ops| ops.last() != Some(&Op::Done)) {
        for (job, ops) in (0..).zip(&mut ops) {
            if ops.last() != Some(&Op::Done) {
                ops.push(single.next(job));
            }
        }
    }
    assert_eq!((ops, single.string_hash()), (batched, hash));
}

#[test]
fn scaled_zipf_keeps_a_power_of_two() {
    let scaled = FioParams::default().scaled(1.0 / 12.0);
    assert_eq!((scaled.blocks, scaled.operations), (65_536, 25_000_000));
    assert_eq!(FioParams::default().scaled(1.0), FioParams::default());
}

#[test]
fn conflicts_name_their_key() {
    let text = |params: &FioParams| FioWorkload::new(params, 1).unwrap_err().to_string();
    let wrong = FioParams { theta: 1.0, ..small() };
    assert!(text(&wrong).starts_with("fio.theta: "));
    let wrong = FioParams { random_map: true, ..small() };
    assert!(text(&wrong).starts_with("fio.random_map: "));
    let wrong = FioParams { write_per_mille: 1001, ..small() };
    assert_eq!(text(&wrong), "fio.write_per_mille = 1001: must be from 0 to 1000");
}

#[test]
fn groups_can_be_one_or_many() {
    let groups = |group_per_job| {
        let params = FioParams { group_per_job, ..small() };
        FioWorkload::new(&params, 1).unwrap().layout().groups.len()
    };
    assert_eq!((groups(false), groups(true)), (1, 3));
}
