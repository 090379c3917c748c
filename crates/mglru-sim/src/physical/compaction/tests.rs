//! Tests the invariants of compaction, and has one test for each row in which the eras differ.

use mglru_workload::rng::Rng;

use super::*;
use crate::physical::Frame;
use crate::physical::zone::tests::check;
use MigrateType::{Movable, Reclaimable, Reserve, Unmovable};

const PAGES: u32 = 16 * PAGEBLOCK_PAGES;
const HUGE: Request = Request { order: 9, migrate: Movable, atomic: false };

/// Folios with content and flags, and where they lie.
#[derive(Default)]
struct Fake {
    place: Vec<Pfn>,
    content: Vec<u64>,
    busy: Vec<bool>,
    off_list: Vec<bool>,
}

impl Fake {
    fn add(&mut self, pfn: Pfn, busy: bool) -> FolioId {
        self.place.push(pfn);
        self.content.push(u64::from(pfn) * 7 + 1);
        self.busy.push(busy);
        self.off_list.push(false);
        FolioId(self.place.len() as u32 - 1)
    }
}

impl Mover for Fake {
    fn isolate(&mut self, folio: FolioId, mode: Mode) -> bool {
        let at = folio.index();
        assert!(!self.off_list[at], "taken off twice");
        let ready = mode == Mode::SyncLight || !self.busy[at];
        self.off_list[at] = ready;
        ready
    }

    fn relocate(&mut self, folio: FolioId, to: Pfn, _mode: Mode) -> bool {
        assert!(self.off_list[folio.index()], "moved without being taken off");
        if self.busy[folio.index()] {
            return false;
        }
        self.place[folio.index()] = to;
        true
    }

    fn put_back(&mut self, folio: FolioId) {
        assert!(std::mem::replace(&mut self.off_list[folio.index()], false));
    }
}

fn zone(era: Era) -> Zone {
    Zone::new(era, PAGES, 1, Some(32), false)
}

/// Fills the zone with folios and frees what `keep` does not want.
fn fill(zone: &mut Zone, keep: impl Fn(Pfn) -> bool, busy: impl Fn(Pfn) -> bool) -> Fake {
    let (mut fake, mut given) = (Fake::default(), Vec::new());
    while let Some(pfn) = zone.take(Request::new(0, Movable), 0) {
        if keep(pfn) {
            let folio = fake.add(pfn, busy(pfn));
            zone.assign(pfn, 0, Use::Folio(folio));
        } else {
            given.push(pfn);
        }
    }
    given.into_iter().for_each(|pfn| zone.put(pfn, 0, 0));
    zone.drain();
    fake
}

fn run(
    zone: &mut Zone,
    memory: &mut Memory,
    fake: &mut Fake,
    wanted: Option<Request>,
    mode: Mode,
) -> (End, Compaction) {
    let mut run = Compaction::new(zone, memory, wanted, mode, 0);
    loop {
        let before = memory.tally;
        match run.step(zone, memory, fake) {
            Step::Over(end) => return (end, run),
            Step::Again => assert!(memory.tally.isolated - before.isolated <= CLUSTER as u64),
        }
    }
}

fn is_whole(zone: &Zone, fake: &Fake) {
    check(zone);
    for (at, &pfn) in fake.place.iter().enumerate() {
        let folio = FolioId(at as u32);
        assert_eq!(zone.frame(pfn), Frame::Used(Use::Folio(folio)), "{folio:?} at {pfn}");
    }
}

