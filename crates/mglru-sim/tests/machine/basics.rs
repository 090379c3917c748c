//! Checks that every workload must pass before its figures count (experiments §0.10).

use mglru_workload::{Op, RegionKind};

use crate::script::{PAGE, Script, pages, read, spec, touch, touch_all, write};

const VARIANTS: [&str; 4] = ["classic", "before", "after", "k6.12"];

/// Files by mapping and by descriptor, anonymous memory, writes: 8 MiB of file and 4 MiB of anon.
fn mixture(limit: &str) -> (Script, String) {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(2048 * PAGE);
    for mm in 0..2 {
        let anon = script.anon(mm, 512);
        let mapped = script.region(mm, RegionKind::File { file, first_page: 0 }, 1024);
        let mut ops = touch_all(anon, 512, true);
        for (i, page) in pages(u64::from(mm), 1024, 6000).into_iter().enumerate() {
            ops.push(touch(mapped, page, false));
            ops.push(touch(anon, page % 512, i % 3 == 0));
            ops.push(read(file, u64::from(page) + 1024, 1));
            if i % 50 == 0 {
                ops.push(write(file, u64::from(page), 1));
            }
        }
        script.task(mm, Some(group), ops);
    }
    let machine = format!(
        "memory = \"256MiB\"\ncpus = 2\nreadahead_kb = 32\n\
         swap = {{ kind = \"zram\", size = \"64MiB\" }}\n\
         [groups.\"/a\"]\n\"memory.max\" = \"{limit}\"\n"
    );
    (script, machine)
}

#[test]
fn memory_enough_means_no_reclaim_and_no_refaults() {
    for variant in VARIANTS {
        let (script, machine) = mixture("64MiB");
        let outcome = script.run(&spec(&machine), variant);
        for name in ["workingset_refault_file", "workingset_refault_anon", "reclaim_calls"] {
            assert_eq!(outcome.counter(name), Some(0), "{variant} {name}");
        }
        assert_eq!(outcome.counter("pswpout"), Some(0), "{variant}");
        assert_eq!(outcome.counter("dev_in"), Some(8192), "{variant}: each page is read once");
    }
}

#[test]
fn with_memory_enough_all_variants_take_the_same_time() {
    let (script, machine) = mixture("64MiB");
    let times = VARIANTS.map(|v| script.run(&spec(&machine), v).virtual_ns);
    assert!(times.iter().all(|&t| t == times[0]), "{times:?}");
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let (script, machine) = mixture("6MiB");
    for variant in VARIANTS {
        let first = script.run(&spec(&machine), variant);
        assert!(first.counter("workingset_refault_file") > Some(0), "{variant}: no pressure");
        assert!(first == script.run(&spec(&machine), variant), "{variant}");
    }
}

#[test]
fn pages_are_conserved() {
    for variant in VARIANTS {
        let (script, machine) = mixture("6MiB");
        let (machine, outcome) = script.end(&spec(&machine), variant);
        let zones = &machine.world.zones;
        let usage = outcome.stat("/a", "memory.current").unwrap() / PAGE;
        let pool = outcome.counter("zram_pool_pages").unwrap();
        assert_eq!(zones.free_pages() + usage + pool, zones.managed_pages(), "{variant}");
        let held: u64 = ["anon", "file"].map(|n| outcome.stat("/a", n).unwrap()).iter().sum();
        assert_eq!(held / PAGE, usage, "{variant}");
        let lists = ["inactive_anon", "active_anon", "inactive_file", "active_file"];
        let listed: u64 = lists.map(|n| outcome.stat("/a", n).unwrap()).iter().sum();
        assert_eq!(listed / PAGE, usage, "{variant}: some page is on no list");
        assert!(usage <= 6 * 256, "{variant}");
        let [alloc, free] = ["pgalloc", "pgfree"].map(|n| outcome.counter(n).unwrap());
        assert_eq!(alloc - free, usage, "{variant}");
    }
}

#[test]
fn nothing_is_left_when_all_is_unmapped_and_cut() {
    for variant in VARIANTS {
        let (mut script, machine) = mixture("6MiB");
        for t in 0..2u32 {
            script.ops[t as usize].extend([
                Op::Barrier { id: 1 },
                Op::Unmap { region: 2 * t },
                Op::Unmap { region: 2 * t + 1 },
                Op::Truncate { file: 0, len: 0 },
            ]);
        }
        let (machine, outcome) = script.end(&spec(&machine), variant);
        assert_eq!(outcome.stat("/a", "memory.current"), Some(0), "{variant}");
        assert_eq!(outcome.stat("/a", "memory.swap.current"), Some(0), "{variant}");
        assert_eq!(outcome.counter("nr_dirty"), Some(0), "{variant}");
        assert_eq!(machine.world.zones.free_pages(), machine.world.zones.managed_pages());
        assert_eq!(machine.lru.folios().live(), 0, "{variant}");
    }
}

#[test]
fn counters_agree_with_each_other() {
    for variant in VARIANTS {
        let (script, machine) = mixture("6MiB");
        let o = script.run(&spec(&machine), variant);
        let c = |name: &str| o.counter(name).unwrap();
        assert!(c("pgscan_direct") >= c("pgsteal_direct"), "{variant}");
        assert_eq!(c("pgsteal_direct"), c("pgsteal_anon") + c("pgsteal_file"), "{variant}");
        assert_eq!(c("pswpout") + c("swpout_zero"), c("pgsteal_anon"), "{variant}");
        assert!(c("pgfault") > c("pgmajfault") && c("pgmajfault") > 0, "{variant}");
        assert_eq!(c("workingset_refault_anon"), c("pswpin"), "{variant}");
        assert_eq!(c("pgscan_kswapd"), 0, "{variant}: the machine is not short");
    }
}

#[test]
fn a_machine_short_of_memory_wakes_kswapd() {
    let mut script = Script::default();
    let file = script.file(64 << 20);
    script.task(0, None, (0..16384).map(|p| read(file, p, 1)).collect());
    for variant in VARIANTS {
        let outcome = script.run(&spec("memory = \"32MiB\"\ncpus = 1"), variant);
        assert!(outcome.counter("pgsteal_kswapd") > Some(4000), "{variant}");
        assert!(outcome.counter("nr_free_pages") > Some(0), "{variant}");
    }
}

#[test]
fn tasks_share_the_processors() {
    let mut script = Script::default();
    for mm in 0..4 {
        script.task(mm, None, vec![Op::Compute { ns: 40_000_000 }]);
    }
    let of = |cpus: u32| script.run(&spec(&format!("cpus = {cpus}")), "after").virtual_ns;
    assert_eq!([of(1), of(2), of(4), of(8)], [160_000_000, 80_000_000, 40_000_000, 40_000_000]);
}

#[test]
fn a_wild_access_is_an_error_that_names_it() {
    let mut script = Script::default();
    let region = script.anon(0, 4);
    script.task(0, None, vec![touch(region, 4, true)]);
    let mut machine = script.machine(&spec(""), "after");
    let error = machine.run(None).unwrap_err().to_string();
    assert_eq!(error, "task 0: page 4 of region 0 is not mapped");
}

#[test]
fn a_barrier_waits_for_all() {
    let mut script = Script::default();
    let barrier = Op::Barrier { id: 3 };
    let late = script.phase("late");
    script.task(0, None, vec![barrier, late]);
    script.task(1, None, vec![Op::Think { ns: 5_000 }, barrier]);
    script.task(2, None, vec![Op::Think { ns: 9_000 }]);
    let outcome = script.run(&spec(""), "after");
    assert_eq!(outcome.phases[0].at, 9_000);
}
