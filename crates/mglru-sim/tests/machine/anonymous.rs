//! Anonymous memory: zero pages, swap, out of memory.

use mglru_workload::{Content, Op, RegionKind};

use crate::script::{MIB, PAGE, Script, pages, spec, touch, touch_all};

/// One group of 4 MiB whose task touches `pages` pages of one region, `rounds` times over.
fn in_4_mib(kind: RegionKind, pages: u32, write: bool, rounds: u32) -> Script {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let region = script.region(0, kind, pages);
    let ops = (0..rounds).flat_map(|_| touch_all(region, pages, write)).collect();
    script.task(0, Some(group), ops);
    script
}

const LIMIT: &str = "[groups.\"/a\"]\n\"memory.max\" = \"4MiB\"\n";

fn with_swap(swap: &str) -> String {
    format!("swap = {swap}\n{LIMIT}")
}

#[test]
fn reading_unwritten_memory_maps_the_zero_page() {
    let mut script = in_4_mib(RegionKind::Anon, 4096, false, 2);
    let outcome = script.run(&spec(LIMIT), "after");
    assert_eq!(outcome.stat("/a", "memory.peak"), Some(0), "it is charged to nobody");
    assert_eq!(outcome.counter("pgfault"), Some(4096));
    script.ops[0].push_back(touch(0, 7, true));
    let outcome = script.run(&spec(LIMIT), "after");
    assert_eq!(outcome.stat("/a", "anon"), Some(PAGE), "a store makes a page of its own");
    assert_eq!(outcome.counter("pgfault"), Some(4097));
}

#[test]
fn shared_memory_has_no_zero_page() {
    let outcome = in_4_mib(RegionKind::Shmem, 100, false, 1).run(&spec(LIMIT), "after");
    assert_eq!(outcome.stat("/a", "shmem"), Some(100 * PAGE));
    assert_eq!(
        outcome.stat("/a", "inactive_anon").unwrap() + outcome.stat("/a", "active_anon").unwrap(),
        100 * PAGE
    );
}

#[test]
fn what_does_not_fit_is_swapped_and_comes_back() {
    for variant in ["classic", "before", "after", "k6.12"] {
        for kind in [RegionKind::Anon, RegionKind::Shmem] {
            for swap in ["{ kind = \"zram\" }", "{ kind = \"device\", device = \"ufs\" }"] {
                let script = in_4_mib(kind, 2048, true, 3);
                let (machine, outcome) = script.end(&spec(&with_swap(swap)), variant);
                let c = |name: &str| outcome.counter(name).unwrap();
                let case = format!("{variant} {kind:?} {swap}");
                assert!(c("pswpin") > 1000 && c("pswpout") >= c("pswpin"), "{case}");
                assert_eq!(c("workingset_refault_anon"), c("pswpin"), "{case}");
                assert_eq!(c("oom_kill"), 0, "{case}");
                let table = &machine.world.spaces.vma(0).table;
                assert_eq!(table.resident() + table.swapped(), 2048, "{case}: no page is lost");
            }
        }
    }
}

/// A reclaimer that swaps out waits for a free request of the device: a booted 6.12.117 scans 3.2
/// (classic) and 2.8 pages for each that it frees.
#[test]
fn reclaim_waits_for_a_swap_device_and_does_not_scan_what_is_being_written() {
    for (variant, at_most) in [("classic", 35), ("k6.12", 35), ("k7.1", 35), ("k7.2", 35)] {
        for device in ["nvme", "ufs", "hdd"] {
            let script = in_4_mib(RegionKind::Anon, 4096, true, 2);
            let swap = format!("{{ kind = \"device\", device = \"{device}\" }}");
            let outcome = script.run(&spec(&with_swap(&swap)), variant);
            let c = |name: &str| outcome.counter(name).unwrap();
            let case = format!("{variant} {device}");
            assert_eq!(c("oom_kill"), 0, "{case}");
            let scanned = c("pgscan_direct") * 10 / c("pgsteal_direct");
            assert!((15..=at_most).contains(&scanned), "{case}: {scanned} tenths");
        }
    }
}

