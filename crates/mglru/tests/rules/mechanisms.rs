//! Mechanisms that every version has, each switched off.

use mglru::host::Backing;
use mglru::{Counter, Entry, FolioId, FolioKind, Gfp, LruType, MemcgId, Reclaim, TierRate};

use crate::releases::first_harvest;
use crate::toy::{NODE, World};

const FILE: usize = LruType::File as usize;

fn group(variant: &str, settings: &[(&str, &str)]) -> (World, MemcgId) {
    let mut world = World::with(variant, settings);
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

/// Evicts a folio that was accessed three times and reads it again; returns the tiers' rates.
fn rates_after_refault(settings: &[(&str, &str)]) -> [TierRate; 4] {
    let (mut world, g) = group("after", settings);
    let folio = world.file(g);
    (0..3).for_each(|_| world.lru.accessed(folio));
    world.files(g, 20);
    world.evict(g, 1);
    let shadow = world.toy.freed[0].shadow;
    world.refault(g, shadow, Entry::Plain);
    world.lru.tier_rates(g, NODE)[FILE]
}

#[test]
fn folios_are_distinguished_by_as_many_tiers_as_there_are() {
    let one = TierRate { refaulted: 1, total: 1 };
    for (tiers, tier) in [("4", 2), ("3", 2), ("2", 1), ("1", 0)] {
        assert_eq!(rates_after_refault(&[("tiers", tiers)])[tier], one, "{tiers} tiers");
    }
}

#[test]
fn without_the_controller_no_refault_is_learned() {
    let rates = rates_after_refault(&[("refault_controller", "false")]);
    assert_eq!(rates[2], TierRate { refaulted: 0, total: 1 });
}

#[test]
fn without_filters_a_walk_visits_sparse_tables_again() {
    for (filters, walks) in [("true", 0), ("false", 1)] {
        let (mut world, g) = group("after", &[("bloom_filters", filters)]);
        let mm = world.mm(g);
        let pages = 0..64;
        let folios: Vec<FolioId> =
            pages.map(|n| world.fault_nth(FolioKind::Anon, g, mm, n)).collect();
        folios.iter().for_each(|&folio| world.rest(folio));
        for _ in 0..2 {
            world.toy.walked.clear();
            world.touch(folios[5]);
            let lruvec = world.lru.lruvec_id(g, NODE);
            assert!(world.lru.debug_age(lruvec, 60, false, &mut world.toy));
        }
        assert_eq!(world.toy.walked.len(), walks, "bloom_filters = {filters}");
    }
}

#[test]
fn without_protection_programs_are_deactivated_by_the_classic_lru() {
    for (protection, kept) in [("true", true), ("false", false)] {
        let (mut world, g) = group("classic", &[("exec_protection", protection)]);
        let mm = world.mm(g);
        world.toy.spaces[mm.index()].mappings[2].exec = true;
        let start = world.start_of(mm, Backing::File);
        for (n, folio) in world.files(g, 64).into_iter().enumerate() {
            (0..2).for_each(|_| world.lru.accessed(folio));
            world.map(folio, mm, start + n as u64);
        }
        let mut reclaim = Reclaim::memcg(g, 32, Gfp::default());
        while world.counter(Counter::Pgrefill) == 0 {
            assert_eq!(world.step(&mut reclaim), None);
        }
        assert_eq!(world.counter(Counter::Pgdeactivate) == 0, kept, "{protection}");
    }
}

#[test]
fn without_protection_the_first_touch_of_a_program_proves_nothing() {
    for (protection, age) in [("true", 1), ("false", 3)] {
        let settings = [("exec_first_touch", "true"), ("exec_protection", protection)];
        assert_eq!(first_harvest(&settings), age, "exec_protection = {protection}");
    }
}