#[test]
fn random_zones_lose_nothing() {
    for seed in 0..40 {
        let era = if seed % 2 == 0 { Era::Lumpy } else { Era::Modern };
        let mode = if seed % 4 < 2 { Mode::Async } else { Mode::SyncLight };
        let wanted = (seed % 8 < 4).then_some(HUGE);
        let mut zone = zone(era);
        let mut rng = Rng::new(seed, 1);
        let kept: Vec<bool> = (0..PAGES).map(|_| rng.below(100) < 20 + seed).collect();
        let busy: Vec<bool> = (0..PAGES).map(|_| rng.below(100) < 5).collect();
        let mut fake = fill(&mut zone, |p| kept[p as usize], |p| busy[p as usize]);
        let (content, flags) = (fake.content.clone(), fake.busy.clone());
        let (free, mut memory) = (zone.nr_free(), Memory::default());
        let (end, run) = run(&mut zone, &mut memory, &mut fake, wanted, mode);
        is_whole(&zone, &fake);
        assert_eq!((fake.content, fake.busy), (content, flags), "content and flags are kept");
        assert!(fake.off_list.iter().all(|&off| !off), "all are back on their lists");
        assert_eq!(zone.nr_free(), free, "pages are conserved");
        let Tally { isolated, moved, put_back, .. } = memory.tally;
        assert_eq!(isolated, moved + put_back);
        let (migrate, free) = run.scanners();
        assert!(end == End::Partial || free <= migrate, "{end:?} but {migrate} and {free}");
    }
}

#[test]
fn a_thin_zone_yields_blocks() {
    for era in [Era::Lumpy, Era::Modern] {
        let mut zone = zone(era);
        let mut fake = fill(&mut zone, |pfn| pfn % 4 == 0, |_| false);
        assert_eq!(fragmentation_index(&zone, 9), 1000 - (1000 + 1000 * 6144 / 512) / (4096));
        let (end, _) = run(&mut zone, &mut Memory::default(), &mut fake, Some(HUGE), Mode::Async);
        assert_eq!(end, End::Partial, "{era:?}");
        assert!(zone.take(HUGE, 0).is_some());
        let mut memory = Memory::default();
        let (end, _) = run(&mut zone, &mut memory, &mut fake, None, Mode::SyncLight);
        assert_eq!(end, End::Complete);
        is_whole(&zone, &fake);
        assert!(zone.free_blocks(9) + 2 * zone.free_blocks(10) >= 9, "a quarter is in use");
    }
}

#[test]
fn asynchronous_runs_leave_blocks_of_the_kernel_alone() {
    let mut zone = zone(Era::Lumpy);
    let mut fake = fill(&mut zone, |pfn| pfn % 8 == 0 && pfn < 8192 - 512, |_| false);
    for pfn in (0..PAGES - PAGEBLOCK_PAGES).step_by(PAGEBLOCK_PAGES as usize) {
        zone.set_type_for_test(pfn, Reclaimable);
    }
    let mut memory = Memory::default();
    run(&mut zone, &mut memory, &mut fake, Some(HUGE), Mode::Async);
    assert_eq!(memory.tally.isolated, 0);
    run(&mut zone, &mut memory, &mut fake, Some(HUGE), Mode::SyncLight);
    assert!(memory.tally.moved > 0);
}

#[test]
fn busy_pages_are_left_or_put_back() {
    let mut zone = zone(Era::Lumpy);
    let mut fake = fill(&mut zone, |pfn| pfn % 2 == 0, |pfn| pfn % 16 == 0);
    let mut memory = Memory::default();
    run(&mut zone, &mut memory, &mut fake, None, Mode::Async);
    assert_eq!(memory.tally.put_back, 0, "busy pages were not taken off");
    run(&mut zone, &mut memory, &mut fake, None, Mode::SyncLight);
    assert!(memory.tally.put_back > 0);
    is_whole(&zone, &fake);
}

