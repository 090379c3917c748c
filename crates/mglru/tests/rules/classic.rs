//! Active and inactive lists (spec §8, §6 "Classic").

use mglru::folio::Bit;
use mglru::host::Backing;
use mglru::{Counter, Entry, FolioId, FolioKind, Gfp, MemcgId, Reclaim};

use crate::toy::{NODE, NORMAL, World};

fn group() -> (World, MemcgId) {
    let mut world = World::variant("classic");
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

fn active(world: &mut World, g: MemcgId, n: usize) -> Vec<FolioId> {
    let folios = world.files(g, n);
    folios.iter().for_each(|&f| (0..2).for_each(|_| world.lru.accessed(f)));
    folios
}

#[test]
fn new_folios_are_inactive_and_the_oldest_go_first() {
    let (mut world, g) = group();
    world.files(g, 4000);
    world.reclaim(g, 32);
    let keys = world.freed_keys();
    assert_eq!(keys, (0..keys.len() as u32).collect::<Vec<u32>>());
    assert!(keys.len() >= 32);
}

#[test]
fn active_folios_stay_while_there_are_enough_inactive_ones() {
    let (mut world, g) = group();
    let hot = active(&mut world, g, 50);
    world.files(g, 100);
    world.reclaim(g, 32);
    assert!(hot.iter().all(|&f| world.has(f, Bit::ACTIVE)));
    assert_eq!(world.counter(Counter::Pgdeactivate), 0);
}

#[test]
fn active_folios_are_deactivated_when_inactive_is_low() {
    let (mut world, g) = group();
    active(&mut world, g, 1000);
    world.files(g, 100);
    world.reclaim(g, 32);
    assert!(world.counter(Counter::Pgdeactivate) > 0);
    assert!(world.counter(Counter::Pgrefill) >= world.counter(Counter::Pgdeactivate));
}

/// Between two flushes of the group's statistics reclaim goes by the sizes of the last one.
#[test]
fn heuristics_see_the_statistics_of_the_last_flush() {
    let (mut world, g) = group();
    let deactivated = |world: &mut World| {
        let before = world.counter(Counter::Pgdeactivate);
        world.reclaim(g, 32);
        world.counter(Counter::Pgdeactivate) - before
    };
    world.files(g, 100);
    world.lru.flush_stats();
    active(&mut world, g, 1000);
    assert_eq!(deactivated(&mut world), 0, "as far as is known nothing is active");
    world.lru.flush_stats();
    assert!(deactivated(&mut world) > 0);
}

#[test]
fn room_for_a_refault_is_that_of_the_last_flush() {
    let (mut world, g) = group();
    world.lru.flush_stats();
    active(&mut world, g, 1000);
    world.files(g, 64);
    world.reclaim(g, 32);
    let shadow = world.toy.freed[0].shadow;
    world.refault(g, shadow, Entry::Plain);
    assert_eq!(world.counter(Counter::WorkingsetActivateFile), 0, "no active page was known of");
    world.lru.flush_stats();
    world.refault(g, shadow, Entry::Plain);
    assert_eq!(world.counter(Counter::WorkingsetActivateFile), 1);
}

#[test]
fn a_deactivated_folio_is_marked_workingset() {
    let (mut world, g) = group();
    let hot = active(&mut world, g, 64);
    world.reclaim(g, 1);
    let marked = |w: &World| hot.iter().filter(|&&f| w.has(f, Bit::WORKINGSET)).count();
    assert!(marked(&world) > 0);
}

#[test]
fn programs_in_use_stay_active() {
    let (mut world, g) = group();
    let mm = world.mm(g);
    world.toy.spaces[mm.index()].mappings[2].exec = true;
    let start = world.start_of(mm, Backing::File);
    let programs = active(&mut world, g, 64);
    for (i, &folio) in programs.iter().enumerate() {
        world.map(folio, mm, start + i as u64);
    }
    world.run_first_priority(Reclaim::memcg(g, 32, Gfp::default()));
    let mut reclaim = Reclaim::memcg(g, 32, Gfp::default());
    while world.counter(Counter::Pgrefill) == 0 {
        assert_eq!(world.step(&mut reclaim), None);
    }
    assert_eq!(world.counter(Counter::Pgdeactivate), 0, "32 of them were looked at");
}

/// Evicts the first of `n` folios and lets `evictions` more go before it returns.
fn distance(n: usize, evictions: u64) -> (World, MemcgId, FolioId) {
    let (mut world, g) = group();
    world.toy.groups[g.index()].swap_left = 0;
    active(&mut world, g, n);
    world.files(g, 4000);
    while (world.toy.freed.len() as u64) <= evictions {
        world.reclaim(g, 32);
    }
    let shadow = world.toy.freed[0].shadow;
    let folio = world.refault(g, shadow, Entry::Plain);
    (world, g, folio)
}

#[test]
fn a_refault_within_the_active_size_is_activated() {
    let (world, _, folio) = distance(1000, 60);
    assert!(world.has(folio, Bit::ACTIVE));
    assert_eq!(world.counter(Counter::WorkingsetActivateFile), 1);
    assert_eq!(world.counter(Counter::WorkingsetRestoreFile), 0);
}

#[test]
fn a_refault_beyond_the_active_size_is_not() {
    let (world, _, folio) = distance(20, 200);
    assert!(!world.has(folio, Bit::ACTIVE));
    assert_eq!(world.counter(Counter::WorkingsetRefaultFile), 1);
    assert_eq!(world.counter(Counter::WorkingsetActivateFile), 0);
}

#[test]
fn without_swap_only_file_is_scanned() {
    let (mut world, g) = group();
    world.toy.groups[g.index()].swap_left = 0;
    world.anons(g, 500);
    world.files(g, 100);
    world.reclaim(g, 32);
    assert_eq!(world.counter(Counter::PgscanAnon), 0);
}

#[test]
fn a_group_with_swappiness_zero_loses_file_only() {
    let (mut world, g) = group();
    world.toy.groups[g.index()].swappiness = 0;
    world.anons(g, 500);
    world.files(g, 100);
    world.reclaim(g, 32);
    assert_eq!(world.counter(Counter::PgstealAnon), 0);
}

#[test]
fn plenty_of_inactive_file_spares_anon() {
    let (mut world, g) = group();
    world.anons(g, 5000);
    world.files(g, 5000);
    world.run_first_priority(Reclaim::memcg(g, 1 << 20, Gfp::default()));
    assert_eq!(world.counter(Counter::PgscanAnon), 0, "cache trim");
    assert!(world.counter(Counter::PgscanFile) > 0);
}

#[test]
fn zone_ineligible_folios_are_not_counted_and_go_to_the_head() {
    let (mut world, g) = group();
    for _ in 0..5 {
        let folio = world.unlisted(FolioKind::File, g, mglru::Zone(3), 0);
        world.lru.add(folio, Entry::Plain);
    }
    world.files(g, 500);
    world.run(Reclaim::direct(NODE, NORMAL, 0, Gfp::default()));
    assert!((0..5).all(|key| !world.is_freed(key)));
    assert_eq!(world.counter(Counter::PgscanFile), world.toy.freed.len() as u64);
}

#[test]
fn the_end_of_writeback_rotates_to_the_tail_of_the_inactive_list() {
    let (mut world, g) = group();
    world.files(g, 40);
    let waiting = world.file(g);
    world.lru.start_writeback(waiting);
    world.lru.folios_mut()[waiting].flags.set(Bit::RECLAIM);
    world.lru.end_writeback(waiting);
    world.reclaim(g, 1);
    assert_eq!(world.freed_keys()[0], 40);
}

#[test]
fn an_all_dirty_batch_wakes_the_flusher() {
    let (mut world, g) = group();
    let folios = world.files(g, 64);
    folios.iter().for_each(|&f| world.lru.set_dirty(f));
    world.reclaim(g, 32);
    assert!(world.toy.flusher_wakes > 0);
    assert!(folios.iter().all(|&f| world.has(f, Bit::RECLAIM)));
}

/// A page evicted before 100 others were found in use: does it come back as one that the active
/// list had room for? Those 100 pushed it as far away as evictions would have (spec §K72.14).
#[test]
fn pages_that_reclaim_makes_active_age_those_that_are_away() {
    let (mut world, g) = group();
    world.toy.groups[g.index()].swap_left = 0;
    world.files(g, 20);
    let mm = world.mm(g);
    for nth in 0..100 {
        let folio = world.fault_nth(FolioKind::File, g, mm, nth);
        world.lru.accessed(folio);
    }
    world.files(g, 4000);
    while world.counter(Counter::Pgactivate) < 100 {
        world.reclaim(g, 32);
    }
    let evicted = world.toy.freed.len();
    assert!(evicted < 100, "{evicted}: within the size of the active list");
    let shadow = world.toy.freed[0].shadow;
    let folio = world.refault(g, shadow, Entry::Plain);
    assert!(!world.has(folio, Bit::ACTIVE));
}

/// The check of references takes the mark away: a dirty page that stays has to earn it again.
#[test]
fn a_look_at_an_idle_page_takes_its_mark() {
    let (mut world, g) = group();
    let folios = world.files(g, 4000);
    world.lru.accessed(folios[0]);
    world.lru.set_dirty(folios[0]);
    world.reclaim(g, 32);
    assert!(world.has(folios[0], Bit::ACTIVE), "tagged and put out of the way");
    assert!(!world.has(folios[0], Bit::REFERENCED));
}
