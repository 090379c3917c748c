//! Moves in bulk (spec §11, I28): the order of those that are pushed out, and what ends a run.

use mglru::{Counter, FolioId, FolioKind, MemcgId};

use crate::toy::World;

/// Mapped file folios in the oldest of four generations; nobody has used them since.
fn oldest(settings: &[(&str, &str)], n: u64) -> (World, MemcgId, Vec<FolioId>) {
    let mut world = World::with("k6.12", settings);
    let g = world.group(MemcgId::ROOT);
    let mm = world.mm(g);
    let folios: Vec<FolioId> =
        (0..n).map(|nth| world.fault_nth(FolioKind::File, g, mm, nth)).collect();
    folios.iter().for_each(|&folio| world.rest(folio));
    (0..3).for_each(|_| world.age(g));
    assert!(folios.iter().all(|&folio| world.age_of(g, folio) == 3));
    (world, g, folios)
}

const BULK: [(&str, &str); 2] = [("bulk_counters", "true"), ("bulk_moves", "true")];

#[test]
fn a_run_keeps_its_order_and_one_by_one_it_turns_around() {
    for (settings, order) in [(&BULK[..], [0, 1, 2, 3]), (&[], [3, 2, 1, 0])] {
        let (mut world, g, _) = oldest(settings, 4);
        world.age(g);
        world.evict(g, 4);
        assert_eq!(world.freed_keys(), order, "{settings:?}");
    }
}

#[test]
fn a_promoted_folio_inside_a_run_ends_it_and_is_not_spliced_along() {
    let (mut world, g, folios) = oldest(&BULK, 4);
    world.touch(folios[2]);
    world.age(g);
    assert_eq!(world.age_of(g, folios[2]), 1, "in the generation that its use promoted it to");
    assert_eq!([0, 1, 3].map(|i| world.age_of(g, folios[i])), [3, 3, 3]);
    world.evict(g, 3);
    assert_eq!(world.freed_keys(), [3, 0, 1], "the run behind it is spliced behind the first");
    assert!(!world.is_freed(2));
}

#[test]
fn a_run_takes_one_list_operation_and_all_its_folios() {
    for (settings, splices) in [(&BULK[..], 1), (&[], 100)] {
        let (mut world, g, folios) = oldest(settings, 100);
        let before = [Counter::PassedOn, Counter::PassedOnSplices].map(|c| world.counter(c));
        world.age(g);
        assert!(folios.iter().all(|&folio| world.age_of(g, folio) == 3));
        assert_eq!(world.counter(Counter::PassedOn) - before[0], 100);
        assert_eq!(world.counter(Counter::PassedOnSplices) - before[1], splices);
    }
}
