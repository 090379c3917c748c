//! Tests which tasks must wait, for what, how long (spec §9.4, §9.5).

use mglru::folio::Bit;
use mglru::{Counter, FolioId, Gfp, MemcgId, Reclaim, Step, Throttle};

use crate::toy::{NODE, NORMAL, World};

/// A group whose folios are all under writeback and waited for.
fn all_waited_for(variant: &str, settings: &[(&str, &str)], n: usize) -> Scene {
    let mut world = World::with(variant, settings);
    let g = world.group(MemcgId::ROOT);
    let folios = world.files(g, n);
    for &folio in &folios {
        world.lru.start_writeback(folio);
        world.lru.folios_mut()[folio].flags.set(Bit::RECLAIM);
    }
    Scene { world, g, folios }
}

struct Scene {
    world: World,
    g: MemcgId,
    folios: Vec<FolioId>,
}

/// The first time the call sleeps: why, and for how long at most.
fn first_sleep(world: &mut World, mut reclaim: Reclaim) -> Option<(Throttle, u64)> {
    loop {
        match reclaim.step(&mut world.lru, &mut world.toy) {
            Step::Again(_) => {}
            Step::Sleep { reason, at_most } => return Some((reason, at_most)),
            Step::Done { .. } => return None,
        }
    }
}

#[test]
fn congestion_is_waited_for_one_tick() {
    for variant in ["after", "classic"] {
        let Scene { mut world, g, .. } = all_waited_for(variant, &[], 64);
        let sleep = first_sleep(&mut world, Reclaim::memcg(g, 32, Gfp::default()));
        assert_eq!(sleep, Some((Throttle::Congested, 4_000_000)), "{variant}");
    }
}

#[test]
fn a_mostly_clean_node_does_not_stall_a_small_dirty_group() {
    for (switch, sleeps) in [("true", false), ("false", true)] {
        let settings = [("throttle_skips_clean_node", switch)];
        let Scene { mut world, g, .. } = all_waited_for("after", &settings, 64);
        world.files(MemcgId::ROOT, 200);
        let sleep = first_sleep(&mut world, Reclaim::memcg(g, 32, Gfp::default()));
        assert_eq!(sleep.is_some(), sleeps, "throttle_skips_clean_node = {switch}");
    }
}

#[test]
fn a_group_with_something_clean_is_not_congested_for_ever() {
    let Scene { mut world, g, .. } = all_waited_for("after", &[], 64);
    world.files(g, 40);
    world.reclaim(g, 32);
    assert_eq!(
        world.counter(Counter::ThrottleCongested) > 0,
        world.sleeps.contains(&Throttle::Congested)
    );
    let Scene { mut world, g, folios } = all_waited_for("after", &[], 64);
    folios.iter().for_each(|&f| world.lru.folios_mut()[f].flags.clear(Bit::RECLAIM));
    let mut reclaim = Reclaim::memcg(g, 32, Gfp::default());
    while reclaim.priority() > 2 {
        assert_eq!(world.step(&mut reclaim), None);
    }
    assert_eq!(world.sleeps, [], "met for the first time: not congested yet");
}

#[test]
fn mglru_root_reclaim_is_never_throttled_for_congestion() {
    let Scene { mut world, .. } = all_waited_for("after", &[], 64);
    world.run(Reclaim::direct(NODE, NORMAL, 0, Gfp::default()));
    assert!(!world.sleeps.contains(&Throttle::Congested));
    assert!(!world.sleeps.contains(&Throttle::Writeback));
}

#[test]
fn direct_reclaim_without_any_progress_waits_at_the_last_priority_but_one() {
    let Scene { mut world, .. } = all_waited_for("after", &[], 64);
    let reclaim = Reclaim::direct(NODE, NORMAL, 0, Gfp::default());
    let sleep = first_sleep(&mut world, reclaim);
    assert_eq!(sleep, Some((Throttle::Noprogress, 4_000_000)));
}

#[test]
fn progress_releases_those_who_wait_for_it() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 100);
    world.reclaim(g, 32);
    assert!(world.lru.take_wakes(NODE).noprogress);
    assert!(!world.lru.take_wakes(NODE).noprogress, "asking clears it");
}

#[test]
fn classic_kswapd_slows_down_when_all_it_meets_is_waited_for_already() {
    let Scene { mut world, .. } = all_waited_for("classic", &[], 64);
    world.toy.zones[NORMAL.index()].free = 0;
    let sleep = first_sleep(&mut world, Reclaim::kswapd(NODE, 0));
    assert_eq!(sleep, Some((Throttle::Writeback, 100_000_000)));
}

#[test]
fn classic_reclaim_waits_once_while_others_hold_an_eighth_of_the_list_isolated() {
    let settings = [("sane_throttling", "false")];
    let Scene { mut world, g, folios } = all_waited_for("classic", &settings, 32);
    world.files(g, 40);
    world.lru.offline_memcg(g); // 32 of it are scanned at the first priority.
    let holder = first_sleep(&mut world, Reclaim::memcg(g, 32, Gfp::default()));
    assert_eq!(holder, Some((Throttle::Folio(folios[0]), u64::MAX)));
    let mut other = Reclaim::direct(NODE, NORMAL, 0, Gfp::default());
    let sleeps: Vec<(Throttle, u64)> = (0..2000)
        .filter_map(|_| match other.step(&mut world.lru, &mut world.toy) {
            Step::Sleep { reason, at_most } => Some((reason, at_most)),
            _ => None,
        })
        .collect();
    let isolated = sleeps.iter().filter(|s| s.0 == Throttle::Isolated);
    assert_eq!(isolated.collect::<Vec<_>>(), [&(Throttle::Isolated, 20_000_000)], "once");
}

#[test]
fn enough_written_pages_release_those_who_wait_for_writeback() {
    let Scene { mut world, folios, .. } = all_waited_for("classic", &[], 64);
    world.toy.zones[NORMAL.index()].free = 0;
    first_sleep(&mut world, Reclaim::kswapd(NODE, 0)).expect("it sleeps");
    for (i, &folio) in folios.iter().enumerate() {
        assert_eq!(world.lru.take_wakes(NODE).writeback, i > 32, "{i} pages written");
        world.lru.end_writeback(folio);
    }
}
