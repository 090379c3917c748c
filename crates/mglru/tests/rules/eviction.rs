//! Sort, isolation, zones and type fallback (spec §5.1 to §5.5).

use mglru::folio::Bit;
use mglru::host::Outcome;
use mglru::{Counter, Entry, FolioId, FolioKind, Gfp, MemcgId, Reclaim, Zone};

use crate::toy::{NODE, NORMAL, World};

fn group(variant: &str) -> (World, MemcgId) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

#[test]
fn the_oldest_go_first() {
    let (mut world, g) = group("after");
    world.files(g, 100);
    world.evict(g, 10);
    assert_eq!(world.freed_keys(), (0..10).collect::<Vec<u32>>());
}

#[test]
fn saturated_folios_are_moved_on_and_not_counted_as_protected() {
    let (mut world, g) = group("after");
    let hot = world.file(g);
    (0..5).for_each(|_| world.lru.accessed(hot));
    world.files(g, 5);
    world.evict(g, 5);
    assert_eq!(world.freed_keys(), [1, 2, 3, 4, 5]);
    assert_eq!(world.age_of(g, hot), 2);
    assert_eq!((world.counter(Counter::Pgrefill), world.counter(Counter::Protected)), (1, 0));
    assert!(world.has(hot, Bit::WORKINGSET) && !world.has(hot, Bit::REFERENCED));
}

#[test]
fn k612_counts_saturated_folios_as_protected() {
    let (mut world, g) = group("k6.12");
    let hot = world.file(g);
    (0..6).for_each(|_| world.lru.accessed(hot));
    world.files(g, 5);
    world.evict(g, 5);
    assert!(world.counter(Counter::Protected) >= 1);
    assert!(!world.is_freed(0));
}

#[test]
fn a_promoted_folio_is_moved_to_its_list_when_it_is_met() {
    let (mut world, g) = group("after");
    let mm = world.mm(g);
    let start = world.start_of(mm, mglru::host::Backing::File);
    let used = world.add(FolioKind::File, g, Entry::Referenced);
    world.map(used, mm, start);
    world.files(g, 5);
    world.age(g);
    assert_eq!(world.age_of(g, used), 1);
    assert_eq!(world.counter(Counter::Promoted), 1);
    let refill = world.counter(Counter::Pgrefill);
    world.evict(g, 6);
    assert_eq!(world.toy.freed.len(), 5);
    assert_eq!(world.counter(Counter::Pgrefill) - refill, 1);
}

#[test]
fn zones_are_scanned_from_the_highest_eligible_down() {
    let (mut world, g) = group("after");
    for zone in [0, 1, 2] {
        let folio = world.unlisted(FolioKind::File, g, Zone(zone), 0);
        world.lru.add(folio, Entry::Plain);
    }
    world.files(g, 4000);
    world.evict(g, 1);
    assert_eq!(world.freed_keys(), [2], "zone 2 first");
    let (mut world, g) = group("after");
    for zone in [0, 1] {
        let folio = world.unlisted(FolioKind::File, g, Zone(zone), 0);
        world.lru.add(folio, Entry::Plain);
    }
    world.evict(g, 2);
    assert_eq!(world.freed_keys(), [1, 0]);
}

#[test]
fn folios_of_zones_the_reclaim_cannot_use_are_moved_on() {
    let (mut world, g) = group("after");
    let movable: Vec<FolioId> =
        (0..3).map(|_| world.unlisted(FolioKind::File, g, Zone(3), 0)).collect();
    movable.iter().for_each(|&f| world.lru.add(f, Entry::Plain));
    world.files(g, 20);
    world.run(Reclaim::direct(NODE, NORMAL, 0, Gfp::default()));
    assert!(!world.is_freed(0) && world.is_freed(3));
    assert!(world.counter(Counter::Pgrefill) >= 3);
    assert_ne!(world.age_of(g, movable[0]), 3);
}

#[test]
fn isolation_stops_at_64_pages() {
    let (mut world, g) = group("before");
    world.files(g, 100);
    world.evict(g, 64);
    assert_eq!(world.toy.batches, [64]);
    let (mut world, g) = group("before");
    for _ in 0..40 {
        let folio = world.unlisted(FolioKind::File, g, NORMAL, 2);
        world.lru.add(folio, Entry::Plain);
    }
    world.evict(g, 64);
    assert_eq!(world.toy.batches, [16], "folios of 4 pages: pages count, not folios");
}

