//! Random histories keep every invariant of the allocator; single rules are shown by hand.

use mglru_workload::rng::Rng;

use super::*;
use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};

const PAGES: u32 = 16 * PAGEBLOCK_PAGES;

fn zone(era: Era) -> Zone {
    Zone::new(era, PAGES, 2, Some(64), false)
}

fn take(zone: &mut Zone, order: u8, migrate: MigrateType) -> Option<Pfn> {
    zone.take(Request::new(order, migrate), 0)
}

impl Zone {
    /// Changes the type of a pageblock as a steal would.
    pub fn set_type_for_test(&mut self, pfn: Pfn, migrate: MigrateType) {
        self.retype(pfn, migrate);
    }
}

/// Everything that must hold at any time.
pub fn check(zone: &Zone) {
    let (mut free, mut kept, mut pfn) = (0, 0, 0);
    while pfn < zone.end() {
        match zone.frame(pfn) {
            Frame::Free { order, list } => {
                assert_eq!(pfn % (1 << order), 0, "{pfn} of order {order} is not aligned");
                let on_list = zone.lists.iter(order, list).filter(|&p| p == pfn).count();
                assert_eq!(on_list, 1, "{pfn} on its list");
                let buddy = zone.frames.get((pfn ^ 1 << order) as usize);
                let whole = order < MAX_ORDER && buddy == Some(&zone.frame(pfn));
                assert!(!whole, "{pfn} of order {order} and its buddy are not one block");
                for tail in pfn + 1..pfn + (1 << order) {
                    assert_eq!(zone.frame(tail), Frame::Tail, "{tail} inside {pfn}");
                }
                free += 1 << order;
                pfn += 1 << order;
                continue;
            }
            Frame::PerCpu => kept += 1,
            Frame::Used(_) => {}
            Frame::Tail => panic!("{pfn} is inside no block"),
        }
        pfn += 1;
    }
    assert_eq!((free, kept), (zone.nr_free(), zone.nr_per_cpu()));
    let listed = |order| MigrateType::ALL.map(|l| zone.lists.iter(order, l).count() as u64);
    let sum: u64 = (0..=MAX_ORDER).map(|o| listed(o).iter().sum::<u64>() << o).sum();
    assert_eq!(sum, zone.nr_free(), "lists and counts");
}

fn used(zone: &Zone) -> u64 {
    (0..zone.end()).filter(|&p| matches!(zone.frame(p), Frame::Used(_))).count() as u64
}

#[test]
fn random_histories_keep_every_page_and_one_owner_each() {
    for seed in 0..12 {
        let era = if seed % 2 == 0 { Era::Lumpy } else { Era::Modern };
        let (mut zone, mut rng) = (zone(era), Rng::new(seed, 0));
        let mut held: Vec<(Pfn, u8)> = Vec::new();
        let mut owner = vec![false; PAGES as usize];
        for step in 0..4_000 {
            if rng.below(100) < 55 {
                let order = [0, 0, 0, 0, 1, 2, 3, 5, 9, 10][rng.below(10) as usize];
                let migrate = MigrateType::REQUESTED[rng.below(3) as usize];
                let atomic = rng.below(10) == 0;
                let request = Request { order, migrate, atomic };
                let Some(pfn) = zone.take(request, rng.below(2) as usize) else { continue };
                for page in &mut owner[pfn as usize..(pfn + (1 << order)) as usize] {
                    assert!(!std::mem::replace(page, true), "a page of {pfn} has two owners");
                }
                held.push((pfn, order));
            } else if !held.is_empty() {
                let (pfn, order) = held.swap_remove(rng.below(held.len() as u64) as usize);
                owner[pfn as usize..(pfn + (1 << order)) as usize].fill(false);
                zone.put(pfn, order, rng.below(2) as usize);
            }
            if step % 200 == 0 {
                check(&zone);
                let held: u64 = held.iter().map(|&(_, order)| 1 << order).sum();
                assert_eq!(used(&zone), held);
                assert_eq!(zone.nr_free() + zone.nr_per_cpu() + held, zone.managed());
            }
        }
        held.drain(..).for_each(|(pfn, order)| zone.put(pfn, order, 0));
        zone.drain();
        check(&zone);
        assert_eq!(zone.nr_free(), zone.managed(), "all is free again");
    }
}

