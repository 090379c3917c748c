//! Mechanisms that no kernel has: other numbers of generations, a clock for each type, the other
//! LRU's measure of refaults, page-table walks under the classic LRU.

use mglru::folio::Bit;
use mglru::host::Backing;
use mglru::{Counter, Entry, FolioId, FolioKind, LruType, MemcgId};

use crate::toy::{NODE, NORMAL, World};

fn group(variant: &str, settings: &[(&str, &str)]) -> (World, MemcgId) {
    let mut world = World::with(variant, settings);
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

fn active_file(world: &mut World, g: MemcgId) -> FolioId {
    let folio = world.unlisted(FolioKind::File, g, NORMAL, 0);
    world.lru.folios_mut()[folio].flags.set(Bit::ACTIVE);
    world.lru.add(folio, Entry::Plain);
    folio
}

#[test]
fn folios_enter_by_the_number_of_generations_there_can_be() {
    // Below the youngest: read, fresh anonymous, active.
    for (n, expected) in [("2", [1, 0, 0]), ("4", [3, 1, 1]), ("64", [33, 31, 31])] {
        let (mut world, g) = group("after", &[("generations", n)]);
        let file = world.file(g);
        let anon = world.add(FolioKind::Anon, g, Entry::Plain);
        let active = active_file(&mut world, g);
        let ages = [file, anon, active].map(|folio| world.age_of(g, folio));
        assert_eq!(ages, expected, "{n} generations");
    }
}

#[test]
fn a_refault_counts_while_the_page_would_still_be_in_the_window() {
    for (n, agings, recent) in [("4", 0, true), ("4", 4, false), ("64", 4, true), ("64", 64, false)]
    {
        let (mut world, g) = group("after", &[("generations", n)]);
        let folio = world.file(g);
        world.lru.folios_mut()[folio].flags.set(Bit::WORKINGSET);
        world.files(g, 20);
        world.reclaim(g, 1);
        let shadow = world.toy.freed[0].shadow;
        (0..agings).for_each(|_| world.age(g));
        world.refault(g, shadow, Entry::Plain);
        let restored = world.counter(Counter::WorkingsetRestoreFile);
        assert_eq!(restored == 1, recent, "{n} generations, {agings} agings");
    }
}

/// Files are read and evicted while anonymous memory lies idle; generations of each type.
fn after_a_scan(one_clock: &str) -> [u64; 2] {
    let (mut world, g) = group("after", &[("one_clock", one_clock)]);
    world.anons(g, 3000);
    world.toy.groups[g.index()].swappiness = 1;
    for _ in 0..40 {
        world.files(g, 800);
        world.reclaim(g, 350);
    }
    let last = world.lru.generations(g, NODE).last().unwrap().seq;
    LruType::ALL.map(|t| last + 1 - world.lru.oldest(g, NODE, t).0)
}

#[test]
fn with_its_own_clock_idle_memory_is_not_aged_by_a_scan_of_files() {
    assert!(after_a_scan("true")[0] > 2, "anonymous memory grows old with the files");
    assert_eq!(after_a_scan("false")[0], 2, "none was asked for, so all of it is young");
}

#[test]
fn a_few_pages_in_use_are_not_aged_for_each_batch() {
    let (mut world, g) = group("after", &[("one_clock", "false")]);
    let mm = world.mm(g);
    let start = world.start_of(mm, Backing::File);
    for (n, folio) in world.files(g, 6).into_iter().enumerate() {
        world.map(folio, mm, start + n as u64);
        world.lru.folios_mut()[folio].flags.set(Bit::PINNED);
    }
    world.anons(g, 6000);
    let before = world.counter(Counter::AgingPasses);
    assert!(world.reclaim(g, 4000) >= 4000, "anonymous memory goes");
    let agings = world.counter(Counter::AgingPasses) - before;
    assert!(agings < 60, "{agings} agings for six pages of files");
}

#[test]
fn each_type_is_aged_by_its_own_command_to_age() {
    let (mut world, g) = group("after", &[("one_clock", "false")]);
    world.anons(g, 3);
    world.files(g, 3);
    let agings = |world: &World| world.counter(Counter::AgingPasses);
    world.age(g);
    assert_eq!(agings(&world), 2, "files, then anonymous memory");
    let id = world.lru.lruvec_id(g, NODE);
    let World { lru, toy, .. } = &mut world;
    assert!(lru.debug_age(id, 0, false, toy));
    assert_eq!(agings(&world), 3, "files alone");
    world.lru.check();
    let ages: Vec<_> = world.generations(g).iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(ages.iter().map(|row| row.0).sum::<u64>(), 3);
    assert_eq!(ages.iter().map(|row| row.1).sum::<u64>(), 3);
}

/// A page goes, `others` go after it, and it returns; pages taken for a part of the workingset.
fn returns_after(variant: &str, measure: &str, others: usize) -> u64 {
    let (mut world, g) = group(variant, &[("workingset", measure)]);
    let hot = world.file(g);
    world.lru.folios_mut()[hot].flags.set(Bit::WORKINGSET);
    world.files(g, 400);
    if variant == "classic" {
        world.reclaim(g, 1);
    } else {
        world.evict(g, 1);
    }
    assert_eq!(world.freed_keys()[0], 0);
    let shadow = world.toy.freed[0].shadow;
    // A hundred active pages are the room there would have been.
    (0..100).for_each(|_| _ = active_file(&mut world, g));
    while world.toy.freed.len() <= others {
        world.files(g, 64);
        world.reclaim(g, 32);
    }
    world.refault(g, shadow, Entry::Plain);
    let counted = [Counter::WorkingsetRestoreFile, Counter::WorkingsetActivateFile];
    counted.map(|counter| world.counter(counter)).into_iter().max().unwrap()
}

#[test]
fn by_distance_a_refault_counts_while_fewer_went_than_there_is_room() {
    for variant in ["after", "k6.12", "classic"] {
        assert_eq!(returns_after(variant, "distance", 40), 1, "{variant}: close");
        assert_eq!(returns_after(variant, "distance", 2000), 0, "{variant}: far");
    }
}

#[test]
fn by_generations_a_refault_counts_until_the_window_has_passed() {
    assert_eq!(returns_after("after", "own", 40), 1);
    assert_eq!(returns_after("after", "generations", 40), 1);
    assert_eq!(returns_after("classic", "generations", 40), 1, "the same turn of the list");
    assert_eq!(returns_after("classic", "generations", 4000), 0, "many turns later");
    assert_eq!(returns_after("classic", "own", 2000), 0);
}

/// Mapped files on the inactive list; whether reclaim walked, and those that became active before
/// they came to the list's end.
fn walked(source: &str) -> (bool, usize) {
    let (mut world, g) = group("classic", &[("young_source", source)]);
    let mm = world.mm(g);
    let start = world.start_of(mm, Backing::File);
    let folios = world.files(g, 400);
    for (n, &folio) in folios.iter().enumerate() {
        world.map(folio, mm, start + n as u64);
    }
    for _ in 0..2 {
        world.lru.mm_ran(mm, NODE);
        folios[300..].iter().for_each(|&folio| world.touch(folio));
        world.files(g, 800);
        world.reclaim(g, 700);
    }
    let active = folios[300..].iter().filter(|&&folio| world.has(folio, Bit::ACTIVE)).count();
    (!world.toy.walked.is_empty(), active)
}

#[test]
fn the_classic_lru_walks_page_tables_when_it_is_told_to() {
    let ((walks, _), (own, _)) = (walked("ptw"), walked("own"));
    assert!(walks && !own);
    assert!(walked("ptw").1 >= walked("rmap").1);
}
