//! How much of one lruvec a pass may scan (spec §10.1, §10.2, §5.7; I9 to I11).

use mglru::{Gfp, MemcgId, Reclaim};

use crate::toy::World;

/// Pages freed of a group of `size` clean file pages at the first priority, and passes over it.
fn first_pass(settings: &[(&str, &str)], size: usize) -> usize {
    let mut world = World::with("after", settings);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, size);
    world.run_first_priority(Reclaim::memcg(g, 1 << 30, Gfp::default()));
    world.toy.freed.len()
}

/// The same, at the first two priorities together.
fn second_pass(settings: &[(&str, &str)], size: usize) -> usize {
    let mut world = World::with("after", settings);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, size);
    let mut reclaim = world.run_first_priority(Reclaim::memcg(g, 1 << 30, Gfp::default()));
    let first = world.toy.freed.len();
    while reclaim.priority() == 11 && world.step(&mut reclaim).is_none() {}
    world.toy.freed.len() - first
}

#[test]
fn the_budget_is_the_size_shifted_by_the_priority() {
    assert_eq!(first_pass(&[], 4095), 0, "v7: tiny lruvecs wait");
    assert_eq!(first_pass(&[], 4096), 1);
    assert_eq!(first_pass(&[], 12_288 + 4095), 3);
    assert_eq!(second_pass(&[], 4096), 1, "4095 >> 11");
}

#[test]
fn v2_scans_32_pages_of_anything() {
    assert_eq!(first_pass(&[("floor", "v2")], 100), 32);
    assert_eq!(first_pass(&[("floor", "v2")], 20), 20);
}

#[test]
fn v4_and_none_give_a_tiny_lruvec_nothing() {
    for floor in ["v4", "none"] {
        assert_eq!(first_pass(&[("floor", floor)], 100), 0);
        assert_eq!(second_pass(&[("floor", floor)], 100), 0);
    }
}

#[test]
fn v5_has_a_floor_below_the_first_priority_only() {
    assert_eq!(first_pass(&[("floor", "v5")], 100), 0);
    assert_eq!(second_pass(&[("floor", "v5")], 100), 32);
    assert_eq!(second_pass(&[("floor", "v5")], 20), 20);
    assert_eq!(second_pass(&[("floor", "v5")], 4096), 1, "not when the budget is not zero");
}

#[test]
fn v7_reaches_a_tiny_lruvec_as_the_priority_drops() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 40);
    assert_eq!(world.reclaim(g, 32), 40, "40 >> 5, 39 >> 4, 37 >> 3, 33 >> 2, 25 >> 1, 13");
}

#[test]
fn an_offline_group_is_scanned_whole() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 100);
    world.lru.offline_memcg(g);
    world.run_first_priority(Reclaim::memcg(g, 1 << 30, Gfp::default()));
    assert_eq!(world.toy.freed.len(), 100);
}

#[test]
fn protected_folios_use_the_budget_up() {
    // Saturated folios are only moved; each of them counts (P05).
    let mut world = World::variant("after");
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    for folio in world.files(g, 40_960) {
        (0..5).for_each(|_| world.lru.accessed(folio));
    }
    world.run_first_priority(Reclaim::memcg(g, 1 << 30, Gfp::default()));
    assert_eq!(world.counter(mglru::Counter::Pgrefill), 10 + 10, "budget 10, two rounds a batch");
    assert_eq!(world.toy.freed.len(), 0);
}

#[test]
fn batches_are_of_64_after_p06_and_of_4096_before() {
    // Isolation stops at 64 pages anyway: the cap shows in what is only sorted.
    for (p06, largest) in [("true", 64), ("false", 200)] {
        let mut world = World::with("after", &[("p06", p06)]);
        let g = world.group(MemcgId::ROOT);
        world.toy.groups[g.index()].swappiness = 0;
        for folio in world.files(g, 200) {
            (0..5).for_each(|_| world.lru.accessed(folio));
        }
        world.lru.offline_memcg(g);
        let mut reclaim = Reclaim::memcg(g, 1 << 30, Gfp::default());
        while world.counter(mglru::Counter::Pgrefill) == 0 {
            assert_eq!(world.step(&mut reclaim), None);
        }
        assert_eq!(world.counter(mglru::Counter::Pgrefill), largest, "p06 = {p06}");
    }
}

#[test]
fn before_the_series_the_loop_ends_when_it_met_what_it_wanted() {
    let mut world = World::variant("before");
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, 12_288);
    world.run_first_priority(Reclaim::memcg(g, 1 << 30, Gfp::default()));
    assert_eq!(world.toy.freed.len(), 3);
}

#[test]
fn before_the_series_a_loop_that_is_done_does_not_age() {
    // Below the first priority with three generations left after the last batch.
    let mut world = World::variant("before");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 100);
    world.evict(g, 30);
    let aged = world.counter(mglru::Counter::AgingPasses);
    let mut reclaim = Reclaim::memcg(g, 32, Gfp::default());
    while world.toy.freed.len() < 62 && world.step(&mut reclaim).is_none() {}
    while world.step(&mut reclaim).is_none() {}
    assert_eq!(world.counter(mglru::Counter::AgingPasses), aged, "the goal was met");
}
