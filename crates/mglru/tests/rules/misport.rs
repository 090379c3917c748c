//! The faulty backport (spec §10.4): each of its defects shows in an indicator that the series
//! itself keeps within its bounds (I10, the rate of aging; I27).

use mglru::{Counter, Gfp, MemcgId, Reclaim};

use crate::toy::World;

/// Holds the result of a pass at the first priority.
#[derive(Debug, PartialEq, Eq)]
struct FirstPass {
    /// Pages met beyond the budget and two scans of a batch.
    over_budget: bool,
    /// Generations made although three were left.
    aged: bool,
    /// Holds the core's counts of both.
    counted: [bool; 2],
}

fn met(world: &World) -> u64 {
    let of = |counter| world.counter(counter);
    of(Counter::PgscanAnon) + of(Counter::PgscanFile) + of(Counter::Pgrefill)
}

/// One pass over a group with three generations of clean file pages.
fn first_pass(variant: &str) -> FirstPass {
    let mut world = World::variant(variant);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    // Once the oldest generation is empty all but two go, and one is made.
    world.files(g, 64);
    world.evict(g, 64);
    world.age(g);
    world.files(g, 40_000);
    assert_eq!(world.generations(g).len(), 3);
    let (aged, before) = (world.counter(Counter::AgingPasses), met(&world));
    let size = world.toy.groups[g.index()].charged;
    world.run_first_priority(Reclaim::memcg(g, 1 << 30, Gfp::default()));
    FirstPass {
        over_budget: met(&world) - before > (size >> 12) + 128,
        aged: world.counter(Counter::AgingPasses) > aged,
        counted: [Counter::BudgetOverruns, Counter::EarlyAgings].map(|c| world.counter(c) > 0),
    }
}

#[test]
fn the_series_keeps_within_its_bounds() {
    for variant in ["after", "v5"] {
        let sound = FirstPass { over_budget: false, aged: false, counted: [false, false] };
        assert_eq!(first_pass(variant), sound, "{variant}");
    }
}

#[test]
fn defect_4_ages_at_the_first_priority() {
    let pass = first_pass("misport-4");
    assert!(pass.aged && pass.counted[1]);
}

#[test]
fn defects_6_and_7_scan_beyond_the_budget() {
    for variant in ["misport-6", "misport-7"] {
        let pass = first_pass(variant);
        assert!(pass.over_budget && pass.counted[0], "{variant}");
    }
}

#[test]
fn the_backport_as_a_whole_shows_both() {
    let both = FirstPass { over_budget: true, aged: true, counted: [true, true] };
    assert_eq!(first_pass("misport"), both);
}