#[test]
fn lumpy_breaks_up_free_blocks_and_modern_does_not() {
    for (era, broken) in [(Era::Lumpy, true), (Era::Modern, false)] {
        let mut zone = zone(era);
        // The upper half is free as a whole, the lower half thinly used.
        let mut fake = fill(&mut zone, |pfn| pfn % 8 == 0 && pfn < PAGES / 2, |_| false);
        let free = zone.free_blocks(9) + 2 * zone.free_blocks(10);
        assert_eq!(free, 8);
        let mut run = Compaction::new(&zone, &Memory::default(), None, Mode::SyncLight, 0);
        run.step(&mut zone, &mut Memory::default(), &mut fake);
        let left = zone.free_blocks(9) + 2 * zone.free_blocks(10);
        assert_eq!(left < free, broken, "{era:?}");
    }
}

#[test]
fn free_blocks_of_the_reserve_are_no_targets() {
    let mut zone = zone(Era::Lumpy);
    assert_eq!(zone.blocks_of(Reserve), 1);
    let mut fake = fill(&mut zone, |pfn| pfn >= PAGES / 2 || pfn % 2 == 0 && pfn >= 512, |_| false);
    assert_eq!((zone.free_on(9, Reserve), zone.free_in_block(0)), (1, PAGEBLOCK_PAGES));
    run(&mut zone, &mut Memory::default(), &mut fake, None, Mode::SyncLight);
    assert_eq!((zone.block_type(0), zone.free_in_block(0)), (Reserve, PAGEBLOCK_PAGES));
}

#[test]
fn lumpy_looks_for_success_at_each_step_and_modern_at_pageblocks() {
    let at_end = |era: Era| {
        let mut zone = zone(era);
        let mut fake = fill(&mut zone, |pfn| pfn % 4 == 0, |_| false);
        let small = Request::new(3, Movable);
        run(&mut zone, &mut Memory::default(), &mut fake, Some(small), Mode::Async).1.scanners().0
    };
    assert_ne!(at_end(Era::Lumpy) % PAGEBLOCK_PAGES, 0);
    assert_eq!(at_end(Era::Modern) % PAGEBLOCK_PAGES, 0);
}

#[test]
fn modern_goes_on_where_it_stopped() {
    for (era, goes_on) in [(Era::Lumpy, false), (Era::Modern, true)] {
        let (mut zone, mut memory) = (zone(era), Memory::default());
        let mut fake = fill(&mut zone, |pfn| pfn % 4 == 0, |_| false);
        let (end, first) = run(&mut zone, &mut memory, &mut fake, Some(HUGE), Mode::Async);
        assert_eq!(end, End::Partial);
        while zone.take(HUGE, 0).is_some() {}
        let second = Compaction::new(&zone, &memory, Some(HUGE), Mode::Async, 0);
        assert_eq!(second.scanners() == first.scanners(), goes_on, "{era:?}");
        let other = Compaction::new(&zone, &memory, Some(HUGE), Mode::SyncLight, 0);
        assert!(other.scanners().0 < first.scanners().0, "each mode goes on by itself");
    }
}

#[test]
fn the_verdict_before_a_run() {
    let all_free = zone(Era::Lumpy);
    assert_eq!(suitable(&all_free, HUGE, 0), Fit::Partial);
    for era in [Era::Lumpy, Era::Modern] {
        let mut short = zone(era);
        fill(&mut short, |pfn| pfn >= 512, |_| false);
        assert_eq!(suitable(&short, Request::new(10, Movable), 0), Fit::Skipped, "{era:?}");
        let mut thin = zone(era);
        fill(&mut thin, |pfn| pfn % 4 == 0, |_| false);
        assert_eq!(suitable(&thin, HUGE, 0), Fit::Continue, "{era:?}");
    }
    let mut few = zone(Era::Lumpy);
    fill(&mut few, |pfn| pfn % 1024 >= 256 || pfn >= 6 * 1024, |_| false);
    assert!((0..=500).contains(&fragmentation_index(&few, 9)), "{}", fragmentation_index(&few, 9));
    assert_eq!(suitable(&few, HUGE, 0), Fit::Skipped);
    let kernel = Request::new(2, Unmovable);
    assert_eq!(suitable(&few, kernel, 0), Fit::Partial);
}
