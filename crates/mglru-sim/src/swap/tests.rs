use mglru_workload::rng::Rng;

use super::*;
use mglru::types::FolioId;

use crate::shadows::Kept;
use crate::spec::{PAGE_SIZE, Ratio};

const ROOT: MemcgId = MemcgId::ROOT;

fn zram(pages: u64) -> Swap {
    Swap::new(SwapSpec::zram(pages * PAGE_SIZE), &Costs::default())
}

fn disk(pages: u64) -> Swap {
    Swap::new(SwapSpec::on_device(pages * PAGE_SIZE), &Costs::default())
}

#[test]
fn without_swap_there_is_no_slot() {
    let mut swap = Swap::new(SwapSpec::default(), &Costs::default());
    assert_eq!((swap.alloc_slot(ROOT), swap.total(), swap.free_slots()), (None, 0, 0));
}

#[test]
fn zram_gives_the_last_slot_again_a_device_the_next() {
    let (mut any, mut next) = (zram(4), disk(4));
    for swap in [&mut any, &mut next] {
        (0..3).for_each(|slot| assert_eq!(swap.alloc_slot(ROOT), Some(slot)));
        swap.free(0);
    }
    assert_eq!(any.alloc_slot(ROOT), Some(0));
    next.free(1);
    assert_eq!(next.alloc_slot(ROOT), Some(0), "comes round: two thirds are free");
    assert_eq!(next.alloc_slot(ROOT), Some(1));
    assert_eq!(next.alloc_slot(ROOT), Some(3));
    assert_eq!((next.alloc_slot(ROOT), next.free_slots()), (None, 0));
}

#[test]
fn a_device_is_filled_in_order_across_holes() {
    let mut swap = disk(1_000);
    assert!((0..90).all(|_| swap.alloc_slot(ROOT).is_some()));
    (10..25).for_each(|slot| _ = swap.free(slot));
    assert_eq!(swap.alloc_slot(ROOT), Some(90), "too few holes to come round for");
    (25..41).for_each(|slot| _ = swap.free(slot));
    let batch: Vec<_> = (0..40).map_while(|_| swap.alloc_slot(ROOT)).collect();
    assert_eq!(batch[..31], (10..41).collect::<Vec<_>>());
    assert_eq!(batch[31..], (91..100).collect::<Vec<_>>());
}

#[test]
fn every_slot_is_given_once() {
    let mut rng = Rng::new(5, 0);
    for mut swap in [zram(300), disk(300)] {
        let mut held = Vec::new();
        for _ in 0..20_000 {
            if rng.below(5) < 2 && !held.is_empty() {
                swap.free(held.swap_remove(rng.below(held.len() as u64) as usize));
            } else if let Some(slot) = swap.alloc_slot(ROOT) {
                assert!(slot < 300 && !held.contains(&slot));
                held.push(slot);
            } else {
                assert_eq!(held.len(), 300);
            }
            assert_eq!(swap.used(), held.len() as u64);
        }
    }
}

#[test]
fn pool_holds_a_third_of_what_shrinks_and_all_that_does_not() {
    let mut swap = zram(100);
    let classes = [(30, Class::Compressible), (5, Class::Incompressible), (20, Class::Zero)];
    for (nr, class) in classes {
        for _ in 0..nr {
            let slot = swap.alloc_slot(ROOT).unwrap();
            swap.store(slot, class);
        }
    }
    assert_eq!(swap.pool_pages(), 15);
    swap.store(0, Class::Incompressible);
    assert_eq!(swap.pool_pages(), 10 + 6, "29 pages shrink to 9.67, overwritten ones are gone");
    (0..55).for_each(|slot| _ = swap.free(slot));
    assert_eq!((swap.pool_pages(), swap.used()), (0, 0));
}

