//! The background reclaimer of a node (spec §9.2, §9.3, §4.7).

use mglru::{Counter, Gfp, MAX_RECLAIM_RETRIES, MemcgId, Reclaim};

use crate::toy::{NODE, NORMAL, World};

/// A node with too little free memory.
fn short(variant: &str, files: usize) -> (World, MemcgId) {
    let mut world = World::variant(variant);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, files);
    world.toy.zones[NORMAL.index()].free = 50;
    (world, g)
}

/// Runs kswapd; what it frees becomes free memory of the zone.
fn run(world: &mut World) -> u64 {
    let mut kswapd = Reclaim::kswapd(NODE, 0);
    loop {
        let freed = world.toy.freed.len() as u64;
        world.toy.zones[NORMAL.index()].free = 50 + freed;
        if let Some(reclaimed) = world.step(&mut kswapd) {
            return reclaimed;
        }
    }
}

#[test]
fn kswapd_works_until_the_high_watermark_is_reached() {
    for variant in ["after", "before", "classic"] {
        let (mut world, _) = short(variant, 5000);
        let reclaimed = run(&mut world);
        assert!((100..1000).contains(&reclaimed), "{variant}: {reclaimed}");
        assert_eq!(world.counter(Counter::PgstealKswapd), reclaimed, "{variant}");
        assert_eq!(world.counter(Counter::Pageoutrun), 1);
    }
}

#[test]
fn kswapd_of_a_balanced_node_does_nothing() {
    let (mut world, _) = short("after", 5000);
    world.toy.zones[NORMAL.index()].free = 150;
    assert_eq!(world.run(Reclaim::kswapd(NODE, 0)), 0);
    assert!(world.toy.slab_calls.is_empty());
}

#[test]
fn a_large_goal_starts_at_a_lower_priority() {
    // fls(5000) - 1 - fls(150 - 1) = 13 - 1 - 8 = 4, clamped to 6.
    let (mut world, _) = short("after", 5000);
    run(&mut world);
    assert_eq!(world.toy.slab_calls.iter().map(|c| c.1).max(), Some(6));
    let (mut world, _) = short("classic", 5000);
    run(&mut world);
    assert_eq!(world.toy.slab_calls.iter().map(|c| c.1).max(), Some(12));
}

/// Is the hopeless node's congestion ignored? Nothing else shows it from outside.
fn stalls(world: &mut World) -> bool {
    world.sleeps.clear();
    let fruitless = Reclaim::direct(NODE, NORMAL, 0, Gfp::default());
    world.run(fruitless);
    !world.sleeps.is_empty()
}

#[test]
fn sixteen_fruitless_descents_make_the_node_hopeless_until_somebody_reclaims() {
    let mut world = World::with("after", &[("throttle_skips_clean_node", "false")]);
    let g = world.group(MemcgId::ROOT);
    world.toy.zones[NORMAL.index()].free = 50;
    for _ in 0..MAX_RECLAIM_RETRIES - 1 {
        assert_eq!(world.run(Reclaim::kswapd(NODE, 0)), 0);
    }
    assert!(stalls(&mut world), "15 failures: there is still hope");
    assert_eq!(world.run(Reclaim::kswapd(NODE, 0)), 0);
    assert!(!stalls(&mut world), "16: nobody waits for progress any more");
    world.files(g, 64);
    world.reclaim(g, 32);
    while world.reclaim(g, 32) > 0 {}
    assert!(stalls(&mut world), "somebody reclaimed: hope again");
}

#[test]
fn min_ttl_kills_when_every_oldest_generation_is_younger() {
    for (age_ms, kills) in [(500, true), (2000, false)] {
        let mut world = World::with("after", &[("min_ttl_ms", "1000")]);
        let g = world.group(MemcgId::ROOT);
        world.files(g, 5000);
        world.checks_steps = false;
        world.toy.zones[NORMAL.index()].free = 50;
        world.toy.now = 10_000_000_000;
        (0..4).for_each(|_| world.age(g));
        world.toy.now += age_ms * 1_000_000;
        run(&mut world);
        let killed = world.lru.take_wakes(NODE).out_of_memory;
        assert_eq!(killed, kills, "the oldest was born {age_ms} ms ago");
    }
}

/// Does `min_ttl` kill when the one group's files are old, after this was done to the group?
fn kills(set: impl Fn(&mut World, MemcgId)) -> bool {
    let mut world = World::with("after", &[("min_ttl_ms", "1000")]);
    let g = world.group(MemcgId::ROOT);
    world.checks_steps = false;
    world.toy.zones[NORMAL.index()].free = 50;
    world.toy.now = 10_000_000_000;
    set(&mut world, g);
    let mut kswapd = Reclaim::kswapd(NODE, 0);
    while world.lru.counters()[Counter::Pageoutrun] == 0 {
        world.step(&mut kswapd);
    }
    world.lru.take_wakes(NODE).out_of_memory
}

/// What is old but protected, or of a type that may not be swapped, spares nobody.
#[test]
fn min_ttl_looks_at_what_may_be_reclaimed() {
    assert!(!kills(|world, g| drop(world.files(g, 5000))));
    assert!(kills(|world, g| {
        world.files(g, 5000);
        world.toy.groups[g.index()].min = 6000;
    }));
    let anon = |swap_left| {
        move |world: &mut World, g: MemcgId| {
            world.anons(g, 5000);
            world.toy.groups[g.index()].swap_left = swap_left;
        }
    };
    assert!(!kills(anon(1000)));
    assert!(kills(anon(0)), "nothing of it can go");
}
