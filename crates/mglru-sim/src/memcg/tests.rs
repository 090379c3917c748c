use mglru_workload::rng::Rng;

use super::*;

const ROOT: MemcgId = MemcgId::ROOT;

fn max(max: u64) -> Limits {
    Limits { max, ..Limits::none(60) }
}

fn low(low: u64) -> Limits {
    Limits { low, ..Limits::none(60) }
}

/// root / a (max 100) / b (max 60)
fn nested() -> (Memcgs, MemcgId, MemcgId) {
    let mut memcgs = Memcgs::new(60);
    let a = memcgs.add(ROOT, max(100));
    let b = memcgs.add(a, max(60));
    (memcgs, a, b)
}

#[test]
fn a_charge_counts_all_the_way_up() {
    let (mut memcgs, a, b) = nested();
    memcgs.try_charge(b, 50).unwrap();
    memcgs.try_charge(a, 30).unwrap();
    memcgs.uncharge(b, 10);
    let current = [ROOT, a, b].map(|id| memcgs.usage(id).current);
    let peak = [ROOT, a, b].map(|id| memcgs.usage(id).peak);
    assert_eq!((current, peak), ([70, 70, 40], [80, 80, 50]));
    assert_eq!(memcgs.room(b), 20);
}

#[test]
fn the_group_in_the_way_is_named_and_nothing_is_charged() {
    let (mut memcgs, a, b) = nested();
    assert_eq!(memcgs.try_charge(b, 61), Err(b));
    memcgs.try_charge(a, 50).unwrap();
    assert_eq!(memcgs.try_charge(b, 51), Err(a));
    assert_eq!([ROOT, a, b].map(|id| memcgs.usage(id).current), [50, 50, 0]);
    memcgs.try_charge(b, 50).unwrap();
    let local = [a, b].map(|id| memcgs.events(id).local.max);
    let below = [ROOT, a, b].map(|id| memcgs.events(id).hierarchical.max);
    assert_eq!((local, below), ([1, 1], [2, 2, 1]));
}

#[test]
fn a_limit_set_below_usage_leaves_no_room() {
    let (mut memcgs, a, _) = nested();
    memcgs.try_charge(a, 80).unwrap();
    memcgs.limits_mut(a).max = 10;
    assert_eq!((memcgs.room(a), memcgs.try_charge(a, 1)), (0, Err(a)));
    memcgs.charge_anyway(a, 1);
    assert_eq!(memcgs.usage(a).current, 81);
}

#[test]
fn kernel_memory_is_part_of_usage() {
    let (mut memcgs, a, b) = nested();
    memcgs.try_charge_kernel(b, 60).unwrap();
    assert_eq!(memcgs.try_charge_kernel(b, 1), Err(b));
    memcgs.charge_kernel_anyway(b, 1);
    memcgs.uncharge_kernel(b, 11);
    let usage = memcgs.usage(a);
    assert_eq!((usage.kernel, usage.current), (50, 50));
}

#[test]
fn swap_is_limited_by_ancestors_and_the_device() {
    let mut memcgs = Memcgs::new(60);
    let a = memcgs.add(ROOT, Limits { swap_max: 10, ..Limits::none(60) });
    let b = memcgs.add(a, Limits { swap_max: 8, ..Limits::none(60) });
    assert!(memcgs.try_charge_swap(b, 5));
    assert_eq!((memcgs.swap_left(b, 100), memcgs.swap_left(b, 2)), (3, 2));
    assert!(memcgs.try_charge_swap(a, 4));
    assert_eq!(memcgs.view(b, 100).swap_left, 1);
    assert!(!memcgs.try_charge_swap(b, 2));
    memcgs.uncharge_swap(b, 5);
    assert_eq!((memcgs.usage(a).swap, memcgs.usage(a).swap_peak), (4, 9));
    assert_eq!(memcgs.swap_left(ROOT, 77), 77);
}

#[test]
fn high_is_found_upwards_and_delays_grow() {
    let mut memcgs = Memcgs::new(60);
    let a = memcgs.add(ROOT, Limits { high: 1_024, ..Limits::none(60) });
    let b = memcgs.add(a, Limits::none(60));
    memcgs.try_charge(b, 1_024).unwrap();
    assert_eq!((memcgs.over_high(b), memcgs.high_delay(b, 32)), (None, 0));
    memcgs.try_charge(b, 100).unwrap();
    assert_eq!(memcgs.over_high(b), Some((a, 100)));
    assert_eq!(memcgs.high_delay(b, 32), 100_000_000);
    assert_eq!(memcgs.high_delay(b, 64), 200_000_000);
    memcgs.limits_mut(a).high = 0;
    assert_eq!(memcgs.high_delay(b, 1), MAX_HIGH_DELAY);
}

#[test]
fn protection_of_a_top_group_is_its_own() {
    let mut memcgs = Memcgs::new(60);
    let a = memcgs.add(ROOT, Limits { min: 3, ..low(50) });
    memcgs.try_charge(a, 10).unwrap();
    let view = memcgs.view(a, 0);
    assert_eq!((view.usage, view.min, view.low, view.max), (10, 3, 50, NO_LIMIT));
}

#[test]
fn charges_balance_over_any_order() {
    let (mut memcgs, a, b) = nested();
    let mut rng = Rng::new(11, 0);
    let mut held = [0u64; 2];
    for _ in 0..50_000 {
        let which = rng.below(2) as usize;
        let (id, pages) = ([a, b][which], rng.below(20));
        if rng.below(2) == 0 {
            held[which] += if memcgs.try_charge(id, pages).is_ok() { pages } else { 0 };
        } else {
            let pages = pages.min(held[which]);
            memcgs.uncharge(id, pages);
            held[which] -= pages;
        }
        assert_eq!(memcgs.usage(b).current, held[1]);
        assert_eq!(memcgs.usage(a).current, held[0] + held[1]);
        assert!(held[1] <= 60 && held[0] + held[1] <= 100);
    }
}

#[test]
#[should_panic(expected = "uncharged more than was charged")]
fn no_charge_is_taken_back_twice() {
    let (mut memcgs, a, _) = nested();
    memcgs.try_charge(a, 1).unwrap();
    memcgs.uncharge(a, 2);
}

#[test]
fn removed_groups_keep_their_charge() {
    let (mut memcgs, a, b) = nested();
    memcgs.try_charge(b, 5).unwrap();
    memcgs.offline(b);
    assert!(!memcgs.is_online(b) && memcgs.is_online(a));
    assert_eq!(memcgs.usage(a).current, 5);
    assert!(memcgs.is_under(b, a) && !memcgs.is_under(a, b));
}