#[test]
fn freed_buddies_become_the_largest_blocks_again() {
    let mut zone = Zone::new(Era::Modern, PAGES, 1, Some(64), false);
    let pages: Vec<Pfn> = (0..PAGES).filter_map(|_| take(&mut zone, 0, Movable)).collect();
    assert_eq!((pages.len() as u32, zone.nr_free()), (PAGES, 0));
    assert_eq!(take(&mut zone, 0, Unmovable), None);
    pages.into_iter().for_each(|pfn| zone.put(pfn, 0, 0));
    zone.drain();
    assert_eq!(zone.free_blocks(MAX_ORDER), u64::from(PAGES >> MAX_ORDER));
}

#[test]
fn kernel_pages_gather_in_pageblocks_of_their_own() {
    for era in [Era::Lumpy, Era::Modern] {
        let mut zone = zone(era);
        let pages: Vec<Pfn> = (0..600).filter_map(|_| take(&mut zone, 0, Unmovable)).collect();
        let mut blocks: Vec<Pfn> = pages.iter().map(|p| p >> PAGEBLOCK_ORDER).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 2, "{era:?}: {blocks:?}");
        assert_eq!(zone.blocks_of(Unmovable), 2, "whole pageblocks changed their type");
        check(&zone);
    }
}

#[test]
fn the_lumpy_reserve_is_the_last_resort() {
    let mut zone = zone(Era::Lumpy);
    assert_eq!(zone.blocks_of(Reserve), 1, "64 pages need one pageblock");
    let others = PAGES - PAGEBLOCK_PAGES;
    let taken: Vec<Pfn> = (0..others / 2).filter_map(|_| take(&mut zone, 1, Movable)).collect();
    assert!(taken.iter().all(|&pfn| zone.block_type(pfn) != Reserve));
    assert!(take(&mut zone, 1, Movable).is_some_and(|pfn| zone.block_type(pfn) == Reserve));
    assert!(take(&mut zone, 0, Unmovable).is_some_and(|pfn| zone.block_type(pfn) == Reserve));
    zone.set_min(5_000);
    check(&zone);
    assert_eq!(zone.blocks_of(Reserve), 1, "only a free block could join");
}

#[test]
fn a_steal_raises_the_modern_high_mark_for_a_while() {
    let (mut modern, mut lumpy) = (zone(Era::Modern), zone(Era::Lumpy));
    for zone in [&mut modern, &mut lumpy] {
        // Unmovable pages in every pageblock leave no whole one to steal.
        let blocks: Vec<Pfn> = (0..PAGES / 256).filter_map(|_| take(zone, 8, Movable)).collect();
        blocks.iter().step_by(2).for_each(|&pfn| zone.put(pfn, 8, 0));
        assert!(take(zone, 0, Unmovable).is_some());
        check(zone);
    }
    let high = modern.marks.high;
    assert_eq!(modern.marks().high, high * 150 / 100);
    modern.end_boost();
    assert_eq!(modern.marks().high, high);
    assert_eq!(lumpy.marks().high, lumpy.marks.high);
}

#[test]
fn modern_keeps_a_block_for_large_requests_that_cannot_wait() {
    let mut zone = zone(Era::Modern);
    let request = Request { order: 3, migrate: Unmovable, atomic: true };
    let pfn = zone.take(request, 0).unwrap();
    assert_eq!(zone.block_type(pfn), HighAtomic);
    while take(&mut zone, 3, Movable).is_some() {}
    assert!(zone.take(request, 0).is_some(), "from the kept block");
    assert!(zone.allows(request, 0) && !zone.allows(Request::new(3, Movable), 0));
    assert!(zone.release_atomic(Movable) && !zone.release_atomic(Movable));
    assert!(take(&mut zone, 3, Movable).is_some());
    check(&zone);
}

#[test]
fn reclaimable_requests_take_the_pageblock_along() {
    let mut zone = zone(Era::Lumpy);
    take(&mut zone, 0, Reclaimable).unwrap();
    assert_eq!(zone.blocks_of(Reclaimable), 2, "the largest block was two pageblocks");
    assert!(zone.free_on(8, Reclaimable) > 0 && zone.free_on(9, Reclaimable) > 0);
}
