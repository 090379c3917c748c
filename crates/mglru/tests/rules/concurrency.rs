//! Reclaimers that age the same lruvec at once (spec §4.2, §10.3 P07; I12, I13).

use mglru::{Counter, FolioKind, Gfp, MemcgId, Reclaim};

use crate::toy::World;

/// A group that must be aged before anything can be evicted, with `nr_mms` address spaces.
fn must_age(variant: &str, nr_mms: usize) -> (World, MemcgId) {
    let mut world = World::variant(variant);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    for _ in 0..nr_mms {
        let mm = world.mm(g);
        world.fault_nth(FolioKind::Anon, g, mm, 0);
    }
    world.anons(g, 20_000);
    assert_eq!(world.evict(g, 1), 0);
    (world, g)
}

/// A call stepped down to priority 11 and into its walk of page tables.
fn in_the_walk(world: &mut World, g: MemcgId) -> Reclaim {
    let mut reclaim = Reclaim::memcg(g, 64, Gfp::default());
    let before = world.toy.walked.len();
    while world.toy.walked.len() == before {
        assert_eq!(world.step(&mut reclaim), None, "it has to age first");
    }
    reclaim
}

/// Steps a call until its priority falls or it is over.
fn rest_of_priority(world: &mut World, reclaim: &mut Reclaim) {
    let at = reclaim.priority();
    while reclaim.priority() == at && world.step(reclaim).is_none() {}
}

#[test]
fn concurrent_walkers_share_the_address_spaces_and_one_wins() {
    for variant in ["after", "before"] {
        let (mut world, g) = must_age(variant, 3);
        let mut walkers: Vec<Reclaim> = (0..3).map(|_| in_the_walk(&mut world, g)).collect();
        let mut walked: Vec<u32> = world.toy.walked.iter().map(|(mm, _)| mm.0).collect();
        walked.dedup();
        assert_eq!(walked, [0, 1, 2], "{variant}: each walks another one");
        walkers.iter_mut().for_each(|walker| rest_of_priority(&mut world, walker));
        assert_eq!(world.counter(Counter::AgingPasses), 1, "{variant}: one new generation");
        assert_eq!(world.window(g).0, 4);
    }
}

#[test]
fn before_p07_a_walker_that_lost_gets_nothing_from_this_priority() {
    let (mut world, g) = must_age("before", 2);
    let mut first = in_the_walk(&mut world, g);
    let mut second = in_the_walk(&mut world, g);
    rest_of_priority(&mut world, &mut second);
    rest_of_priority(&mut world, &mut first);
    assert_eq!(world.counter(Counter::AgingPasses), 1);
    assert_eq!(world.toy.freed.len(), 0, "neither the winner nor the loser evicts");
}

#[test]
fn after_p07_winner_and_loser_both_go_on_evicting() {
    let (mut world, g) = must_age("after", 2);
    let mut first = in_the_walk(&mut world, g);
    let mut second = in_the_walk(&mut world, g);
    rest_of_priority(&mut world, &mut second);
    let after_winner = world.toy.freed.len();
    assert!(after_winner > 0);
    rest_of_priority(&mut world, &mut first);
    assert_eq!(world.counter(Counter::AgingPasses), 1);
    assert!(world.toy.freed.len() > after_winner);
}

#[test]
fn p04_alone_ends_the_loop_after_any_aging_attempt() {
    let (mut world, g) = must_age("before", 1);
    let mut config = world.lru.config().clone();
    config.set("p04", "true").unwrap();
    world = World::new(config);
    world.checks_steps = false;
    let g = {
        assert_eq!(world.group(MemcgId::ROOT), g);
        world.anons(g, 20_000);
        world.evict(g, 1);
        g
    };
    world.run_first_priority(Reclaim::memcg(g, 64, Gfp::default()));
    assert_eq!(world.counter(Counter::AgingPasses), 1, "must-age holds at once");
    assert_eq!(world.toy.freed.len(), 0);
}

#[test]
fn before_p07_walkers_that_only_meet_others_walks_come_back_with_nothing() {
    // A task that is stopped in the middle of its walk while others make generation after
    // generation: whatever it sees is stale.
    let (mut world, g) = must_age("before", 1);
    let mut slow = in_the_walk(&mut world, g);
    for _ in 0..3 {
        world.reclaim(g, 32);
    }
    let freed = world.toy.freed.len();
    rest_of_priority(&mut world, &mut slow);
    assert_eq!(world.toy.freed.len(), freed, "its priority is wasted");
}

#[test]
fn root_reclaim_makes_one_batch_after_aging_and_cgroup_reclaim_goes_on() {
    for (target, freed) in [(MemcgId::ROOT, 64), (MemcgId(1), 73)] {
        let mut world = World::variant("after");
        world.checks_steps = false;
        let g = world.group(MemcgId::ROOT);
        world.anons(g, 300_000);
        assert_eq!(world.evict(g, 1), 0);
        let mut reclaim = Reclaim::proactive(target, 10_000, None);
        while world.counter(Counter::AgingPasses) == 0 {
            assert_eq!(world.step(&mut reclaim), None);
        }
        rest_of_priority(&mut world, &mut reclaim);
        assert_eq!(world.toy.freed.len(), freed, "300000 >> 12 is 73");
    }
}
