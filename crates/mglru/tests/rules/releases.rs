//! Rules that Linux 7.1 to 7.3 have besides the 2026 series, each alone on top of it.

use mglru::folio::Bit;
use mglru::host::Backing;
use mglru::{Counter, Entry, FolioId, FolioKind, Gfp, MemcgId, Reclaim};

use crate::toy::{NODE, NORMAL, World};

const FULL: usize = 31;

fn with(base: &str, rule: &str) -> (World, MemcgId) {
    let mut world = World::with(base, &[(rule, "true")]);
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

fn listed(world: &World) -> u64 {
    let sizes = world.lru.sizes(MemcgId(1), NODE);
    sizes.inactive_file + sizes.active_file
}

#[test]
fn a_batch_of_31_drains_and_what_was_read_meanwhile_enters_one_generation_younger() {
    let (mut world, g) = with("after", "drain_entry");
    let mut folios = Vec::new();
    for n in 0..FULL {
        assert_eq!(listed(&world), 0, "{n} wait");
        folios.push(world.file(g));
        world.lru.accessed(folios[n]);
    }
    world.lru.check();
    assert_eq!(listed(&world), FULL as u64);
    let ages: Vec<u64> = folios.iter().map(|&folio| world.age_of(g, folio)).collect();
    assert_eq!(ages[..FULL - 1], [2; FULL - 1], "marked before the batch drained");
    assert_eq!(ages[FULL - 1], 3, "the last one drained the batch before its own mark");
}

#[test]
fn without_the_rule_a_folio_is_listed_at_once() {
    let (mut world, g) = with("after", "goal_stop");
    let folio = world.file(g);
    world.lru.accessed(folio);
    assert_eq!((listed(&world), world.age_of(g, folio)), (1, 3));
}

#[test]
fn a_large_folio_drains_the_batch_it_comes_to() {
    let (mut world, g) = with("after", "drain_entry");
    world.files(g, 2);
    let large = world.unlisted(FolioKind::File, g, NORMAL, 2);
    world.lru.add(large, Entry::Plain);
    assert_eq!(listed(&world), 6);
}

#[test]
fn reclaim_drains_the_batch_of_its_own_processor() {
    let (mut world, g) = with("after", "drain_entry");
    world.lru.run_on_cpu(1);
    world.files(g, 3);
    world.lru.run_on_cpu(0);
    world.files(g, 5);
    assert_eq!(world.reclaim(g, 32), 5, "three wait for another processor");
    world.lru.run_on_cpu(1);
    assert_eq!(world.reclaim(g, 32), 3);
}

#[test]
fn a_waiting_folio_can_be_dropped_and_locked() {
    let (mut world, g) = with("after", "drain_entry");
    let folios = world.files(g, 3);
    world.drop_folio(folios[0]);
    world.lru.set_mlocked(folios[1], true);
    world.lru.drain_parked();
    world.lru.check();
    assert_eq!((listed(&world), world.lru.sizes(g, NODE).unevictable), (1, 1));
    world.file(g);
    world.lru.offline_memcg(g);
    assert_eq!(listed(&world), 2, "a removed group has nothing on its way");
}

/// A mapped file folio that reclaim finds young: generations below the youngest, and whether it
/// has proved reuse.
fn after_a_look(rule: &str) -> (u64, bool) {
    let (mut world, g) = with("after", rule);
    let mm = world.mm(g);
    let folio = world.fault_nth(FolioKind::File, g, mm, 0);
    world.rest(folio);
    world.age(g);
    world.touch(folio);
    world.evict(g, 1);
    (world.age_of(g, folio), world.has(folio, Bit::WORKINGSET))
}

#[test]
fn the_touch_after_the_fault_is_not_the_proof_of_reuse() {
    assert_eq!(after_a_look("goal_stop"), (0, true));
    assert_eq!(after_a_look("touch_ladder"), (1, false));
}

/// Mapped neighbours of which only the first is met by reclaim, without the state of a walk.
fn neighbour_after_a_look(rule: &str) -> (World, MemcgId, FolioId) {
    let (mut world, g) = with("after", rule);
    let mm = world.mm(g);
    let start = world.start_of(mm, Backing::File);
    let tail = world.file(g);
    world.map(tail, mm, start);
    let other = world.add(FolioKind::File, g, Entry::Referenced);
    world.map(other, mm, start + 1);
    world.files(g, 20_000);
    world.run_first_priority(Reclaim::memcg(g, 1, Gfp::default()));
    (world, g, other)
}

#[test]
fn a_neighbour_climbs_too() {
    for (rule, proven, age) in [("couple_both", true, 0), ("touch_ladder", false, 1)] {
        let (world, g, other) = neighbour_after_a_look(rule);
        assert_eq!(world.has(other, Bit::WORKINGSET), proven, "{rule}");
        assert_eq!(world.age_of(g, other), age, "{rule}");
        assert_eq!(world.counter(Counter::Pgactivate), 1, "{rule}");
    }
}

#[test]
fn the_reclaim_of_a_group_stops_at_its_goal() {
    let freed = |rule| {
        let (mut world, g) = with("after", rule);
        world.files(g, 40_000);
        let mut reclaim = Reclaim::memcg(g, 1, Gfp::default());
        while reclaim.priority() > 7 && world.step(&mut reclaim).is_none() {}
        world.toy.freed.len()
    };
    assert_eq!(freed("couple_both"), 9 + 19 + 39, "40,000 pages shifted by 12, 11 and 10");
    let (mut world, g) = with("after", "goal_stop");
    world.files(g, 1_000_000);
    assert_eq!(world.reclaim(g, 1), 64, "one batch of the 244 pages that are due");
    let (mut world, g) = with("after", "couple_both");
    world.files(g, 1_000_000);
    assert_eq!(world.reclaim(g, 1), 244);
}

#[test]
fn a_type_that_cannot_be_evicted_does_not_hold_the_other_back() {
    for (rule, gens) in [("goal_stop", 3), ("couple_both", 2)] {
        let (mut world, g) = with("after", rule);
        world.toy.groups[g.index()].swappiness = 0;
        world.anons(g, 4);
        world.file(g);
        world.add(FolioKind::File, g, Entry::Referenced);
        for _ in 0..3 {
            let id = world.lru.lruvec_id(g, NODE);
            let (max, _) = world.window(g);
            let _ = world.lru.debug_evict(id, mglru::Seq(max - 2), 0, 8, &mut world.toy);
        }
        let (max, _) = world.window(g);
        let oldest = world.lru.oldest_seq(world.lru.lruvec_id(g, NODE), 0);
        assert_eq!(max - oldest.0 + 1, gens, "{rule}");
    }
}

/// Ages once after a page of a program was used for the first time. Returns how many generations
/// the page lies below the youngest.
pub(super) fn first_harvest(settings: &[(&str, &str)]) -> u64 {
    let mut world = World::with("after", settings);
    let g = world.group(MemcgId::ROOT);
    let mm = world.mm(g);
    let folio = world.file(g);
    world.lru.folios_mut()[folio].flags.set(Bit::EXEC);
    world.map(folio, mm, world.start_of(mm, Backing::File));
    world.lru.mm_ran(mm, NODE);
    world.files(g, 5);
    world.age(g);
    world.age_of(g, folio)
}

#[test]
fn the_first_harvest_of_a_program_moves_it_to_the_youngest() {
    // The walk is made for the generation that is the youngest before the new one opens.
    assert_eq!(first_harvest(&[("exec_first_touch", "true")]), 1);
    assert_eq!(first_harvest(&[("touch_ladder", "true")]), 3);
}

#[test]
fn seven_one_is_before_and_seven_two_is_after_with_these_rules() {
    let on = |name: &str| {
        let config = mglru::Config::variant(name).unwrap();
        let on = config.releases.states().into_iter().filter(|(_, on)| *on);
        on.map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(on("before"), [""; 0]);
    assert_eq!(on("after"), [""; 0]);
    let k71 = ["couple_both", "blind_shadow_limit", "reparent", "stale_protection"];
    assert_eq!(on("k7.1"), k71);
    let k72 = ["drain_entry", "touch_ladder", "goal_stop", "swapin_drain"];
    assert_eq!(on("k7.2"), [&k71[..], &k72[..]].concat());
    assert!(!on("k7.3").contains(&"blind_shadow_limit") && on("k7.3").contains(&"drain_entry"));
}

/// The example of the specification: slots of the same number join, whatever ages they stand for.
#[test]
fn a_removed_groups_generations_join_its_parents_slot_by_slot() {
    for (ages, oldest) in [(2, 1), (3, 2)] {
        let (mut world, parent) = with("after", "reparent");
        let child = world.group(parent);
        (0..ages).for_each(|_| world.age(parent));
        let folio = world.files(child, 3)[2];
        let sizes = world.lru.sizes(child, NODE);
        assert!(world.lru.remove_memcg(child, 0));
        world.lru.check();
        assert_eq!(world.lru.sizes(child, NODE), mglru::Sizes::default());
        let all = world.lru.sizes(parent, NODE);
        assert_eq!(all.inactive_file + all.active_file, 3);
        assert_eq!(sizes.inactive_file + sizes.active_file, 3);
        assert_eq!(world.age_of(parent, folio), oldest, "{ages} generations later");
    }
}

#[test]
fn without_the_rule_a_removed_group_keeps_what_it_has() {
    let (mut world, parent) = with("after", "goal_stop");
    let child = world.group(parent);
    let folios = world.files(child, 3);
    assert!(!world.lru.remove_memcg(child, 0) && !world.lru.release_if_empty(child));
    folios.into_iter().for_each(|folio| world.drop_folio(folio));
    assert!(world.lru.release_if_empty(child) && !world.lru.release_if_empty(child));
}

#[test]
fn a_request_for_anonymous_memory_alone_leaves_files_be_without_swap() {
    for (rule, freed) in [("goal_stop", true), ("anon_only_kept", false)] {
        let (mut world, g) = with("after", rule);
        world.toy.groups[g.index()].swap_left = 0;
        world.files(g, 5000);
        world.anons(g, 100);
        let anon_only = Some(201);
        let got = world.run(Reclaim::proactive(g, 40, anon_only));
        assert_eq!(got > 0, freed, "{rule}");
    }
}

/// Does a request to the root take from a group that is all protected while kswapd has never run,
/// and does it after kswapd has?
fn takes_from_protected(rule: &str) -> [bool; 2] {
    let (mut world, g) = with("after", rule);
    world.checks_steps = false;
    world.toy.groups[g.index()].min = 6000;
    world.files(g, 5000);
    let taken = |world: &World| world.lru.memcg_counters(g)[Counter::PgstealFile];
    world.run(Reclaim::proactive(MemcgId::ROOT, 64, None));
    let first = taken(&world);
    world.toy.zones[NORMAL.index()].free = 50;
    world.run(Reclaim::kswapd(NODE, 0));
    let before = taken(&world);
    world.run(Reclaim::proactive(MemcgId::ROOT, 64, None));
    [first > 0, taken(&world) > before]
}

#[test]
fn root_reclaim_goes_by_protection_as_kswapd_last_computed_it() {
    assert_eq!(takes_from_protected("goal_stop"), [false, false]);
    assert_eq!(takes_from_protected("stale_protection"), [true, false]);
}
