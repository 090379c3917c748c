//! Groups: limits of their own, of their parents, protection, `memory.high`, commands.

use mglru_workload::{Control, Knob, Op};

use crate::script::{MIB, PAGE, Script, pages, read, spec, touch, touch_all};

/// Two groups, each reading a file of 8 MiB at random; then what each holds.
fn two_groups(limits: &str) -> [u64; 2] {
    let mut script = Script::default();
    for (mm, name) in ["/a", "/b"].into_iter().enumerate() {
        let group = script.group(name, None);
        let file = script.file(8 * MIB);
        let reads = pages(mm as u64, 2048, 8000);
        let ops = reads.into_iter().map(|p| read(file, u64::from(p), 1)).collect();
        script.task(mm as u32, Some(group), ops);
    }
    let text = format!("readahead_kb = 0\ncpus = 2\n{limits}");
    let outcome = script.run(&spec(&text), "after");
    ["/a", "/b"].map(|name| outcome.stat(name, "memory.current").unwrap())
}

#[test]
fn each_group_keeps_to_its_own_limit() {
    let limits = "groups.\"/a\" = { \"memory.max\" = \"2MiB\" }\n\
                  groups.\"/b\" = { \"memory.max\" = \"4MiB\" }";
    let [a, b] = two_groups(limits);
    assert!(a <= 2 * MIB && a > 2 * MIB - 64 * PAGE, "{a}");
    assert!(b <= 4 * MIB && b > 4 * MIB - 64 * PAGE, "{b}");
    let [a, b] = two_groups("groups.\"/a\" = { \"memory.max\" = \"2MiB\" }");
    assert!(a <= 2 * MIB && b > 7 * MIB, "{a} {b}");
}

/// A parent of 6 MiB with two children that want 8 MiB each.
fn siblings(limits: &str) -> [u64; 3] {
    let mut script = Script::default();
    let parent = script.group("/p", None);
    for (mm, name) in ["/p/a", "/p/b"].into_iter().enumerate() {
        let group = script.group(name, Some(parent));
        let file = script.file(8 * MIB);
        let reads = pages(mm as u64, 2048, 8000);
        let ops = reads.into_iter().map(|p| read(file, u64::from(p), 1)).collect();
        script.task(mm as u32, Some(group), ops);
    }
    let text = format!(
        "readahead_kb = 0\ncpus = 2\ngroups.\"/p\" = {{ \"memory.max\" = \"6MiB\" }}\n{limits}"
    );
    let outcome = script.run(&spec(&text), "after");
    ["/p", "/p/a", "/p/b"].map(|name| outcome.stat(name, "memory.current").unwrap())
}

#[test]
fn children_share_their_parents_limit() {
    let [parent, a, b] = siblings("");
    assert_eq!(parent, a + b);
    assert!(parent <= 6 * MIB && parent > 5 * MIB, "{parent}");
    assert!(a.abs_diff(b) < 2 * MIB, "{a} {b}");
}

#[test]
fn protected_memory_is_spared() {
    let [_, a, _] = siblings("groups.\"/p/a\" = { \"memory.min\" = \"5MiB\" }");
    assert!(a >= 5 * MIB - 64 * PAGE, "{a}");
    let [_, a, _] = siblings("groups.\"/p/a\" = { \"memory.low\" = \"5MiB\" }");
    assert!(a >= 4 * MIB, "{a}");
}

#[test]
fn reclaim_below_low_is_an_event() {
    let run = |low: &str| {
        let mut script = Script::default();
        let parent = script.group("/p", None);
        let group = script.group("/p/a", Some(parent));
        let file = script.file(8 * MIB);
        script.task(0, Some(group), (0..2048).map(|p| read(file, p, 1)).collect());
        let text = format!(
            "groups.\"/p\" = {{ \"memory.max\" = \"6MiB\" }}\n\
             groups.\"/p/a\" = {{ \"memory.low\" = \"{low}\" }}"
        );
        script.run(&spec(&text), "after").groups.iter().map(|g| g.events.low).collect::<Vec<_>>()
    };
    assert_eq!(run("0"), [0, 0, 0]);
    let events = run("8MiB");
    assert!(events[2] > 0, "nothing else was left");
    assert_eq!(events[1], events[2], "its parent's too");
}

