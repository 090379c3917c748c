//! Dirty folios and folios under writeback (spec §5.3 rule 5, §5.6, §10.3 P09, P10, P14).

use mglru::folio::Bit;
use mglru::{Counter, FolioId, MemcgId, Throttle};

use crate::toy::World;

/// A group with `dirty` dirty and then `clean` clean file folios, oldest first.
fn files(variant: &str, settings: &[(&str, &str)], dirty: usize, clean: usize) -> Scene {
    let mut world = World::with(variant, settings);
    let g = world.group(MemcgId::ROOT);
    let folios = world.files(g, dirty + clean);
    folios[..dirty].iter().for_each(|&f| world.lru.set_dirty(f));
    Scene { world, g, folios }
}

struct Scene {
    world: World,
    g: MemcgId,
    folios: Vec<FolioId>,
}

#[test]
fn before_p09_a_dirty_folio_is_diverted_to_the_next_generation_with_a_mark() {
    let Scene { mut world, g, folios } = files("before", &[], 1, 3);
    world.lru.accessed(folios[0]);
    world.evict(g, 3);
    assert_eq!(world.age_of(g, folios[0]), 2);
    assert!(world.has(folios[0], Bit::RECLAIM) && !world.has(folios[0], Bit::REFERENCED));
    assert_eq!(world.counter(Counter::PgscanFile), 3, "never isolated");
    assert_eq!(world.counter(Counter::NrVmscanImmediateReclaim), 0);
}

#[test]
fn after_p09_a_dirty_folio_is_isolated_marked_and_activated() {
    let Scene { mut world, g, folios } = files("after", &[], 1, 10);
    world.lru.accessed(folios[0]);
    world.evict(g, 3);
    assert_eq!(world.age_of(g, folios[0]), 1);
    assert!(world.has(folios[0], Bit::RECLAIM) && world.has(folios[0], Bit::REFERENCED));
    assert_eq!(world.counter(Counter::NrVmscanImmediateReclaim), 1);
    assert_eq!(world.counter(Counter::Pgactivate), 1);
    assert_eq!(world.toy.freed.len(), 3);
}

#[test]
fn after_p09_a_dirty_workingset_folio_goes_to_the_youngest_generation() {
    let Scene { mut world, g, folios } = files("after", &[], 1, 3);
    world.lru.folios_mut()[folios[0]].flags.set(Bit::WORKINGSET);
    world.evict(g, 3);
    assert_eq!(world.age_of(g, folios[0]), 0);
}

#[test]
fn a_folio_under_writeback_is_marked_and_activated() {
    let Scene { mut world, g, folios } = files("after", &[], 0, 10);
    world.lru.start_writeback(folios[0]);
    world.evict(g, 3);
    assert!(world.has(folios[0], Bit::RECLAIM));
    assert_eq!(world.age_of(g, folios[0]), 1);
    world.end_writeback(folios[0]);
    assert_eq!(world.age_of(g, folios[0]), 3, "rotated: next to go");
}

#[test]
fn an_all_dirty_batch_wakes_the_flusher_once_after_p10() {
    let Scene { mut world, g, .. } = files("after", &[], 10, 0);
    world.evict(g, 10);
    assert_eq!(world.toy.flusher_wakes, 1);
}

#[test]
fn one_clean_folio_in_the_batch_leaves_the_flusher_asleep_after_p10() {
    let Scene { mut world, g, .. } = files("after", &[], 10, 1);
    world.evict(g, 11);
    assert_eq!((world.toy.flusher_wakes, world.toy.freed.len()), (0, 1));
}

#[test]
fn each_all_dirty_batch_wakes_the_flusher_again() {
    let Scene { mut world, g, .. } = files("after", &[], 128, 0);
    world.evict(g, 1000);
    assert_eq!(world.toy.flusher_wakes, 2, "two batches of 64");
}

#[test]
fn before_p10_the_flusher_is_woken_once_at_the_end_of_the_loop() {
    let Scene { mut world, g, .. } = files("before", &[], 10, 0);
    world.reclaim(g, 32);
    assert!(world.toy.flusher_wakes > 0);
    let Scene { mut world, g, folios } = files("before", &[], 0, 8192);
    world.checks_steps = false;
    folios.iter().skip(1).step_by(2).for_each(|&f| world.lru.set_dirty(f));
    world.reclaim(g, 32);
    assert_eq!(world.toy.flusher_wakes, 0, "clean file pages were met in the same visit");
}

#[test]
fn mainline_612_never_wakes_the_flusher() {
    let settings = [("stable_612", "false"), ("p09", "false")];
    let Scene { mut world, g, .. } = files("k6.12", &settings, 10, 0);
    world.reclaim(g, 32);
    assert_eq!(world.toy.flusher_wakes, 0);
}

/// Everything is under writeback and waited for already; a large part of the node is dirty.
fn congested(settings: &[(&str, &str)]) -> World {
    let Scene { mut world, g, folios } = files("after", settings, 0, 64);
    for &folio in &folios {
        world.lru.start_writeback(folio);
        world.lru.folios_mut()[folio].flags.set(Bit::RECLAIM);
    }
    world.reclaim(g, 32);
    world
}

#[test]
fn p14_throttles_cgroup_reclaim_that_meets_congestion_only() {
    let world = congested(&[]);
    assert!(world.sleeps.contains(&Throttle::Congested), "{:?}", world.sleeps);
    assert!(world.counter(Counter::ThrottleCongested) > 0);
}

#[test]
fn without_p14_cgroup_reclaim_is_never_throttled() {
    let world = congested(&[("p14", "false")]);
    assert_eq!(world.sleeps, []);
}

#[test]
fn before_p09_congestion_cannot_be_seen() {
    // I17: isolation clears the mark, so nothing is ever met under writeback with it.
    let world = congested(&[("p09", "false")]);
    assert_eq!(world.sleeps, []);
}

#[test]
fn cgroup_v1_waits_for_the_folio_it_meets_twice() {
    let Scene { mut world, g, folios } = files("after", &[("sane_throttling", "false")], 0, 4);
    world.lru.start_writeback(folios[0]);
    world.lru.folios_mut()[folios[0]].flags.set(Bit::RECLAIM);
    world.reclaim(g, 32);
    assert_eq!(world.sleeps, [Throttle::Folio(folios[0])]);
    assert!(!world.has(folios[0], Bit::WRITEBACK) || world.is_freed(0));
    assert_eq!(world.toy.freed.len(), 4);
}

#[test]
fn cgroup_v1_throttles_on_an_all_dirty_batch() {
    let settings = [("sane_throttling", "false")];
    let Scene { mut world, g, .. } = files("after", &settings, 10, 0);
    world.reclaim(g, 32);
    assert!(world.sleeps.contains(&Throttle::Writeback));
    let Scene { mut world, g, .. } = files("after", &[], 10, 0);
    world.reclaim(g, 32);
    assert!(!world.sleeps.contains(&Throttle::Writeback), "v2 slows the writers instead");
}
