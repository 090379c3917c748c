//! Lumpy reclaim and its successor (experiments §17.1–§17.3).

use mglru::folio::Bit;
use mglru::host::{Neighbour, Outcome};
use mglru::{FolioId, Gfp, MemcgId, Reclaim, Throttle};

use crate::toy::{NODE, NORMAL, World};

const ORDER: u8 = 4;

/// A machine with 200 inactive file folios; those of these numbers are active.
fn world(variant: &str, active: &[usize]) -> (World, Vec<FolioId>) {
    let mut world = World::variant(variant);
    // So little is free that compaction has no room to begin with.
    let zone = &mut world.toy.zones[NORMAL.index()];
    (zone.managed, zone.free, zone.min, zone.low, zone.high) = (1_000, 10, 5, 20, 40);
    let folios = world.files(MemcgId::ROOT, 200);
    for &at in active {
        (0..2).for_each(|_| world.lru.accessed(folios[at]));
        assert!(world.has(folios[at], Bit::ACTIVE));
    }
    (world, folios)
}

/// The block of the oldest folio; `None` is a free page.
fn lay(world: &mut World, folios: &[FolioId], block: &[Option<usize>], end: Neighbour) {
    let frame = |at: &Option<usize>| at.map_or(Neighbour::Free, |at| Neighbour::Folio(folios[at]));
    let frames = block.iter().map(frame).chain([end, Neighbour::Folio(folios[190])]);
    world.toy.block = frames.collect();
}

/// Returns what the first batch that frees anything frees.
fn first_freed(world: &mut World) -> Vec<u32> {
    let mut reclaim = Reclaim::direct(NODE, NORMAL, ORDER, Gfp::default());
    while world.toy.freed.is_empty() && world.step(&mut reclaim).is_none() {}
    world.freed_keys()
}

#[test]
fn the_block_around_the_oldest_folio_goes_whatever_its_place() {
    let (mut world, folios) = world("L0", &[150]);
    lay(&mut world, &folios, &[Some(0), None, Some(150), Some(160)], Neighbour::Other);
    assert_eq!(first_freed(&mut world), [0, 150, 160], "active or not, up to a page of the kernel");
}

#[test]
fn with_compaction_only_folios_of_the_scanned_list_go() {
    let (mut world, folios) = world("L1", &[150]);
    lay(&mut world, &folios, &[Some(0), Some(160), Some(150)], Neighbour::Free);
    assert_eq!(first_freed(&mut world), [0, 160], "an active one ends the walk");
}

#[test]
fn later_kernels_take_single_folios() {
    for variant in ["L2", "L3"] {
        let (mut world, folios) = world(variant, &[]);
        lay(&mut world, &folios, &[Some(0), Some(160)], Neighbour::Free);
        assert_eq!(first_freed(&mut world), [0], "{variant}");
    }
}

#[test]
fn small_orders_take_single_folios_at_first() {
    let (mut world, folios) = world("L0", &[]);
    lay(&mut world, &folios, &[Some(0), Some(160)], Neighbour::Free);
    let mut reclaim = Reclaim::direct(NODE, NORMAL, 3, Gfp::default());
    while world.toy.freed.is_empty() && world.step(&mut reclaim).is_none() {}
    let serious = reclaim.priority() < 10;
    assert_eq!(world.freed_keys().contains(&160), serious);
}

#[test]
fn an_anonymous_neighbour_needs_swap() {
    for (swap, expected) in [(0, vec![0]), (100, vec![0, 200, 160])] {
        let (mut world, folios) = world("L0", &[]);
        world.toy.groups[0].swap_left = swap;
        world.toy.swap_is_fast = true;
        let anon = world.anons(MemcgId::ROOT, 1)[0];
        world.toy.block = vec![Neighbour::Folio(folios[0])];
        world.toy.block.extend([anon, folios[160]].map(Neighbour::Folio));
        assert_eq!(first_freed(&mut world), expected, "{swap} slots");
    }
}

#[test]
fn the_second_waiting_pass_went_with_lumpy_reclaim() {
    for (variant, waits) in [("L0", true), ("L1", true), ("L2", true), ("L3", false)] {
        let (mut world, folios) = world(variant, &[]);
        lay(&mut world, &folios, &[Some(0), Some(160)], Neighbour::Free);
        world.toy.script.insert(folios[0], Outcome::WriteQueued);
        world.run(Reclaim::direct(NODE, NORMAL, ORDER, Gfp::default()));
        let waited = world.sleeps.contains(&Throttle::Folio(folios[0]));
        assert_eq!(waited, waits, "{variant}");
        assert!(!waits || world.is_freed(0), "{variant}: freed by the second pass");
    }
}

#[test]
fn a_folio_that_is_kept_ends_the_second_pass() {
    for (other, waits) in [(Outcome::WriteQueued, true), (Outcome::Dirty, false)] {
        let (mut world, folios) = world("L2", &[]);
        world.checks_steps = false;
        // So many that the first batch is larger than one.
        world.files(MemcgId::ROOT, 4 << 12);
        world.toy.script.insert(folios[0], Outcome::WriteQueued);
        world.toy.script.insert(folios[1], other);
        first_freed(&mut world);
        assert_eq!(world.has(folios[0], Bit::ISOLATED), waits, "{other:?}");
    }
}

#[test]
fn what_is_being_written_is_met_again_in_the_lumpy_era() {
    for (variant, stays) in [("L1", true), ("L2", true), ("L3", true), ("classic", false)] {
        let (mut world, folios) = world(variant, &[]);
        world.lru.set_dirty(folios[0]);
        world.lru.start_writeback(folios[0]);
        world.run(Reclaim::kswapd(NODE, 0));
        assert_eq!(!world.has(folios[0], Bit::ACTIVE), stays, "{variant}");
        assert!(!world.is_freed(0) && world.is_freed(1), "{variant}");
    }
}

#[test]
fn kswapd_never_waits_for_the_pages_it_wrote() {
    let (mut world, folios) = world("L0", &[]);
    lay(&mut world, &folios, &[Some(0), Some(160)], Neighbour::Free);
    world.toy.script.insert(folios[0], Outcome::WriteQueued);
    world.run(Reclaim::kswapd(NODE, ORDER));
    assert!(!world.sleeps.contains(&Throttle::Folio(folios[0])));
}

#[test]
fn a_folio_freed_while_it_is_waited_for_is_forgotten() {
    let (mut world, folios) = world("L0", &[]);
    lay(&mut world, &folios, &[Some(0), Some(160)], Neighbour::Free);
    world.toy.script.insert(folios[0], Outcome::WriteQueued);
    let mut reclaim = Reclaim::direct(NODE, NORMAL, ORDER, Gfp::default());
    while !world.has(folios[0], Bit::ISOLATED) {
        assert_eq!(world.step(&mut reclaim), None);
    }
    world.lru.end_writeback(folios[0]);
    world.lru.remove(folios[0]);
    world.lru.free_folio(folios[0]);
    world.run(reclaim);
    assert!(!world.is_freed(0), "it was not reclaim's any more");
}