#[test]
fn ratio_may_be_a_fraction() {
    let spec = SwapSpec { ratio: Ratio::from_thousandths(2_500), ..SwapSpec::zram(1 << 20) };
    let mut swap = Swap::new(spec, &Costs::default());
    for _ in 0..100 {
        let slot = swap.alloc_slot(ROOT).unwrap();
        swap.store(slot, Class::Compressible);
    }
    assert_eq!(swap.pool_pages(), 40);
}

#[test]
fn zram_costs_processor_time_and_no_request() {
    let mut swap = zram(3);
    let slot = swap.alloc_slot(ROOT).unwrap();
    assert_eq!(swap.store(slot, Class::Compressible), Transfer { io: false, cpu: 6_800 });
    assert_eq!(swap.load(slot), Transfer { io: false, cpu: 3_300 });
    assert_eq!(swap.store(slot, Class::Zero), Transfer { io: false, cpu: 1_100 });
    assert_eq!(swap.load(slot), Transfer { io: false, cpu: 1_100 });
    let want = SwapCounters { pswpin: 1, pswpout: 1, swpin_zero: 1, swpout_zero: 1 };
    assert_eq!(swap.counters(), want);
}

#[test]
fn a_device_is_asked_for_all_but_zero_pages() {
    let mut swap = disk(3);
    let slot = swap.alloc_slot(ROOT).unwrap();
    assert_eq!(swap.store(slot, Class::Incompressible), Transfer { io: true, cpu: 800 });
    assert_eq!(swap.load(slot), Transfer { io: true, cpu: 800 });
    assert_eq!(swap.store(slot, Class::Zero), Transfer { io: false, cpu: 1_100 });
    assert_eq!(swap.pool_pages(), 0);
}

#[test]
fn without_the_zero_map_zero_pages_are_pages() {
    let spec = SwapSpec { zero_map: false, ..SwapSpec::on_device(1 << 20) };
    let mut swap = Swap::new(spec, &Costs::default());
    let slot = swap.alloc_slot(ROOT).unwrap();
    assert!(swap.store(slot, Class::Zero).io && swap.load(slot).io);
    assert_eq!((swap.counters().pswpout, swap.counters().swpout_zero), (1, 0));
}

#[test]
fn a_slot_keeps_what_stands_for_its_page_and_who_is_charged() {
    let mut swap = zram(1);
    let slot = swap.alloc_slot(MemcgId(70_000)).unwrap();
    for cached in [Cached::Folio(FolioId(7)), Cached::Shadow(Kept(1 << 30)), Cached::Hole] {
        swap.set_cached(slot, cached);
        swap.store(slot, Class::Incompressible);
        assert_eq!((swap.cached(slot), swap.is_stored(slot)), (cached, true));
    }
    swap.set_cached(slot, Cached::Folio(FolioId(7)));
    assert_eq!(swap.free(slot), MemcgId(70_000));
    assert_eq!(swap.alloc_slot(ROOT), Some(slot));
    assert_eq!((swap.cached(slot), swap.is_stored(slot)), (Cached::Hole, false));
}

#[test]
#[should_panic(expected = "freed twice")]
fn a_slot_is_freed_once() {
    let mut swap = zram(2);
    let slot = swap.alloc_slot(ROOT).unwrap();
    swap.free(slot);
    swap.free(slot);
}

#[test]
fn a_slot_takes_at_most_eleven_bytes() {
    const USED: usize = 200_000;
    let mut rng = Rng::new(3, 0);
    for mut swap in [zram(16 << 20), disk(16 << 20)] {
        let mut held: Vec<Slot> = (0..USED).map_while(|_| swap.alloc_slot(ROOT)).collect();
        for _ in 0..4 * USED {
            let slot = &mut held[rng.below(USED as u64) as usize];
            swap.free(*slot);
            *slot = swap.alloc_slot(ROOT).unwrap();
        }
        // Vectors double; what counts is what they must hold.
        let tables = swap.slots.len() * size_of::<SlotState>() + swap.free.bytes();
        assert!(tables <= 11 * USED, "{} bytes per slot", tables / USED);
    }
}
