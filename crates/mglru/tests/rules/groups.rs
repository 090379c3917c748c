//! Protection, hierarchies and `memory.reclaim` (spec §7.4 to §7.6, §9.1, §9.6).

use mglru::{
    AllocRetry, ChargeRetry, Counter, Gfp, MAX_RECLAIM_RETRIES, MemcgId, Reclaim, RetryStep,
};

use crate::toy::{NODE, NORMAL, World};

/// Two groups below root with as many clean file pages each.
fn two(variant: &str, set: &[(&str, &str)], pages: usize) -> (World, MemcgId, MemcgId) {
    let mut world = World::with(variant, set);
    world.checks_steps = false;
    let (a, b) = (world.group(MemcgId::ROOT), world.group(MemcgId::ROOT));
    world.files(a, pages);
    world.files(b, pages);
    (world, a, b)
}

fn steals(world: &World, g: MemcgId) -> u64 {
    world.lru.memcg_counters(g)[Counter::PgstealFile]
}

fn direct() -> Reclaim {
    Reclaim::direct(NODE, NORMAL, 0, Gfp::default())
}

#[test]
fn a_group_below_min_never_loses_a_page() {
    for variant in ["after", "before", "k6.12", "classic"] {
        let (mut world, a, b) = two(variant, &[], 200);
        world.toy.groups[a.index()].min = 200;
        // Up to 7.2 only kswapd computes protection: it runs before direct reclaim does.
        world.toy.zones[NORMAL.index()].free = 50;
        world.run(Reclaim::kswapd(NODE, 0));
        for _ in 0..10 {
            world.run(direct());
        }
        assert_eq!(steals(&world, a), 0, "{variant}");
        assert!(steals(&world, b) > 150, "{variant}: {}", steals(&world, b));
    }
}

#[test]
fn a_group_below_low_loses_pages_only_when_nothing_else_is_left() {
    for variant in ["after", "before", "classic"] {
        let (mut world, a, b) = two(variant, &[("memcg_walk", "iter")], 100);
        world.toy.groups[a.index()].low = 100;
        while steals(&world, b) < 100 {
            world.run(direct());
            assert_eq!(steals(&world, a), 0, "{variant}");
        }
        assert!(world.toy.low_events.is_empty(), "{variant}");
        assert!(world.run(direct()) > 0, "{variant}");
        assert!(steals(&world, a) > 0, "{variant}");
        assert!(world.toy.low_events.iter().all(|&g| g == a.index()), "{variant}");
        assert!(!world.toy.low_events.is_empty(), "{variant}: it has the event");
    }
}

#[test]
fn the_target_itself_is_not_protected() {
    let (mut world, a, _) = two("after", &[], 100);
    world.toy.groups[a.index()].min = 1000;
    assert!(world.reclaim(a, 32) >= 32);
}

#[test]
fn partial_protection_shrinks_the_scan() {
    // Usage is four times low: three quarters of the size count.
    let mut world = World::variant("after");
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, 4 * 40_960);
    world.toy.groups[g.index()].low = 40_960;
    let mut reclaim = direct();
    while reclaim.priority() == 12 && world.step(&mut reclaim).is_none() {}
    assert_eq!(world.toy.freed.len(), 30, "3 * 40960 >> 12");
}

#[test]
fn before_proportional_protection_a_group_above_low_is_scanned_whole() {
    let mut world = World::with("after", &[("proportional_protection", "false")]);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, 2 * 40_960);
    world.toy.groups[g.index()].low = 40_960;
    let mut reclaim = direct();
    while reclaim.priority() == 12 && world.step(&mut reclaim).is_none() {}
    assert_eq!(world.toy.freed.len(), 20, "2 * 40960 >> 12");
}

#[test]
fn reclaim_of_a_group_reaches_its_descendants_only() {
    let mut world = World::variant("after");
    let (a, b) = (world.group(MemcgId::ROOT), world.group(MemcgId::ROOT));
    let below = world.group(a);
    world.files(b, 100);
    world.files(below, 100);
    assert!(world.reclaim(a, 32) >= 32);
    assert_eq!(steals(&world, b), 0);
    assert!(steals(&world, below) >= 32);
}

