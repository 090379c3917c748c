//! New generations and the end of old ones (spec §4.5, §4.6).

use mglru::folio::Bit;
use mglru::{Entry, FolioKind, MemcgId};

use crate::toy::World;

#[test]
fn a_bump_pushes_the_oldest_generation_into_the_next() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let old = world.file(g);
    let next = world.add(FolioKind::File, g, Entry::Referenced);
    world.age(g);
    assert_eq!(world.generations(g)[0], (1, 0, 2), "merged");
    assert_eq!((world.age_of(g, old), world.age_of(g, next)), (3, 3));
    world.evict(g, 10);
    assert_eq!(world.freed_keys(), [0, 1], "those pushed out come first: they are at the tail");
}

#[test]
fn being_pushed_out_forgets_accesses_but_not_the_workingset() {
    for (variant, keeps) in [("after", true), ("k6.12", false)] {
        let mut world = World::variant(variant);
        let g = world.group(MemcgId::ROOT);
        let folio = world.file(g);
        let flags = &mut world.lru.folios_mut()[folio].flags;
        flags.set(Bit::REFERENCED);
        flags.set(Bit::WORKINGSET);
        flags.set_refs(1);
        for _ in 0..3 {
            world.age(g);
        }
        let flags = world.lru.folios()[folio].flags;
        assert_eq!((flags.has(Bit::REFERENCED), flags.refs()), (false, 0), "{variant}");
        assert_eq!(flags.has(Bit::WORKINGSET), keeps, "{variant}");
    }
}

#[test]
fn the_two_youngest_generations_report_as_active() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.anons(g, 5);
    world.files(g, 7);
    let active = |world: &World| {
        let sizes = world.lru.sizes(g, crate::toy::NODE);
        (sizes.active_anon, sizes.inactive_anon, sizes.inactive_file)
    };
    assert_eq!(active(&world), (5, 0, 7));
    world.age(g);
    assert_eq!(active(&world), (0, 5, 7), "I5: a bump only moves them over");
}

#[test]
fn a_type_that_may_not_be_evicted_just_slides() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let mut anons = world.anons(g, 3);
    world.age(g);
    world.age(g);
    assert_eq!(world.age_of(g, anons[0]), 3, "in the oldest of four");
    world.toy.groups[g.index()].swappiness = 0;
    world.age(g);
    let last = anons.pop().unwrap();
    assert_eq!(world.age_of(g, last), 0, "cold and hot are inverted");
}

#[test]
fn k614_pulls_a_leading_type_back_to_three_generations() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 2);
    world.anons(g, 1);
    world.evict(g, 1);
    let anon_starts = first_live(&world, g, 0);
    assert_eq!(world.window(g), (3, 0), "file holds the window");
    assert_eq!(anon_starts, 2, "anon is found in generation 2");
    world.toy.groups[g.index()].swappiness = 200;
    assert_eq!(world.evict(g, 1), 1, "three generations of anon are left, but its oldest is empty");
    assert_eq!(world.freed_keys(), [0, 1], "so file goes, whatever the swappiness");
}

/// First generation with pages of a type (0 anon, 1 file).
fn first_live(world: &World, g: MemcgId, t: usize) -> u64 {
    let of = |line: &(u64, u64, u64)| if t == 0 { line.1 } else { line.2 };
    world.generations(g).iter().find(|line| of(line) > 0).expect("such pages").0
}

#[test]
fn k612_never_lets_anon_run_ahead_of_file() {
    let mut world = World::variant("k6.12");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 100);
    world.anons(g, 100);
    for _ in 0..20 {
        // check() asserts that file has no more generations than anon.
        world.reclaim(g, 8);
    }
    assert!(world.toy.freed.len() >= 100);
}

#[test]
fn births_are_dumped_as_ages() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.toy.now = 5_000_000;
    world.age(g);
    world.toy.now = 7_000_000;
    let text = world.lru.dump(g, "/g", world.toy.now);
    let ages: Vec<&str> =
        text.lines().skip(2).map(|l| l.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(ages, ["7", "7", "7", "2"]);
}