/// Only protected file folios, and anon that could be evicted, in the oldest generation.
fn protected_file(variant: &str, settings: &[(&str, &str)]) -> (World, MemcgId) {
    let mut world = World::with(variant, settings);
    let g = world.group(MemcgId::ROOT);
    for _ in 0..4 {
        let folio = world.unlisted(FolioKind::Anon, g, NORMAL, 0);
        world.lru.folios_mut()[folio].flags.set(Bit::SWAPCACHE);
        world.lru.add(folio, Entry::Plain);
    }
    for folio in world.files(g, 200) {
        (0..5).for_each(|_| world.lru.accessed(folio));
    }
    (world, g)
}

fn anon_steals(mut world: World, g: MemcgId) -> u64 {
    world.lru.offline_memcg(g);
    let mut reclaim = Reclaim::memcg(g, 1 << 30, Gfp::default());
    while world.toy.batches.is_empty() && world.counter(Counter::Pgrefill) < 150 {
        assert_eq!(world.step(&mut reclaim), None);
    }
    world.counter(Counter::PgstealAnon)
}

#[test]
fn p05_flips_the_type_when_nothing_was_isolated() {
    let (world, g) = protected_file("after", &[("p06p", "false")]);
    assert_eq!(anon_steals(world, g), 4, "it leaks into anon");
}

#[test]
fn p06p_stays_with_a_type_that_was_scanned() {
    let (world, g) = protected_file("after", &[]);
    assert_eq!(anon_steals(world, g), 0);
}

#[test]
fn before_p05_the_other_type_is_tried_when_a_scan_only_sorted() {
    let (mut world, g) = protected_file("before", &[]);
    world.evict(g, 4096);
    assert_eq!(world.counter(Counter::PgstealAnon), 4);
}

#[test]
fn p06p_still_flips_when_there_is_nothing_to_scan() {
    let (mut world, g) = group("after");
    let folio = world.unlisted(FolioKind::Anon, g, NORMAL, 0);
    world.lru.folios_mut()[folio].flags.set(Bit::SWAPCACHE);
    world.lru.add(folio, Entry::Plain);
    assert_eq!(world.evict(g, 1), 1);
}

#[test]
fn without_swap_anon_is_not_touched() {
    let (mut world, g) = group("after");
    world.toy.groups[g.index()].swap_left = 63;
    world.anons(g, 100);
    world.files(g, 10);
    world.reclaim(g, 1 << 20);
    assert_eq!(world.counter(Counter::PgscanAnon), 0);
    assert_eq!(world.toy.freed.len(), 10);
}

#[test]
fn swappiness_200_takes_anon_and_0_takes_file() {
    for (swappiness, anon, file) in [(200, 32, 0), (0, 0, 32)] {
        let (mut world, g) = group("after");
        world.toy.groups[g.index()].swappiness = swappiness;
        world.anons(g, 400);
        world.files(g, 400);
        world.age(g);
        world.age(g);
        world.reclaim(g, 32);
        let steals = (world.counter(Counter::PgstealAnon), world.counter(Counter::PgstealFile));
        assert_eq!(steals.0 >= 32, anon > 0, "swappiness {swappiness}: {steals:?}");
        assert_eq!(steals.1 >= 32, file > 0, "swappiness {swappiness}: {steals:?}");
    }
}

#[test]
fn a_proactive_request_may_bring_its_own_swappiness() {
    let (mut world, g) = group("after");
    world.anons(g, 400);
    world.files(g, 400);
    world.run(Reclaim::proactive(g, 32, Some(201)));
    assert_eq!(world.counter(Counter::PgscanFile), 0);
    assert!(world.counter(Counter::PgstealAnon) >= 32);
}

#[test]
fn before_p08_isolation_without_io_refuses_what_would_need_it() {
    for (p08, skips) in [("false", true), ("true", false)] {
        let mut world = World::with("after", &[("p08", p08)]);
        let g = world.group(MemcgId::ROOT);
        let dirty = world.file(g);
        world.lru.set_dirty(dirty);
        world.files(g, 3);
        let no_io = Gfp { io: false, fs: false };
        world.run(Reclaim::memcg(g, 32, no_io));
        assert_eq!(world.counter(Counter::PgscanSkip) > 0, skips, "p08 = {p08}");
        assert!(!world.is_freed(0) && world.is_freed(1));
        let activated = world.counter(Counter::Pgactivate) > 0;
        assert_eq!(activated, !skips, "after p08 the common path activates it");
    }
}