/// Gone over in order, seven of eight faults find their page; at random none is brought in in vain.
#[test]
fn faults_on_a_swap_device_bring_in_neighbours_where_they_are_used() {
    let counts = |kind: &str, cluster: u32, order: bool| {
        let mut script = in_4_mib(RegionKind::Anon, 4096, true, 3);
        if !order {
            let random = pages(1, 4096, 12_000).into_iter().map(|page| touch(0, page, true));
            script.ops[0] = touch_all(0, 4096, true).into_iter().chain(random).collect();
        }
        let swap = with_swap(&format!("{{ kind = \"{kind}\" }}"));
        let outcome = script.run(&spec(&format!("page_cluster = {cluster}\n{swap}")), "k7.2");
        let c = |name: &str| outcome.counter(name).unwrap();
        assert_eq!((c("oom_kill"), c("workingset_refault_anon")), (0, c("pswpin")), "{kind}");
        (c("pswpin"), c("pgmajfault"))
    };
    assert_eq!(counts("device", 3, true), (8192, 1024));
    assert_eq!(counts("device", 0, true), (8192, 8192));
    assert_eq!(counts("zram", 3, true), (8192, 8192), "none from memory");
    let (pages, faults) = counts("device", 3, false);
    assert!(pages < faults + faults / 10, "{pages} {faults}");
}

#[test]
fn zram_takes_its_pool_from_the_machine() {
    let script = in_4_mib(RegionKind::Anon, 4096, true, 1);
    let outcome = script.run(&spec(&with_swap("{ kind = \"zram\", ratio = 3.0 }")), "after");
    let swapped = outcome.stat("/a", "memory.swap.current").unwrap() / PAGE;
    assert!(swapped >= 3072);
    assert_eq!(outcome.counter("zram_pool_pages"), Some(swapped.div_ceil(3)));
    assert_eq!(outcome.counter("pgpgout"), Some(0));
}

#[test]
fn zero_pages_are_only_marked_in_swap() {
    let mut script = in_4_mib(RegionKind::Anon, 4096, true, 2);
    script.layout.regions[0].content = Content::Zero;
    for swap in ["{ kind = \"zram\" }", "{ kind = \"device\", device = \"ufs\" }"] {
        let outcome = script.run(&spec(&with_swap(swap)), "after");
        assert!(outcome.counter("swpout_zero") > Some(3000), "{swap}");
        for name in ["pswpout", "pswpin", "zram_pool_pages", "pgpgout"] {
            assert_eq!(outcome.counter(name), Some(0), "{swap} {name}");
        }
    }
}

#[test]
fn more_than_the_limit_without_swap_is_out_of_memory() {
    for variant in ["classic", "before", "after", "k6.12"] {
        let mut script = in_4_mib(RegionKind::Anon, 2048, true, 1);
        let outcome = script.run(&spec(LIMIT), variant);
        assert_eq!(outcome.counter("oom_kill"), Some(1), "{variant}");
        assert_eq!(outcome.groups[1].events.oom_kill, 1, "{variant}");
        assert!(outcome.groups[1].events.max > 0, "{variant}");
        assert_eq!(outcome.stat("/a", "memory.current"), Some(0), "{variant}: a kill frees");
        // With room for all, nobody is killed.
        script.layout.regions[0].pages = 1000;
        script.ops[0].truncate(1000);
        assert_eq!(script.run(&spec(LIMIT), variant).counter("oom_kill"), Some(0), "{variant}");
    }
}

