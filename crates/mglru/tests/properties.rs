//! Properties that hold for every history (spec §13), as far as they can be seen from outside.
//! The structure itself (I1 to I5) is checked by [`mglru::Lru::check`] after every step.

#[path = "properties/churn.rs"]
mod churn;
#[path = "properties/crowd.rs"]
mod crowd;
#[path = "toy/toy.rs"]
mod toy;

use churn::{Churn, Trace};
use crowd::Crowd;
use mglru::judge::{Bench, Facts, References, Verdict, judge};
use mglru::{Config, Counter, Gfp, LruType, MemcgId, Reclaim};
use proptest::prelude::*;
use toy::{NODE, NORMAL, World};

const VARIANTS: [&str; 10] =
    ["after", "before", "k6.12", "classic", "v2", "v4", "v5", "k7.1", "k7.2", "k7.3"];

/// Mechanisms that no version has otherwise.
const CHANGES: [(&str, &str); 9] = [
    ("generations", "2"),
    ("generations", "3"),
    ("generations", "7"),
    ("generations", "64"),
    ("one_clock", "false"),
    ("workingset", "distance"),
    ("workingset", "generations"),
    ("young_source", "ptw"),
    ("young_source", "rmap"),
];

fn trace(config: &Config, seed: u64, steps: usize) -> Trace {
    let mut churn = Churn::new(config.clone(), seed);
    (0..steps).for_each(|_| churn.step());
    churn.trace()
}

fn variant(name: &str) -> Config {
    Config::variant(name).expect("a known variant")
}

fn flipped(name: &str, patch: &str) -> Config {
    let mut config = variant(name);
    let (_, on) =
        config.patches.states().into_iter().find(|(known, _)| *known == patch).expect("a switch");
    config.set(patch, if on { "false" } else { "true" }).expect("a known switch");
    config
}

/// Without protection, of clean file pages that are all in the oldest generation.
fn clean_group(config: Config, pages: usize) -> (World, MemcgId) {
    let mut world = World::new(config);
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    world.files(g, pages);
    (world, g)
}

/// Each case is a whole history; what fails is repeated by the seed that is printed.
fn few_cases() -> ProptestConfig {
    ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() }
}

fn met(world: &World) -> u64 {
    let c = |counter| world.counter(counter);
    c(Counter::PgscanAnon) + c(Counter::PgscanFile) + c(Counter::Pgrefill) + c(Counter::PgscanSkip)
}

