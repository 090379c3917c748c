//! What a page that returns says (spec §6).

use mglru::folio::Bit;
use mglru::{Counter, Entry, FolioId, MemcgId, Shadow};

use crate::toy::World;

const FAULT: Entry = Entry::Fault { recency: true };

/// Evicts one file folio with `accesses` and returns its shadow.
fn evicted(variant: &str, accesses: u32) -> (World, MemcgId, Shadow) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    let folio = world.file(g);
    (0..accesses).for_each(|_| world.lru.accessed(folio));
    world.files(g, 20);
    world.evict(g, 1);
    assert_eq!(world.freed_keys()[0], 0);
    let shadow = world.toy.freed[0].shadow;
    (world, g, shadow)
}

fn refs(world: &World, folio: FolioId) -> (u32, bool) {
    (world.lru.folios()[folio].flags.refs(), world.has(folio, Bit::WORKINGSET))
}

#[test]
fn k614_restores_the_count_of_a_folio_without_workingset() {
    for (accesses, expected) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)] {
        let (mut world, g, shadow) = evicted("after", accesses);
        let folio = world.refault(g, shadow, Entry::Plain);
        assert_eq!(refs(&world, folio), (expected, false), "{accesses} accesses");
        assert_eq!(world.counter(Counter::WorkingsetRefaultFile), 1);
        assert_eq!(world.counter(Counter::WorkingsetRestoreFile), 0);
    }
}

/// Evicts one file folio with the workingset flag.
fn evicted_workingset(variant: &str) -> (World, MemcgId, Shadow) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    let folio = world.file(g);
    world.lru.folios_mut()[folio].flags.set(Bit::WORKINGSET);
    world.files(g, 20);
    world.evict(g, 1);
    let shadow = world.toy.freed[0].shadow;
    (world, g, shadow)
}

#[test]
fn k614_restores_the_workingset_flag() {
    let (mut world, g, shadow) = evicted_workingset("after");
    let folio = world.refault(g, shadow, Entry::Plain);
    assert_eq!(refs(&world, folio), (0, true));
    assert_eq!(world.counter(Counter::WorkingsetRestoreFile), 1);
    assert_eq!(world.counter(Counter::WorkingsetActivateFile), 0, "not in a fault");
}

#[test]
fn a_workingset_folio_that_faults_in_is_activated() {
    let (mut world, g, shadow) = evicted_workingset("after");
    let folio = world.refault(g, shadow, FAULT);
    assert_eq!(world.counter(Counter::WorkingsetActivateFile), 1);
    assert_eq!(world.age_of(g, folio), 0);
}

#[test]
fn a_fault_alone_activates_before_the_prefault_patch_only() {
    for (variant, activations) in [("after", 0), ("before", 1)] {
        let (mut world, g, shadow) = evicted(variant, 0);
        world.refault(g, shadow, FAULT);
        let counted = world.counter(Counter::WorkingsetActivateFile);
        assert_eq!(counted, activations, "{variant}");
    }
}

#[test]
fn k614_is_recent_within_four_generations() {
    for (ages, recent) in [(0, true), (1, false), (2, false)] {
        let (mut world, g, shadow) = evicted_workingset("after");
        (0..ages).for_each(|_| world.age(g));
        world.refault(g, shadow, Entry::Plain);
        let restored = world.counter(Counter::WorkingsetRestoreFile);
        assert_eq!(restored == 1, recent, "{ages} generations later");
        assert_eq!(world.counter(Counter::WorkingsetRefaultFile), 1);
    }
}

#[test]
fn k612_is_recent_while_the_oldest_generation_is_the_same() {
    for (ages, recent) in [(0, true), (1, true), (2, true), (3, false)] {
        let (mut world, g, shadow) = evicted("k6.12", 0);
        // Two generations are left; the window has room for two more.
        (0..ages).for_each(|_| world.age(g));
        world.refault(g, shadow, Entry::Plain);
        let activated = world.counter(Counter::WorkingsetActivateFile);
        assert_eq!(activated == 1, recent, "{ages} generations later");
    }
}

#[test]
fn k612_saturates_a_folio_that_faults_in_or_was_used_often() {
    let (mut world, g, shadow) = evicted("k6.12", 0);
    let read = world.refault(g, shadow, Entry::Plain);
    assert_eq!(refs(&world, read), (0, false), "read again: counted, not restored");
    let (mut world, g, shadow) = evicted("k6.12", 0);
    world.refault(g, shadow, FAULT);
    assert_eq!(world.counter(Counter::WorkingsetRestoreFile), 1);
    let (mut world, g, shadow) = evicted("k6.12", 4);
    let often = world.refault(g, shadow, Entry::Plain);
    assert_eq!(refs(&world, often), (3, true));
}

#[test]
fn a_page_that_returns_to_another_group_is_not_accounted() {
    let (mut world, _, shadow) = evicted("after", 0);
    let other = world.group(MemcgId::ROOT);
    world.refault(other, shadow, FAULT);
    assert_eq!(world.counter(Counter::WorkingsetRefaultFile), 0);
}

/// `refaulted` of 100 evicted folios with `accesses` return; then 10 new ones with as many
/// accesses and one idle folio are met. How many of the ten are protected?
fn protected_after(variant: &str, accesses: u32, refaulted: usize) -> u64 {
    let mut world = World::variant(variant);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    let used = world.files(g, 100);
    for &folio in &used {
        (0..accesses).for_each(|_| world.lru.accessed(folio));
    }
    world.files(g, 200);
    world.evict(g, 100);
    assert_eq!(world.freed_keys(), (0..100).collect::<Vec<u32>>());
    let shadows: Vec<Shadow> = world.toy.freed.iter().map(|f| f.shadow).collect();
    for &shadow in &shadows[..refaulted] {
        world.refault(g, shadow, Entry::Plain);
    }
    for folio in world.files(g, 10) {
        (0..accesses).for_each(|_| world.lru.accessed(folio));
    }
    let before = world.counter(Counter::Protected);
    world.evict(g, 1000);
    world.counter(Counter::Protected) - before
}

#[test]
fn a_tier_that_refaults_is_protected_once_there_is_enough_evidence() {
    assert!(protected_after("after", 2, 64) >= 10, "64 refaults of tier 1");
    assert_eq!(protected_after("after", 2, 63), 0, "one less says nothing yet");
}

#[test]
fn the_first_tier_is_never_protected() {
    assert_eq!(protected_after("after", 1, 100), 0);
    assert_eq!(protected_after("after", 0, 100), 0);
}

#[test]
fn the_refault_counts_for_the_tier_it_was_evicted_from() {
    // Tier 2 refaults; folios of tier 1 are not protected for it.
    let mut world = World::variant("after");
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    for folio in world.files(g, 100) {
        (0..3).for_each(|_| world.lru.accessed(folio));
    }
    world.files(g, 200);
    world.evict(g, 100);
    let shadows: Vec<Shadow> = world.toy.freed.iter().map(|f| f.shadow).collect();
    for shadow in shadows {
        world.refault(g, shadow, Entry::Plain);
    }
    let tier_1 = world.files(g, 10);
    tier_1.iter().for_each(|&f| (0..2).for_each(|_| world.lru.accessed(f)));
    let tier_2 = world.files(g, 10);
    tier_2.iter().for_each(|&f| (0..3).for_each(|_| world.lru.accessed(f)));
    let protected = world.counter(Counter::Protected);
    world.evict(g, 10_000);
    assert_eq!(world.counter(Counter::Protected) - protected, 10);
}