#[test]
fn above_memory_high_a_task_reclaims_and_is_delayed() {
    let run = |swap: &str| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let anon = script.anon(0, 1500);
        script.task(0, Some(group), touch_all(anon, 1500, true));
        let text = format!("{swap}\ngroups.\"/a\" = {{ \"memory.high\" = \"4MiB\" }}");
        script.run(&spec(&text), "after")
    };
    let outcome = run("swap.kind = \"zram\"");
    assert!(outcome.stat("/a", "memory.peak").unwrap() <= 4 * MIB + 64 * PAGE);
    assert!(outcome.groups[1].events.high > 0);
    assert!(outcome.virtual_ns < 1_000_000_000);
    // With nothing to reclaim it is slowed down, but not killed.
    let outcome = run("");
    assert_eq!(outcome.stat("/a", "anon"), Some(1500 * PAGE));
    assert_eq!(outcome.counter("oom_kill"), Some(0));
    assert!(outcome.virtual_ns > 1_000_000_000, "{}", outcome.virtual_ns);
    assert!(outcome.groups[1].pressure.some > 500_000_000);
}

#[test]
fn memory_reclaim_takes_what_was_asked() {
    for variant in ["classic", "before", "after"] {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let file = script.file(8 * MIB);
        let reads = (0..2048).map(|p| read(file, p, 1));
        let request = Control::Reclaim { group: Some(0), bytes: 2 * MIB, swappiness: None };
        let ops = reads.chain([script.phase("full"), Op::Control(request)]).collect();
        script.task(0, Some(group), ops);
        let outcome = script.run(&spec("readahead_kb = 0"), variant);
        let left = outcome.stat("/a", "file").unwrap();
        assert!((5 * MIB..=6 * MIB).contains(&left), "{variant}: {left}");
        assert_eq!(outcome.counter("reclaim_requests_short"), Some(0), "{variant}");
        let proactive = outcome.counter("pgsteal_proactive").unwrap();
        assert_eq!(proactive * PAGE, 8 * MIB - left, "{variant}");
    }
}

#[test]
fn a_limit_that_is_lowered_is_enforced_at_once() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(8 * MIB);
    let reads = (0..2048).map(|p| read(file, p, 1));
    let set = Control::Set { group, knob: Knob::MemoryMax, value: MIB };
    script.task(0, Some(group), reads.chain([Op::Control(set)]).collect());
    let outcome = script.run(&spec(""), "after");
    assert!(outcome.stat("/a", "memory.current").unwrap() <= MIB);
    assert_eq!(outcome.counter("oom_kill"), Some(0));
}

#[test]
fn a_limit_for_a_group_that_does_not_exist_is_an_error() {
    let mut script = Script::default();
    script.task(0, None, vec![]);
    let spec = spec("groups.\"/x\" = { \"memory.max\" = \"1MiB\" }");
    let made = mglru_sim::Machine::new(&spec, mglru::Config::default(), Box::new(script), 1);
    assert_eq!(made.err().unwrap().to_string(), "groups./x: the workload has no such group");
}

#[test]
fn reclaim_shows_as_pressure() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(8 * MIB);
    let reads = pages(1, 2048, 4000).into_iter().map(|p| read(file, u64::from(p), 1));
    script.task(0, Some(group), reads.collect());
    let text = "readahead_kb = 0\ngroups.\"/a\" = { \"memory.max\" = \"4MiB\" }";
    let outcome = script.run(&spec(text), "after");
    let some = outcome.groups[1].pressure.some;
    assert!(some > 0 && some < outcome.virtual_ns / 2, "{some} of {}", outcome.virtual_ns);
    assert!(outcome.groups[0].pressure.some >= some);
}

#[test]
fn the_debug_commands_age_and_evict() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(4 * MIB);
    let reads = (0..1024).map(|p| read(file, p, 1));
    let age = Op::Control(Control::Age { group, can_swap: true, force: true });
    let evict = |offset| Control::Evict { group, offset, swappiness: 60, nr: 300 };
    let rest = [age, age, Op::Control(evict(0)), Op::Control(evict(3))];
    script.task(0, Some(group), reads.chain(rest).collect());
    let outcome = script.run(&spec("readahead_kb = 0"), "after");
    assert_eq!(outcome.counter("aging_passes"), Some(2));
    // The youngest generations cannot be evicted: only the first request is met.
    let left = outcome.stat("/a", "file").unwrap() / PAGE;
    assert!((1024 - 364..=1024 - 300).contains(&left), "{left}");
}

