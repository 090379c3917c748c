//! Refault distances against runs that had that much more memory.

use mglru_pager::Group;

use crate::{MIB, PAGE, pager};

/// What the distances predict may be off by this share of the major faults: pages leave by
/// generation here, not in the exact order of their last use.
const OFF: f64 = 0.12;

/// Pages of the region.
const PAGES: usize = 6144;
/// Accesses after every page was touched.
const ACCESSES: usize = 60_000;

/// Major faults of a group of `max` bytes, how many of them `more` bytes would have spared, and
/// what was resident. Skewed accesses, the same in each run.
fn run(max: usize, more: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
    let pager = pager(64 * MIB)?;
    let group = pager.root().create("app").unwrap();
    group.write("memory.max", &max.to_string()).unwrap();
    let mut map = group.map_anon(PAGES * PAGE).unwrap();
    // Nothing of the pool counts: a page of one byte packs to next to nothing.
    (0..PAGES).for_each(|page| map[page * PAGE] = 1);
    let mut x = 1u64;
    for _ in 0..ACCESSES {
        let mut draw = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as usize % PAGES
        };
        let page = draw().min(draw());
        map[page * PAGE] += 1;
    }
    let (resident, major, classes) = distances(&group);
    Some((major, mglru_pager::refaults_within(&classes, more(resident))))
}

/// Resident bytes, major faults, and pages that came back by their distance.
fn distances(group: &Group) -> (u64, u64, Vec<(u64, u64)>) {
    let text = group.read("mglru.distances").unwrap();
    let mut lines = text.lines().map(|line| line.split_once(' ').unwrap());
    let mut head = || lines.next().unwrap().1.parse::<u64>().unwrap();
    let (resident, major) = (head(), head());
    let classes: Vec<(u64, u64)> =
        lines.map(|(bound, n)| (bound.parse().unwrap(), n.parse().unwrap())).collect();
    (resident, major, classes)
}

#[test]
fn pages_of_zeros_that_come_back_are_among_the_faults_that_memory_spares() {
    let Some(pager) = pager(8 * MIB) else { return };
    let mut map = pager.root().map_anon(PAGES * PAGE).unwrap();
    for _ in 0..3 {
        (0..PAGES).for_each(|page| map[page * PAGE] = 0);
    }
    let (_, major, classes) = distances(&pager.root());
    let back: u64 = classes.iter().map(|class| class.1).sum();
    assert!(back > PAGES as u64 && major >= back, "{major} faults, {back} came back");
}

#[test]
fn what_distances_predict_is_what_more_memory_saves() {
    let (base, larger) = (8 * MIB, [12 * MIB, 16 * MIB]);
    for max in larger {
        let more = |resident: u64| resident * (max - base) as u64 / base as u64;
        let Some((major, spared)) = run(base, more) else { return };
        let Some((left, _)) = run(max, |_| 0) else { return };
        let predicted = major - spared;
        let off = (predicted as f64 - left as f64).abs() / major as f64;
        let figures = format!("with {max} bytes {predicted} predicted, {left} made");
        println!("{major} major faults; {figures}");
        assert!(off < OFF, "{major} major faults; {figures}");
    }
}
