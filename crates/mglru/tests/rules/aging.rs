//! When a new generation is wanted and what a walk does (spec §4.1 to §4.4).

use mglru::folio::Bit;
use mglru::host::Backing;
use mglru::{Counter, Entry, FolioId, FolioKind, Gfp, MemcgId, MmId, Reclaim};

use crate::toy::{NODE, TABLE, World};

const FAULT: Entry = Entry::Fault { recency: true };

/// A large group whose two oldest generations are empty: aging must come first.
fn two_generations(variant: &str) -> (World, MemcgId) {
    let mut world = World::variant(variant);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.anons(g, 20_000);
    assert_eq!(world.evict(g, 1), 0, "nothing may be evicted yet");
    assert_eq!(world.window(g), (3, 2));
    (world, g)
}

/// A large group with three generations.
fn three_generations(variant: &str) -> (World, MemcgId) {
    let mut world = World::variant(variant);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    for folio in world.files(g, 20_000) {
        world.lru.remove(folio);
        world.lru.folios_mut()[folio].flags.set(Bit::WORKINGSET);
        world.lru.add(folio, Entry::Plain);
    }
    world.evict(g, 1);
    assert_eq!(world.window(g), (3, 1));
    (world, g)
}

fn direct(g: MemcgId) -> Reclaim {
    Reclaim::memcg(g, 1000, Gfp::default())
}

#[test]
fn four_generations_never_age() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    world.files(g, 200);
    world.reclaim(g, 32);
    assert_eq!(world.counter(Counter::AgingPasses), 0);
    assert_eq!(world.window(g).0, 3);
}

#[test]
fn must_age_holds_at_the_first_priority_after_p04() {
    let (mut world, g) = two_generations("after");
    world.run_first_priority(direct(g));
    assert_eq!(world.counter(Counter::AgingPasses), 1);
    assert!(!world.toy.freed.is_empty(), "I14: the same pass evicts");
}

#[test]
fn must_age_wastes_the_first_priority_before_p04() {
    let (mut world, g) = two_generations("before");
    world.run_first_priority(direct(g));
    assert_eq!(world.counter(Counter::AgingPasses), 0);
    assert_eq!(world.toy.freed.len(), 0);
}

#[test]
fn should_age_is_ignored_at_the_first_priority() {
    for variant in ["after", "before"] {
        let (mut world, g) = three_generations(variant);
        world.run_first_priority(direct(g));
        assert_eq!(world.counter(Counter::AgingPasses), 0, "{variant}");
        assert!(world.toy.freed.len() > 1, "{variant}: it evicts instead");
    }
}

#[test]
fn should_age_holds_below_the_first_priority() {
    for variant in ["after", "before"] {
        let (mut world, g) = three_generations(variant);
        let mut reclaim = world.run_first_priority(direct(g));
        assert_eq!(reclaim.priority(), 11);
        while reclaim.priority() == 11 && world.step(&mut reclaim).is_none() {}
        assert_eq!(world.counter(Counter::AgingPasses), 1, "{variant}");
    }
}

#[test]
fn k612_is_content_with_three_well_spread_generations() {
    for (rule, ages) in [("k612", false), ("k614", true)] {
        let mut world = World::with("k6.12", &[("aging_rule", rule)]);
        let g = world.group(MemcgId::ROOT);
        world.files(g, 200);
        world.evict(g, 1);
        assert_eq!(world.window(g), (3, 1), "all in the oldest of three");
        world.reclaim(g, 32);
        assert_eq!(world.counter(Counter::AgingPasses) > 0, ages, "{rule}");
    }
}

#[test]
fn k612_ages_when_the_oldest_generation_is_small() {
    for (files, passes) in [(300, 1), (900, 0)] {
        let mut world = World::variant("k6.12");
        world.checks_steps = false;
        let g = world.group(MemcgId::ROOT);
        world.files(g, files);
        world.anons(g, 2000);
        world.reclaim(g, 32);
        assert_eq!(world.counter(Counter::AgingPasses), passes, "{files} of {}", files + 2000);
    }
}

/// A group with one address space that maps `n` anon folios side by side, all long untouched.
fn mapped(variant: &str, n: u64) -> (World, MemcgId, MmId, Vec<FolioId>) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    let mm = world.mm(g);
    let folios: Vec<FolioId> = (0..n).map(|i| world.fault_nth(FolioKind::Anon, g, mm, i)).collect();
    for &folio in &folios {
        world.rest(folio);
    }
    (world, g, mm, folios)
}

