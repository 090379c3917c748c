//! Root reclaim through the memcg LRU (spec §7.1 to §7.3). Which memcgs a walk comes to shows in
//! whose slab caches are shrunk.

use mglru::{Counter, Gfp, MemcgId, NodeId, Reclaim, Step};

use crate::toy::{NODE, NORMAL, World};

fn direct() -> Reclaim {
    Reclaim::direct(NODE, NORMAL, 0, Gfp::default())
}

/// Groups below the root with so many clean file pages each.
fn groups(world: &mut World, nr: usize, pages: usize) -> Vec<MemcgId> {
    world.checks_steps = false;
    let ids: Vec<MemcgId> = (0..nr).map(|_| world.group(MemcgId::ROOT)).collect();
    ids.iter().for_each(|&g| drop(world.files(g, pages)));
    ids
}

fn steals(world: &World, g: MemcgId) -> u64 {
    world.lru.memcg_counters(g)[Counter::PgstealFile]
}

fn visits(world: &World, g: MemcgId) -> usize {
    world.toy.slab_calls.iter().filter(|call| call.0 == g.index()).count()
}

#[test]
fn a_call_stops_as_soon_as_its_goal_is_met() {
    let mut world = World::variant("after");
    world.toy.random = 7;
    groups(&mut world, 64, 200_000 / 64);
    let mut reclaim = Reclaim::proactive(MemcgId::ROOT, 128, None);
    while world.step(&mut reclaim).is_none() {}
    let stolen: u64 = world.counter(Counter::PgstealProactive);
    assert!((128..128 + 64).contains(&stolen), "{stolen}");
}

#[test]
fn no_sizable_group_is_forgotten() {
    let mut world = World::variant("after");
    world.toy.random = 3;
    let ids = groups(&mut world, 16, 10_000);
    for _ in 0..400 {
        world.run(direct());
    }
    let steals: Vec<u64> = ids.iter().map(|&g| steals(&world, g)).collect();
    assert!(steals.iter().all(|&s| s > 0), "nobody is forgotten: {steals:?}");
}

#[test]
fn a_group_below_low_is_reclaimed_only_at_its_second_visit() {
    // I23: the first visit puts it at a tail. Every draw is 0, so that the walk meets it again.
    for (low, visited) in [(0, 2), (100, 1)] {
        let mut world = World::variant("after");
        let g = groups(&mut world, 1, 100)[0];
        world.toy.groups[g.index()].low = low;
        world.run_first_priority(direct());
        assert_eq!(visits(&world, g), visited, "low = {low}");
        let events = if low > 0 { vec![g.index()] } else { vec![] };
        assert_eq!(world.toy.low_events, events, "low = {low}");
    }
}

#[test]
fn a_group_below_min_is_passed_over_in_every_generation() {
    let mut world = World::variant("after");
    world.toy.random = 5;
    let ids = groups(&mut world, 3, 2000);
    world.toy.groups[ids[0].index()].min = 2000;
    for _ in 0..50 {
        world.run(direct());
    }
    assert_eq!((steals(&world, ids[0]), visits(&world, ids[0])), (0, 0));
    assert!(steals(&world, ids[1]) + steals(&world, ids[2]) >= 50 * 32);
}

#[test]
fn a_group_too_small_for_the_priority_gets_one_more_try_in_its_generation() {
    // 100 pages give nothing at priority 12: twice in a generation, then young.
    let mut world = World::variant("after");
    let ids = groups(&mut world, 2, 100);
    let mut reclaim = direct();
    while reclaim.priority() == 12 {
        assert_eq!(world.step(&mut reclaim), None);
    }
    assert_eq!(steals(&world, ids[0]) + steals(&world, ids[1]), 0);
    let at_12 = |g: MemcgId| {
        world
            .toy
            .slab_calls
            .iter()
            .filter(|&&(at, priority)| at == g.index() && priority == 12)
            .count()
    };
    for g in ids {
        assert!((1..=2).contains(&at_12(g)), "{} visits", at_12(g));
    }
}