#[test]
fn the_largest_is_killed_and_the_others_go_on() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let large = script.anon(0, 900);
    let small = script.anon(1, 400);
    let mut ops = touch_all(large, 900, true);
    ops.extend([Op::Think { ns: 1_000_000_000 }, Op::End { class: 0 }]);
    script.task(0, Some(group), ops);
    let mut ops = vec![Op::Think { ns: 100_000_000 }];
    ops.extend(touch_all(small, 400, true));
    ops.push(Op::End { class: 0 });
    script.task(1, Some(group), ops);
    let outcome = script.run(&spec(LIMIT), "after");
    assert_eq!(outcome.task_ops, [0, 1]);
    assert_eq!(outcome.stat("/a", "anon"), Some(400 * PAGE));
    assert!(outcome.virtual_ns < 1_000_000_000, "the killed sleeper ended early");
}

/// Some of the threads are in reclaim when the memory that they fault on goes.
#[test]
fn a_program_is_killed_with_all_its_threads() {
    for variant in ["classic", "before", "after"] {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let region = script.anon(0, 4000);
        for first in (0..4000).step_by(500) {
            let pages = first..first + 500;
            script.task(0, Some(group), pages.map(|page| touch(region, page, true)).collect());
        }
        let other = script.anon(1, 100);
        let mut ops = touch_all(other, 100, true);
        ops.extend([Op::Think { ns: 1_000_000_000 }, Op::End { class: 0 }]);
        script.task(1, Some(group), ops);
        let outcome = script.run(&spec(&format!("cpus = 9\n{LIMIT}")), variant);
        assert_eq!(outcome.counter("oom_kill"), Some(1), "{variant}");
        assert_eq!(outcome.task_ops.iter().sum::<u64>(), 1, "{variant}: the other one goes on");
        assert_eq!(outcome.stat("/a", "anon"), Some(100 * PAGE), "{variant}");
    }
}

/// As on a booted 6.12.117 (plan `vm-stale-oom`): the classic LRU takes nothing off the active list
/// while statistics of two seconds ago have enough inactive, unless a file page keeps it going.
#[test]
fn stale_statistics_kill_a_group_of_anonymous_memory_with_swap_free() {
    let kills = |variant: &str, stat_flush_ms: u32, text: u32| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let region = script.anon(0, 1250);
        let file = script.file(MIB);
        let code = script.region(0, RegionKind::File { file, first_page: 0 }, text.max(1));
        let accesses = pages(1, 1250, 1_600_000).into_iter().enumerate();
        let ops = accesses.map(|(n, page)| match n % 16 {
            0 if text > 0 => touch(code, n as u32 / 16 % text, false),
            _ => touch(region, page, true),
        });
        script.task(0, Some(group), ops.collect());
        let machine =
            format!("stat_flush_ms = {stat_flush_ms}\nswap = {{ kind = \"zram\" }}\n{LIMIT}");
        script.run(&spec(&machine), variant).counter("oom_kill").unwrap()
    };
    assert_eq!(kills("classic", 2000, 0), 1);
    assert_eq!(kills("classic", 2000, 8), 0, "with a program's text");
    assert_eq!(kills("classic", 0, 0), 0, "with fresh statistics");
    assert_eq!(kills("k6.12", 2000, 0), 0);
}

/// Files of tmpfs and the like: the program that they were declared with is only one user.
#[test]
fn shared_memory_stays_when_the_program_is_killed_that_it_came_with() {
    for (large, kills) in [(2000, 1), (10, 0)] {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let shared = script.region(0, RegionKind::Shmem, 100);
        script.layout.regions[shared as usize].shared = true;
        let own = script.anon(0, large);
        let ops = [touch_all(shared, 100, true), touch_all(own, large, true)].concat();
        script.task(0, Some(group), ops);
        let mut ops = vec![Op::Think { ns: 1_000_000_000 }];
        ops.extend(touch_all(shared, 100, false));
        ops.push(Op::End { class: 0 });
        script.task(1, Some(group), ops);
        let outcome = script.run(&spec(LIMIT), "classic");
        assert_eq!(
            (outcome.counter("oom_kill"), &outcome.task_ops[..]),
            (Some(kills), &[0, 1][..])
        );
        assert_eq!(
            outcome.stat("/a", "memory.current"),
            Some(100 * PAGE),
            "{large}: own memory went"
        );
        assert_eq!(
            outcome.counter("pgmajfault"),
            Some(0),
            "what the other program reads was there"
        );
    }
}

