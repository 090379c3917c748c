//! Large folios: units, eviction as a whole, refaults, splitting (spec §LF.9 to §LF.13).

use mglru::folio::Bit;
use mglru::{Counter, Entry, FolioId, FolioKind, MemcgId};

use crate::toy::{NODE, NORMAL, World};

fn group(variant: &str) -> (World, MemcgId) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

/// A clean file folio that was read.
fn large(world: &mut World, g: MemcgId, order: u8) -> FolioId {
    let id = world.unlisted(FolioKind::File, g, NORMAL, order);
    world.lru.add(id, Entry::Plain);
    id
}

fn file_pages(world: &World, g: MemcgId) -> u64 {
    let sizes = world.lru.sizes(g, NODE);
    sizes.inactive_file + sizes.active_file
}

#[test]
fn a_folio_counts_all_its_pages() {
    for variant in ["after", "before", "k6.12", "classic"] {
        let (mut world, g) = group(variant);
        (0..10).for_each(|_| _ = large(&mut world, g, 3));
        let one = large(&mut world, g, 0);
        assert_eq!(file_pages(&world, g), 81, "{variant}");
        world.drop_folio(one);
        assert_eq!(file_pages(&world, g), 80, "{variant}");
    }
}

#[test]
fn scans_and_steals_come_in_steps_of_a_folio() {
    let (mut world, g) = group("after");
    (0..64).for_each(|_| _ = large(&mut world, g, 4));
    assert!(world.reclaim(g, 1) >= 16);
    for counter in [Counter::PgscanFile, Counter::PgstealFile, Counter::PgstealDirect] {
        let n = world.counter(counter);
        assert!(n > 0 && n.is_multiple_of(16), "{counter:?}: {n}");
    }
}

#[test]
fn a_batch_ends_at_so_many_pages_and_overshoots_by_a_folio() {
    let (mut world, g) = group("after");
    world.files(g, 63);
    large(&mut world, g, 9);
    world.files(g, 600);
    assert_eq!(world.evict(g, 64), 63 + 512, "63 single pages leave room for one folio more");
    assert_eq!(world.toy.freed.len(), 64);
}

#[test]
fn an_accessed_folio_is_protected_with_all_its_pages() {
    let (mut world, g) = group("after");
    let hot = large(&mut world, g, 5);
    (0..5).for_each(|_| world.lru.accessed(hot));
    world.files(g, 5);
    world.evict(g, 5);
    assert_eq!(world.counter(Counter::Pgrefill), 32);
}

#[test]
fn a_refault_counts_the_pages_of_the_new_folio() {
    for variant in ["after", "k6.12", "classic"] {
        let (mut world, g) = group(variant);
        large(&mut world, g, 2);
        large(&mut world, g, 2);
        (0..64).for_each(|_| _ = world.file(g));
        world.reclaim(g, 4);
        let shadow = world.toy.freed[0].shadow;
        world.refault(g, shadow, Entry::Plain);
        assert_eq!(world.counter(Counter::WorkingsetRefaultFile), 1, "{variant}");
        let id = world.unlisted(FolioKind::File, g, NORMAL, 2);
        world.lru.refault(id, shadow, false);
        world.lru.add(id, Entry::Plain);
        assert_eq!(world.counter(Counter::WorkingsetRefaultFile), 5, "{variant}");
        world.lru.check();
    }
}

#[test]
fn halves_keep_what_was_known_of_the_whole() {
    for variant in ["after", "k6.12", "classic"] {
        let (mut world, g) = group(variant);
        let id = large(&mut world, g, 3);
        world.file(g);
        world.lru.accessed(id);
        world.lru.set_dirty(id);
        world.lru.folios_mut()[id].flags.set(Bit::RECLAIM);
        let upper = world.split(id);
        for half in [id, upper] {
            let flags = world.lru.folios()[half].flags;
            assert_eq!(flags.order(), 2);
            assert!(flags.has(Bit::REFERENCED) && flags.has(Bit::DIRTY) && flags.has(Bit::LRU));
            assert!(!flags.has(Bit::RECLAIM), "the mark is of the whole");
        }
        assert_eq!((file_pages(&world, g), world.lru.memcg_write(g).0), (9, 8));
        world.lru.check();
        world.lru.clean(id);
        world.lru.clean(upper);
        world.reclaim(g, 9);
        let order: Vec<u64> = world.toy.freed.iter().map(|f| f.pages).collect();
        assert_eq!(order, [4, 4, 1], "{variant}: the upper half goes after the lower one");
    }
}