/// Ages as reclaim does: new address spaces are walked whole, others by their filters.
fn age(world: &mut World, g: MemcgId) {
    let id = world.lru.lruvec_id(g, crate::toy::NODE);
    assert!(world.lru.debug_age(id, 60, false, &mut world.toy));
}

#[test]
fn an_address_space_that_did_not_run_is_not_walked_again() {
    let (mut world, g, ..) = mapped("after", 8);
    age(&mut world, g);
    assert_eq!(world.toy.walked.len(), 192, "new: every table");
    world.toy.walked.clear();
    age(&mut world, g);
    assert_eq!(world.toy.walked.len(), 0);
}

#[test]
fn a_dense_table_is_remembered_and_a_sparse_one_is_not() {
    for (young, again) in [(8, 1), (7, 0)] {
        let (mut world, g, _, folios) = mapped("after", 64);
        folios.iter().take(young).for_each(|&f| world.touch(f));
        age(&mut world, g);
        world.toy.walked.clear();
        world.touch(folios[63]);
        age(&mut world, g);
        assert_eq!(world.toy.walked.len(), again, "{young} of 64 were young");
    }
}

#[test]
fn a_contended_table_is_remembered_by_k614_only() {
    for (variant, again) in [("after", 1), ("k6.12", 0)] {
        let (mut world, g, mm, folios) = mapped(variant, 64);
        world.evict(g, 1);
        assert!(!world.is_freed(0), "the empty generations alone were given up");
        world.toy.contended.insert((mm, 0));
        age(&mut world, g);
        world.toy.contended.clear();
        world.toy.walked.clear();
        world.touch(folios[0]);
        age(&mut world, g);
        assert_eq!(world.toy.walked.len(), again, "{variant}");
    }
}

#[test]
fn a_table_whose_own_bit_is_clear_is_skipped_where_the_cpu_sets_it() {
    for (bit, walks) in [("true", 0), ("false", 1)] {
        let mut world = World::with("after", &[("nonleaf_young", bit)]);
        let g = world.group(MemcgId::ROOT);
        let mm = world.mm(g);
        let folio = world.fault_nth(FolioKind::Anon, g, mm, 0);
        age(&mut world, g);
        world.toy.walked.clear();
        world.touch(folio);
        world.toy.spaces[mm.index()].young_tables.clear();
        age(&mut world, g);
        assert_eq!(world.toy.walked.len(), walks, "nonleaf_young = {bit}");
    }
}

#[test]
fn swappiness_zero_does_not_walk_anonymous_mappings() {
    let (mut world, g, ..) = mapped("after", 8);
    world.toy.groups[g.index()].swappiness = 0;
    world.age(g);
    assert_eq!(world.toy.walked.len(), 64, "the file mapping only");
}

#[test]
fn mappings_without_recency_and_special_ones_are_not_walked() {
    let (mut world, g, mm, _) = mapped("after", 8);
    world.toy.spaces[mm.index()].mappings[0].recency = false;
    world.toy.spaces[mm.index()].mappings[1].special = true;
    world.age(g);
    assert_eq!(world.toy.walked.len(), 64);
}

#[test]
fn a_dirty_entry_makes_its_folio_dirty_unless_it_is_fresh_anonymous_memory() {
    let (mut world, g, mm, folios) = mapped("after", 2);
    for (i, &folio) in folios.iter().enumerate() {
        world.touch(folio);
        let page = i as u64;
        world.toy.spaces[mm.index()].ptes.get_mut(&page).unwrap().dirty = true;
    }
    world.lru.folios_mut()[folios[1]].flags.set(Bit::SWAPCACHE);
    world.age(g);
    assert!(!world.has(folios[0], Bit::DIRTY) && world.has(folios[1], Bit::DIRTY));
}

#[test]
fn without_page_table_walks_aging_harvests_nothing() {
    let mut world = World::with("after", &[("young_source", "rmap")]);
    let g = world.group(MemcgId::ROOT);
    let mm = world.mm(g);
    world.fault_nth(FolioKind::Anon, g, mm, 0);
    world.age(g);
    assert_eq!((world.window(g).0, world.toy.walked.len()), (4, 0));
}

/// Measured on 6.12.117: `+ memcg node seq can_swap 0` answers ERANGE while there are four.
#[test]
fn a_fifth_generation_must_be_forced_in_k612() {
    for (variant, force, aged) in
        [("k6.12", false, false), ("k6.12", true, true), ("after", false, true)]
    {
        let mut world = World::variant(variant);
        let g = world.group(MemcgId::ROOT);
        let id = world.lru.lruvec_id(g, NODE);
        assert_eq!(world.window(g), (3, 0), "four from the start");
        let World { lru, toy, .. } = &mut world;
        assert_eq!(lru.debug_age(id, 60, force, toy), aged, "{variant} {force}");
    }
}