#[test]
fn p08_makes_lazily_freed_memory_reclaimable_without_io() {
    for (p08, freed) in [("false", 0), ("true", 1)] {
        let mut world = World::with("after", &[("p08", p08)]);
        let g = world.group(MemcgId::ROOT);
        let folio = world.add(FolioKind::Anon, g, Entry::Fault { recency: true });
        world.lru.lazyfree(folio);
        let no_io = Gfp { io: false, fs: false };
        assert_eq!(world.run(Reclaim::memcg(g, 32, no_io)), freed, "p08 = {p08}");
    }
}

/// Spec §5.6: with "activate" a swap slot may go.
#[test]
fn the_copy_in_swap_of_an_activated_folio_may_go() {
    for (outcome, offered) in [(Outcome::Pinned, true), (Outcome::Busy, false)] {
        let (mut world, g) = group("after");
        let folio = world.unlisted(FolioKind::Anon, g, NORMAL, 0);
        world.lru.folios_mut()[folio].flags.set(Bit::SWAPCACHE);
        world.lru.add(folio, Entry::Plain);
        world.toy.script.insert(folio, outcome);
        world.evict(g, 1);
        let want: &[FolioId] = if offered { &[folio] } else { &[] };
        assert_eq!(world.toy.copies_offered, want, "{outcome:?}");
    }
}

#[test]
fn a_survivor_is_not_put_back_into_the_oldest_generation() {
    let (mut world, g) = group("after");
    let locked = world.file(g);
    world.lru.folios_mut()[locked].flags.set(Bit::LOCKED);
    world.files(g, 3);
    world.evict(g, 3);
    assert!(!world.is_freed(0));
    assert_eq!(world.age_of(g, locked), 1);
}

#[test]
fn a_pinned_survivor_is_young_and_a_proven_one_youngest() {
    for (bit, age) in [(Bit::HOST, 1), (Bit::WORKINGSET, 0)] {
        let (mut world, g) = group("after");
        let pinned = world.file(g);
        world.lru.folios_mut()[pinned].flags.set(Bit::PINNED);
        world.lru.folios_mut()[pinned].flags.set(bit);
        world.files(g, 3);
        world.evict(g, 4);
        assert_eq!(world.age_of(g, pinned), age);
    }
}

#[test]
fn a_folio_that_may_have_missed_its_rotation_is_tried_once_more() {
    let (mut world, g) = group("after");
    let raced = world.file(g);
    world.toy.script.insert(raced, Outcome::Busy);
    world.evict(g, 1);
    assert_eq!(world.freed_keys(), [0], "busy the first time, ready the second");
    assert_eq!(world.toy.batches, [1, 1]);
    assert_eq!(world.counter(Counter::PgscanFile), 1, "isolated once");
}

#[test]
fn there_is_only_one_retry() {
    let (mut world, g) = group("after");
    let locked = world.file(g);
    world.lru.folios_mut()[locked].flags.set(Bit::LOCKED);
    assert_eq!(world.evict(g, 1), 0);
    assert_eq!(world.age_of(g, locked), 1);
}

#[test]
fn without_swap_slots_anon_survives_young() {
    let (mut world, g) = group("after");
    let folio = world.unlisted(FolioKind::Anon, g, NORMAL, 0);
    world.lru.folios_mut()[folio].flags.set(Bit::SWAPCACHE);
    world.lru.add(folio, Entry::Plain);
    world.toy.script.insert(folio, Outcome::NoSwapSlot);
    assert_eq!(world.evict(g, 1), 0);
    assert_eq!((world.age_of(g, folio), world.counter(Counter::Pgactivate)), (1, 1));
}

#[test]
fn a_queued_swap_write_is_waited_for_young_and_rotated_when_done() {
    let (mut world, g) = group("after");
    world.toy.swap_is_fast = false;
    let folio = world.unlisted(FolioKind::Anon, g, NORMAL, 0);
    world.lru.folios_mut()[folio].flags.set(Bit::SWAPCACHE);
    world.lru.add(folio, Entry::Plain);
    assert_eq!(world.evict(g, 1), 0);
    assert!(world.has(folio, Bit::WRITEBACK) && world.has(folio, Bit::RECLAIM));
    assert_eq!((world.age_of(g, folio), world.counter(Counter::NrVmscanWrite)), (1, 1));
    world.end_writeback(folio);
    assert_eq!(world.counter(Counter::Pgrotated), 1);
    world.age(g);
    assert_eq!(world.evict(g, 1), 1, "clean now");
}