#[test]
fn freed_and_unmapped_memory_is_given_back() {
    let mut script = in_4_mib(RegionKind::Anon, 2048, true, 1);
    script.ops[0].push_back(Op::Free { region: 0, page: 0, nr: 2000 });
    let outcome = script.run(&spec(&with_swap("{ kind = \"zram\" }")), "after");
    let held =
        outcome.stat("/a", "anon").unwrap() + outcome.stat("/a", "memory.swap.current").unwrap();
    assert_eq!(held, 48 * PAGE);
    script.ops[0].extend([Op::Unmap { region: 0 }, Op::Map { region: 0 }, touch(0, 5, true)]);
    let outcome = script.run(&spec(&with_swap("{ kind = \"zram\" }")), "after");
    assert_eq!(outcome.stat("/a", "memory.current"), Some(PAGE));
    assert_eq!(outcome.stat("/a", "memory.swap.current"), Some(0));
}

#[test]
fn locked_memory_is_never_reclaimed() {
    let mut script = in_4_mib(RegionKind::Anon, 2048, true, 1);
    let locked = script.anon(0, 500);
    script.layout.regions[locked as usize].locked = true;
    let mut ops = touch_all(locked, 500, true);
    ops.extend(script.ops[0].drain(..));
    script.ops[0] = ops.into();
    let (machine, outcome) = script.end(&spec(&with_swap("{ kind = \"zram\" }")), "after");
    assert_eq!(outcome.stat("/a", "unevictable"), Some(500 * PAGE));
    assert_eq!(machine.world.spaces.vma(locked).table.resident(), 500);
}

#[test]
fn a_task_that_exits_frees_its_memory() {
    let mut script = Script::default();
    let first = script.anon(0, 512);
    script.task(0, None, touch_all(first, 512, true));
    script.task(1, None, vec![Op::Think { ns: MIB * 1000 }]);
    let outcome = script.run(&spec(""), "after");
    assert_eq!(outcome.stat("/", "memory.current"), Some(0));
    assert_eq!(outcome.stat("/", "memory.peak"), Some(512 * PAGE));
}

/// Spec §5.6: a page in use keeps its copy in swap only while swap is not getting full.
#[test]
fn the_copy_of_a_page_in_use_goes_when_swap_is_crowded() {
    use mglru::folio::Bit;
    use mglru::host::Host;
    use mglru::types::{FolioId, MemcgId};

    let mut script = in_4_mib(RegionKind::Anon, 2048, true, 1);
    script.ops[0].extend(touch_all(0, 2048, false));
    let swap = "{ kind = \"device\", device = \"ufs\", size = \"64MiB\" }";
    let (mut machine, _) = script.end(&spec(&with_swap(swap)), "after");
    let used = machine.world.swap.used();
    let folios = machine.lru.folios_mut();
    let copied = |id: &FolioId| folios[*id].is_mapped() && folios[*id].flags.has(Bit::SWAPCACHE);
    let folio = (0..1024).map(FolioId).find(copied).expect("a page that was swapped in");
    machine.world.drop_swap_copy(folios, folio);
    assert_eq!(machine.world.swap.used(), used, "there is room");
    machine.world.memcgs.limits_mut(MemcgId(1)).swap_max = used;
    machine.world.drop_swap_copy(folios, folio);
    assert_eq!(machine.world.swap.used(), used - 1);
    assert!(folios[folio].flags.has(Bit::DIRTY), "the page in memory is the only one");
}