#[test]
fn page_tables_and_page_cache_nodes_are_charged_where_asked() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let anon = script.anon(0, 1024);
    let file = script.file(MIB);
    let full = script.phase("full");
    let touched = [touch_all(anon, 513, true), (0..256).map(|p| read(file, p, 1)).collect()];
    let end = [full, Op::Unmap { region: anon }, Op::Truncate { file, len: 0 }];
    script.task(0, Some(group), touched.concat().into_iter().chain(end).collect());
    let (machine, outcome) = script.end(&spec("charge_kernel = true"), "after");
    let (_, full) =
        outcome.phases[0].snapshot.groups[1].stat.iter().find(|s| s.0 == "kernel").unwrap();
    // Two page tables, and five nodes of 576 bytes.
    assert_eq!(*full, 3 * PAGE);
    assert_eq!(outcome.stat("/a", "memory.current"), Some(0));
    assert_eq!(machine.world.zones.free_pages(), machine.world.zones.managed_pages());
}

/// A task that never sleeps gives way to the kernel's threads once a time slice: aging finds that
/// its address space ran since the last walk.
#[test]
fn a_task_that_keeps_its_processor_is_walked_again() {
    let walked = |ns: u64| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let region = script.anon(0, 512);
        let age = Op::Control(Control::Age { group, can_swap: true, force: false });
        let rest = [age, Op::Compute { ns }, touch(region, 0, true), age];
        script.task(0, Some(group), touch_all(region, 512, true).into_iter().chain(rest).collect());
        script.run(&spec("swap = { kind = \"zram\" }"), "after").counter("walk_ptes").unwrap()
    };
    assert_eq!([walked(1_000_000), walked(4_000_000)], [512, 1024]);
}

/// A walk looks at the empty entries of a table too, and a table is as dense as its young entries
/// are among all (spec §4.3): 60 of 512 do not bring the next walk back, 64 do.
#[test]
fn a_sparse_table_is_not_walked_again() {
    let walked = |resident: u32| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let region = script.anon(0, 512);
        let age = Op::Control(Control::Age { group, can_swap: true, force: false });
        let touches = touch_all(region, resident, true);
        let wait = [Op::Compute { ns: 4_000_000 }];
        let ages = [age, Op::Compute { ns: 4_000_000 }];
        let ops = [&touches[..], &ages, &touches, &wait, &ages, &touches, &wait, &ages].concat();
        script.task(0, Some(group), ops);
        script.run(&spec("swap = { kind = \"zram\" }"), "after").counter("walk_ptes").unwrap()
    };
    assert_eq!([walked(60), walked(64)], [512, 1536]);
}

/// Sizes the classic LRU goes by are those of the last sum, and summing up never keeps a machine
/// alive that has nothing to do.
#[test]
fn statistics_are_summed_up_as_often_as_asked() {
    let deactivated = |ms: u32| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let file = script.file(8 * MIB);
        let twice = (0..1800).map(|p| read(file, p % 900, 1));
        let rest = (900..2000).map(|p| read(file, p, 1));
        script.task(0, Some(group), twice.chain(rest).collect());
        let text = format!(
            "readahead_kb = 0\nstat_flush_ms = {ms}\n\
             groups.\"/a\" = {{ \"memory.max\" = \"4MiB\" }}"
        );
        script.run(&spec(&text), "classic").counter("pgdeactivate").unwrap()
    };
    assert_eq!(deactivated(2000), 0, "nothing was active when the run began");
    assert!(deactivated(0) > 100);
}

#[test]
fn charges_in_batches_are_given_back() {
    let run = |batch: u32| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let file = script.file(8 * MIB);
        let reads = pages(1, 2048, 4000).into_iter().map(|p| read(file, u64::from(p), 1));
        script.task(0, Some(group), reads.collect());
        let text = format!(
            "readahead_kb = 0\ncharge_batch = {batch}\n\
             groups.\"/a\" = {{ \"memory.max\" = \"4MiB\" }}"
        );
        script.run(&spec(&text), "after")
    };
    let outcome = run(64);
    assert_eq!(outcome.stat("/a", "memory.current"), outcome.stat("/a", "file"));
    assert!(outcome.stat("/a", "memory.peak").unwrap() <= 4 * MIB);
    let [single, batched] = [run(0), outcome].map(|o| o.groups[1].events.max);
    assert!(batched <= single && batched > 0, "{batched} {single}");
}