#[test]
fn partial_walks_take_turns() {
    let mut world = World::variant("after");
    let parent = world.group(MemcgId::ROOT);
    let children: Vec<MemcgId> = (0..4).map(|_| world.group(parent)).collect();
    children.iter().for_each(|&c| drop(world.files(c, 1000)));
    for _ in 0..20 {
        world.reclaim(parent, 32);
    }
    let steals: Vec<u64> = children.iter().map(|&c| steals(&world, c)).collect();
    assert!(steals.iter().all(|&s| s >= 50), "nobody is passed over: {steals:?}");
}

#[test]
fn fruitless_reclaim_walks_the_whole_tree_once_more() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    assert_eq!(world.reclaim(g, 32), 0);
    let passes: Vec<u8> = world.toy.slab_calls.iter().map(|c| c.1).collect();
    let descent: Vec<u8> = (0..=12).rev().collect();
    assert_eq!(passes, [descent.clone(), descent].concat());
    assert_eq!(world.counter(Counter::ZeroProgressReclaims), 1);
}

#[test]
fn a_request_is_met_in_quarters_of_what_is_left() {
    let (mut world, a, _) = two("after", &[], 20_000);
    let done = world.run(Reclaim::proactive(a, 1000, None));
    assert!((1000..1000 + 64).contains(&done), "{done}");
    assert_eq!(world.counter(Counter::PgstealProactive), done);
    assert_eq!(world.counter(Counter::PgstealDirect), 0);
}

#[test]
fn a_request_that_cannot_be_met_ends_after_sixteen_fruitless_calls() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 10);
    assert_eq!(world.run(Reclaim::proactive(g, 1000, None)), 10);
    let first_priority = world.toy.slab_calls.iter().filter(|c| c.1 == 12).count();
    assert_eq!(first_priority, 1 + 2 * MAX_RECLAIM_RETRIES as usize, "two descents a call");
}

#[test]
fn as_in_6_1_a_request_is_made_for_all_of_what_is_left() {
    let goals = |quarters: &str| {
        let (mut world, a, _) = two("classic", &[("reclaim_in_quarters", quarters)], 20_000);
        world.run(Reclaim::proactive(a, 4096, None));
        world.toy.slab_calls.len()
    };
    assert!(goals("true") > goals("false"), "a call of its own for each quarter");
}

#[test]
fn as_in_6_1_every_walk_visits_all() {
    for (partial, visited) in [("true", 1), ("false", 5)] {
        let mut world = World::with("classic", &[("partial_walks", partial)]);
        let parent = world.group(MemcgId::ROOT);
        let children: Vec<MemcgId> = (0..4).map(|_| world.group(parent)).collect();
        world.files(parent, 200_000);
        children.iter().for_each(|&c| drop(world.files(c, 10)));
        world.checks_steps = false;
        world.reclaim(parent, 32);
        assert_eq!(world.toy.slab_calls.len(), visited, "partial walks: {partial}");
    }
}

#[test]
fn a_charge_is_retried_sixteen_times_after_one_free_try() {
    let mut retry = ChargeRetry::default();
    let fruitless = (0..100).take_while(|_| retry.next(0, false) == RetryStep::Reclaim).count();
    assert_eq!(fruitless, 17);
    assert_eq!(ChargeRetry::default().next(0, true), RetryStep::Served);
}

#[test]
fn a_charge_that_makes_progress_is_retried_for_free() {
    let mut retry = ChargeRetry::default();
    assert!((0..1000).all(|_| retry.next(32, false) == RetryStep::Reclaim));
}

#[test]
fn an_allocation_is_given_up_when_nothing_could_satisfy_it() {
    assert_eq!(AllocRetry::default().next(0, false), RetryStep::Oom);
    let mut retry = AllocRetry::default();
    let fruitless = (0..100).take_while(|_| retry.next(0, true) == RetryStep::Reclaim).count();
    assert_eq!(fruitless, 16);
}

#[test]
fn slab_frees_count_for_root_reclaim_only() {
    for (root, reclaimed) in [(true, true), (false, false)] {
        let mut world = World::variant("after");
        let g = world.group(MemcgId::ROOT);
        world.toy.slab.freed = 5;
        let call = if root { direct() } else { Reclaim::memcg(g, 32, Gfp::default()) };
        assert_eq!(world.run(call) > 0, reclaimed);
    }
}