#[test]
fn a_removed_group_comes_first_and_goes_when_it_is_released() {
    let mut world = World::variant("after");
    let ids = groups(&mut world, 8, 3000);
    world.run(direct());
    let gone = ids[5];
    world.lru.offline_memcg(gone);
    world.toy.slab_calls.clear();
    let kept = steals(&world, gone);
    world.run(direct());
    assert_eq!(world.toy.slab_calls[0].0, gone.index(), "every draw is 0: the head of bin 0");
    assert!(steals(&world, gone) > kept);
    let left: Vec<_> = world.lru.folios().iter().map(|(id, _)| id).collect();
    let lruvec = world.lru.lruvec_id(gone, NODE);
    for id in
        left.into_iter().filter(|&id| world.lru.folios()[id].lruvec == lruvec).collect::<Vec<_>>()
    {
        world.drop_folio(id);
    }
    world.lru.release_memcg(gone);
    world.lru.check();
    world.toy.slab_calls.clear();
    for _ in 0..20 {
        world.run(direct());
    }
    assert_eq!(visits(&world, gone), 0);
}

#[test]
#[should_panic(expected = "released with folios")]
fn a_group_with_folios_cannot_be_released() {
    let mut world = World::variant("after");
    let g = groups(&mut world, 1, 1)[0];
    world.lru.offline_memcg(g);
    world.lru.release_memcg(g);
}

#[test]
fn a_group_over_its_soft_limit_comes_first() {
    let mut world = World::variant("after");
    let ids = groups(&mut world, 8, 3000);
    world.run(direct());
    world.lru.exceed_soft_limit(ids[6], NODE);
    world.toy.slab_calls.clear();
    world.run(direct());
    assert_eq!(world.toy.slab_calls[0].0, ids[6].index());
}

#[test]
fn reclaim_of_a_group_that_ages_it_makes_it_young_for_root_reclaim() {
    let mut world = World::variant("after");
    let ids = groups(&mut world, 2, 45_000);
    world.reclaim(ids[0], 40_000);
    world.files(ids[0], 40_000);
    world.reclaim(ids[0], 40_000);
    assert!(world.window(ids[0]).0 > 3, "it was aged");
    world.toy.slab_calls.clear();
    world.run(direct());
    assert_eq!(visits(&world, ids[0]), 0, "the others are the old ones");
}

#[test]
fn with_the_iterator_the_walk_is_in_the_order_of_the_tree() {
    let mut world = World::with("after", &[("memcg_walk", "iter")]);
    world.toy.random = 9;
    let ids = groups(&mut world, 6, 100);
    let mut reclaim = direct();
    while reclaim.priority() == 12 {
        assert_eq!(world.step(&mut reclaim), None);
    }
    let order: Vec<usize> = world.toy.slab_calls.iter().map(|call| call.0).collect();
    let tree: Vec<usize> = std::iter::once(0).chain(ids.iter().map(|g| g.index())).collect();
    assert_eq!(order, tree);
}

#[test]
fn concurrent_root_reclaimers_share_the_groups_out_and_all_end() {
    let mut world = World::variant("after");
    world.toy.random = 13;
    let ids = groups(&mut world, 40, 2500);
    for turn in 0..20 {
        let mut calls: Vec<Reclaim> = (0..5).map(|_| direct()).collect();
        for step in 0..200_000 {
            if calls.is_empty() {
                break;
            }
            let at = (step * 7 + turn) % calls.len();
            if matches!(calls[at].step(&mut world.lru, &mut world.toy), Step::Done { .. }) {
                calls.swap_remove(at);
            }
        }
        assert!(calls.is_empty(), "no walk is carried round for ever");
        world.lru.check();
    }
    assert!(ids.iter().filter(|&&g| steals(&world, g) > 0).count() > 30);
}

#[test]
fn each_node_has_a_memcg_lru_of_its_own() {
    let mut config = mglru::Config::variant("after").expect("a known variant");
    config.nr_nodes = 2;
    let mut world = World::new(config);
    world.toy.lruvec_groups.push(0);
    world.checks_steps = false;
    let ids = groups(&mut world, 8, 3000);
    let far = Reclaim::direct(NodeId(1), NORMAL, 0, Gfp::default());
    assert!(world.run(far) >= 32, "the far node is empty, the near one gives");
    assert!(ids.iter().any(|&g| steals(&world, g) > 0));
}