/// File folios mapped side by side, all in the oldest generation; every one is young.
fn neighbours(variant: &str, n: u64) -> (World, MemcgId, Vec<FolioId>) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    let mm = world.mm(g);
    let start = world.start_of(mm, Backing::File);
    let folios = (0..n)
        .map(|i| {
            let folio = world.add(FolioKind::File, g, Entry::Fault { recency: false });
            world.map(folio, mm, start + i);
            folio
        })
        .collect();
    (world, g, folios)
}

#[test]
fn looking_around_marks_the_window_of_64_and_no_more() {
    let (mut world, g, folios) = neighbours("after", 200);
    world.evict(g, 1);
    assert_eq!(world.toy.rmap_walks, [folios[0], folios[1]]);
    assert_eq!(world.freed_keys(), [1], "the first was in use, the second was harvested with it");
    let marked: Vec<usize> =
        (0..200).filter(|&i| i != 1 && world.has(folios[i], Bit::REFERENCED)).collect();
    let window: Vec<usize> = (0..64).filter(|&i| i != 1).collect();
    assert_eq!(marked, window);
}

/// Spec §3.4: the mark that look-around leaves on an isolated folio keeps it (K612).
#[test]
fn neighbours_isolated_together_are_kept_together() {
    let (mut world, g, folios) = neighbours("k6.12", 64);
    world.evict(g, 64);
    assert_eq!(world.toy.rmap_walks, [folios[0]], "one look found all of them in use");
    assert_eq!(world.freed_keys(), [0; 0]);
    assert!(folios.iter().all(|&f| world.age_of(g, f) == 0), "all are young again");
}

/// Spec §4.4: in 6.12 file memory, lazily freed memory too, leaves anonymous neighbours alone.
#[test]
fn looking_around_from_file_memory_skips_anonymous_neighbours_in_6_12() {
    for (variant, spared) in [("k6.12", true), ("after", false)] {
        let mut world = World::variant(variant);
        let g = world.group(MemcgId::ROOT);
        let mm = world.mm(g);
        let start = world.start_of(mm, Backing::Anon);
        let folios = [0, 1].map(|i| {
            let folio = world.add(FolioKind::Anon, g, FAULT);
            world.map(folio, mm, start + i);
            folio
        });
        world.lru.lazyfree(folios[0]);
        world.touch(folios[0]);
        world.evict(g, 1);
        assert_eq!(world.toy.rmap_walks, [folios[0]], "{variant}");
        let young = world.toy.spaces[mm.index()].ptes[&(start + 1)].young;
        assert_eq!(young, spared, "{variant}: the neighbour's accessed bit");
    }
}

/// Spec §4.3: the reclaimer that isolated a folio asks for its accessed bits itself (K614), so one
/// that is in use is not freed because a neighbour in the same batch was looked at first.
#[test]
fn neighbours_isolated_together_are_each_asked() {
    for variant in ["before", "after"] {
        let (mut world, g, folios) = neighbours(variant, 64);
        world.evict(g, 64);
        assert_eq!(world.toy.rmap_walks, folios, "{variant}");
        assert_eq!(world.freed_keys(), [0; 0], "{variant}");
    }
}

#[test]
fn looking_around_stays_inside_one_page_table() {
    let (mut world, g, mut folios) = neighbours("after", TABLE + 40);
    let last = folios.remove(TABLE as usize - 1);
    folios.iter().for_each(|&f| world.lru.deactivate(f));
    for &folio in &folios {
        world.lru.remove(folio);
        world.lru.folios_mut()[folio].flags.set(Bit::ACTIVE);
        world.lru.add(folio, Entry::Plain);
    }
    world.evict(g, 1);
    assert_eq!(world.toy.rmap_walks, [last]);
    let marked = folios.iter().filter(|&&f| world.has(f, Bit::REFERENCED)).count();
    assert_eq!(marked, 32, "half a window: the other half is in the next table");
}

#[test]
fn a_mapped_folio_needs_two_touches_to_be_activated_by_reclaim() {
    let (mut world, g, folios) = neighbours("after", 1);
    world.evict(g, 1);
    assert_eq!(world.counter(Counter::Pgactivate), 0, "first touch: kept");
    assert!(!world.has(folios[0], Bit::WORKINGSET));
    let again = world.add(FolioKind::File, g, FAULT);
    assert!(world.has(again, Bit::REFERENCED), "the fault was the first touch");
}
