use super::*;
use crate::op::Workload;
use crate::script::Scripted;
use crate::script::tests::{ends, strings};

fn small() -> SysbenchParams {
    SysbenchParams { tables: 3, threads: 4, ..SysbenchParams::default() }.scaled(1e-4)
}

/// Share of the accesses to the hottest part of a table's leaves, and leaves ever touched.
fn coverage(row_choice: RowChoice, part: f64) -> (f64, f64) {
    let params = SysbenchParams { row_choice, ..SysbenchParams::default() };
    let mut rng = Rng::new(1, 0);
    let mut seen = vec![0u32; params.leaves() as usize];
    let draws = 4_000_000;
    (0..draws).for_each(|_| seen[(params.row(&mut rng) / ROWS) as usize] += 1);
    let touched = seen.iter().filter(|&&n| n > 0).count() as f64 / seen.len() as f64;
    seen.sort_unstable_by(|a, b| b.cmp(a));
    let hottest = &seen[..(part * seen.len() as f64) as usize];
    (hottest.iter().sum::<u32>() as f64 / f64::from(draws), touched)
}

#[test]
fn special_rows_concentrate_as_computed() {
    let table = [(0.005, 0.509), (0.01, 0.763), (0.05, 0.811), (0.10, 0.864), (0.20, 0.943)];
    for (part, expected) in table {
        let (found, touched) = coverage(RowChoice::Special, part);
        assert!((found - expected).abs() < 0.01, "{part}: {found}");
        assert!((touched - 0.51).abs() < 0.08, "{touched}");
    }
    let (uniform, touched) = coverage(RowChoice::Uniform, 0.10);
    assert!(uniform < 0.13 && touched > 0.999, "{uniform} {touched}");
}

#[test]
fn every_transaction_ends_once_and_touches_its_blocks() {
    let params = small();
    let mut workload = Scripted::new(Sysbench::new(&params, 1).unwrap());
    let tasks = strings(&mut workload);
    assert_eq!(ends(&tasks, 0) as u64, params.transactions);
    let pool = params.pool_blocks() * BLOCK_PAGES;
    let touches = tasks.iter().flatten().filter_map(|op| match *op {
        Op::Touch { region: 0, page, .. } => Some(page),
        _ => None,
    });
    let mut seen = vec![false; pool as usize];
    touches.for_each(|page| seen[page as usize] = true);
    assert!(seen.iter().all(|&seen| seen), "the pool is loaded whole");
}

#[test]
fn a_transaction_is_ten_points_and_four_ranges() {
    let mut sysbench = Sysbench::new(&small(), 1).unwrap();
    let mut out = Vec::new();
    sysbench.transaction(0, 0, &mut out);
    let pool = |op: &&Op| matches!(op, Op::Touch { region: 0, .. });
    // 14 look-ups of three blocks, three pages each; ranges of two or three whole leaves.
    let pages = out.iter().filter(pool).count();
    assert!((14 * 9 + 4 * 8..=14 * 9 + 4 * 12).contains(&pages), "{pages}");
    assert_eq!(out.last(), Some(&Op::End { class: 0 }));
}

#[test]
fn seeds_differ_and_repeat() {
    let hash = |seed| {
        let mut workload = Scripted::new(Sysbench::new(&small(), seed).unwrap());
        strings(&mut workload);
        workload.string_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn wrong_numbers_are_named() {
    let params = SysbenchParams { rows: 99, ..small() };
    let error = Sysbench::new(&params, 1).unwrap_err().to_string();
    assert_eq!(error, "sysbench.rows = 99: must be from 100 to 1073741824");
}