proptest! {
    #![proptest_config(few_cases())]

    #[test]
    fn no_folio_is_lost_and_none_is_freed_twice(seed: u64, name in 0..VARIANTS.len()) {
        let mut churn = Churn::new(variant(VARIANTS[name]), seed);
        for _ in 0..150 {
            churn.step();
            churn.check_conservation();
        }
    }

    #[test]
    fn none_is_lost_whatever_mechanism_is_changed(
        seed: u64,
        name in 0..VARIANTS.len(),
        (first, second) in (0..CHANGES.len(), 0..CHANGES.len()),
    ) {
        let mut config = variant(VARIANTS[name]);
        for (key, value) in [CHANGES[first], CHANGES[second]] {
            config.set(key, value).expect("a known key");
        }
        let mut churn = Churn::new(config, seed);
        for _ in 0..150 {
            churn.step();
            churn.check_conservation();
        }
    }

    #[test]
    fn sequence_numbers_never_decrease(seed: u64, name in 0..VARIANTS.len()) {
        let mut churn = Churn::new(variant(VARIANTS[name]), seed);
        let mut before = churn.world.window(churn.group);
        for _ in 0..150 {
            churn.step();
            let now = churn.world.window(churn.group);
            prop_assert!(now.0 >= before.0 && now.1 >= before.1, "{before:?} to {now:?}");
            before = now;
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace(seed: u64, name in 0..VARIANTS.len()) {
        let config = variant(VARIANTS[name]);
        prop_assert_eq!(trace(&config, seed, 100), trace(&config, seed, 100));
    }

    #[test]
    fn refactoring_patches_change_nothing(seed: u64, patch in 0..6usize, after: bool) {
        let patch = ["p01", "p02", "p03", "p11", "p12", "p13"][patch];
        let base = if after { "after" } else { "before" };
        let (with, without) = (variant(base), flipped(base, patch));
        prop_assert_eq!(trace(&with, seed, 150), trace(&without, seed, 150), "{}", patch);
    }

    #[test]
    fn batched_counters_and_prefetch_change_nothing(seed: u64, name in 0..VARIANTS.len()) {
        let plain = variant(VARIANTS[name]);
        let mut config = plain.clone();
        for key in ["bulk_counters", "bulk_prefetch"] {
            config.set(key, "true").expect("a known key");
        }
        prop_assert_eq!(trace(&plain, seed, 150), trace(&config, seed, 150));
    }

    #[test]
    fn p14_changes_nothing_for_root_reclaim(seed: u64) {
        let root_only = |config| {
            let mut churn = Churn::new(config, seed);
            churn.root_only = true;
            (0..150).for_each(|_| churn.step());
            churn.trace()
        };
        prop_assert_eq!(root_only(variant("after")), root_only(flipped("after", "p14")));
    }

    #[test]
    fn a_pass_never_charges_more_than_its_budget_and_two_scans(
        pages in 1usize..60_000,
        accesses in 0u32..6,
        p06 in prop::bool::weighted(0.8),
    ) {
        let mut config = variant("after");
        config.patches.p06 = p06;
        let (mut world, g) = clean_group(config, pages);
        let ids: Vec<_> = world.lru.folios().iter().map(|(id, _)| id).collect();
        for &id in ids.iter().take(200).step_by(3) {
            (0..accesses).for_each(|_| world.lru.accessed(id));
        }
        let mut reclaim = Reclaim::memcg(g, 1 << 40, Gfp::default());
        let (mut priority, mut before, mut size) = (12, 0, pages as u64);
        while reclaim.priority() > 6 {
            if reclaim.priority() != priority {
                let budget = size >> priority;
                let charged = met(&world) - before;
                let cap = if p06 { 128 } else { 8192 };
                let most = if budget == 0 { 0 } else { budget - 1 + cap.min(2 * budget) };
                prop_assert!(charged <= most, "{charged} of {budget} at {priority}");
                priority = reclaim.priority();
                before = met(&world);
                size = pages as u64 - world.toy.freed.len() as u64;
            }
            if world.step(&mut reclaim).is_some() {
                break;
            }
        }
    }

    #[test]
    fn root_reclaim_overshoots_by_less_than_a_batch(pages in 2000usize..40_000) {
        let (mut world, _) = clean_group(variant("after"), pages);
        let reclaimed = world.run(Reclaim::direct(NODE, NORMAL, 0, Gfp::default()));
        prop_assert!((32..32 + 64).contains(&reclaimed), "{reclaimed}");
    }

    #[test]
    fn groups_may_come_and_go_while_root_reclaimers_walk(seed: u64, name in 0..VARIANTS.len()) {
        let mut crowd = Crowd::new(variant(VARIANTS[name]), seed | 1);
        for _ in 0..120 {
            crowd.step();
        }
        crowd.finish();
    }

    #[test]
    fn concurrent_agers_make_one_generation_for_each_seen(
        nr in 2usize..5,
        schedule in prop::collection::vec(0usize..5, 400),
        after: bool,
    ) {
        let config = variant(if after { "after" } else { "before" });
        let mut world = World::new(config);
        world.checks_steps = false;
        let g = world.group(MemcgId::ROOT);
        for _ in 0..3 {
            let mm = world.mm(g);
            world.fault_nth(mglru::FolioKind::Anon, g, mm, 0);
        }
        world.anons(g, 5000);
        let mut calls: Vec<Option<Reclaim>> =
            (0..nr).map(|_| Some(Reclaim::memcg(g, 100, Gfp::default()))).collect();
        for turn in schedule {
            let slot = &mut calls[turn % nr];
            let Some(call) = slot else { continue };
            if world.step(call).is_some() {
                *slot = None;
            }
        }
        world.lru.check();
        prop_assert_eq!(world.window(g).0, 3 + world.counter(Counter::AgingPasses));
    }

    #[test]
    fn every_all_dirty_batch_wakes_the_flusher_once(folios in 1usize..300) {
        let (mut world, g) = clean_group(variant("after"), folios);
        let ids: Vec<_> = world.lru.folios().iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| world.lru.set_dirty(id));
        world.evict(g, 1 << 30);
        prop_assert_eq!(world.toy.flusher_wakes, (folios as u64).div_ceil(64));
        prop_assert_eq!(world.toy.freed.len(), 0);
    }

    #[test]
    fn a_clean_folio_in_every_batch_leaves_the_flusher_asleep(folios in 1usize..300) {
        let (mut world, g) = clean_group(variant("after"), folios);
        let ids: Vec<_> = world.lru.folios().iter().map(|(id, _)| id).collect();
        let dirty = ids.into_iter().enumerate().filter(|(i, _)| i % 64 != 0).map(|(_, id)| id);
        dirty.for_each(|id| world.lru.set_dirty(id));
        world.evict(g, 1 << 30);
        prop_assert_eq!(world.toy.flusher_wakes, 0);
    }

    #[test]
    fn both_algorithms_judge_alike_but_for_references(facts in facts(), bench in bench()) {
        let classic = Bench { two_touch: false, racing_promotion: false, ..bench };
        let mglru = Bench { two_touch: true, racing_promotion: false, ..bench };
        let (a, b) = (judge(&facts, &classic), judge(&facts, &mglru));
        let young = facts.references.is_some_and(|r| r.young > 0);
        if !young && !facts.referenced {
            prop_assert_eq!(a, b);
        }
        let by_reference = |v| matches!(
            v,
            Verdict::Evict { .. } | Verdict::Demote | Verdict::KeepReferenced
                | Verdict::ActivateWorkingset | Verdict::ActivateClimbed
                | Verdict::ActivateReferenced
        );
        prop_assert!(a == b || by_reference(a) && by_reference(b), "{:?} and {:?}", a, b);
    }

    #[test]
    fn writeback_and_locks_are_never_judged_evictable(facts in facts(), bench in bench()) {
        let verdict = judge(&facts, &bench);
        if facts.locked || facts.unevictable || facts.writeback {
            let goes = matches!(verdict, Verdict::Evict { .. } | Verdict::Demote | Verdict::Look);
            prop_assert!(!goes, "{:?}", verdict);
        }
    }
}

fn facts() -> impl Strategy<Value = Facts> {
    let references = prop::option::of((0u32..3, any::<[bool; 3]>()).prop_map(
        |(young, [exec, locked, contended])| References { young, exec, locked, contended },
    ));
    (any::<[bool; 8]>(), any::<bool>(), references).prop_map(|(b, file, references)| Facts {
        locked: b[0],
        unevictable: b[1],
        mapped: b[2] || references.is_some(),
        referenced: b[3],
        workingset: b[4],
        reclaim: b[5],
        dirty: b[6],
        writeback: b[7],
        lru_type: if file { LruType::File } else { LruType::Anon },
        references,
    })
}

fn bench() -> impl Strategy<Value = Bench> {
    any::<[bool; 11]>().prop_map(|b| Bench {
        may_unmap: b[0],
        may_enter_fs: b[1],
        kswapd: b[2],
        node_writeback: b[3],
        sane: b[4],
        ignore_references: b[5],
        two_touch: b[6],
        ladder: b[9],
        exec_first_touch: b[10],
        racing_promotion: b[7],
        may_demote: b[8],
    })
}
