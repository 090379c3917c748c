//! What programs say of their memory: mlock, madvise, posix_fadvise. Each rule is set beside what a
//! reader of the manual pages would expect.

use mglru_sim::{MachineSpec, Outcome};
use mglru_workload::{ANON_ONLY, Control, FileAdvice, MemoryAdvice, Op, RegionKind};

use crate::script::{MIB, PAGE, Script, read, spec, touch, touch_all, write};

const VARIANTS: [&str; 6] = ["k6.12", "k7.1", "k7.2", "k7.3", "after", "classic"];

fn machine() -> MachineSpec {
    spec("memory = \"64MiB\"\nreadahead_kb = 0\nfault_around_kb = 4\nswap.kind = \"zram\"")
}

fn reclaim(pages: u64, swappiness: Option<u8>) -> Op {
    Op::Control(Control::Reclaim { group: Some(0), bytes: pages * PAGE, swappiness })
}

fn advise(region: u32, nr: u32, advice: MemoryAdvice) -> Op {
    Op::Advise { region, page: 0, nr, advice }
}

/// A counter from one phase to the next.
fn between(outcome: &Outcome, name: &str, from: usize) -> u64 {
    let at = |n: usize| match outcome.phases.get(n) {
        Some(phase) => phase.snapshot.counters.iter().find(|(c, _)| *c == name).unwrap().1,
        None => outcome.counter(name).unwrap(),
    };
    at(from + 1) - at(from)
}

/// Major faults of 400 pages used first, and of 400 that were called cold, after 256 had to go.
fn after_cold(variant: &str, is_file: bool) -> [u64; 2] {
    let mut script = Script::default();
    let group = script.group("/g", None);
    let mut region = || match is_file {
        true => {
            let file = script.file(2 * MIB);
            script.region(0, of(file), 400)
        }
        false => script.anon(0, 400),
    };
    let (old, cold) = (region(), region());
    let mut ops = touch_all(old, 400, !is_file);
    ops.extend(touch_all(cold, 400, !is_file));
    ops.extend([advise(cold, 400, MemoryAdvice::Cold), reclaim(256, None)]);
    ops.push(script.phase("old"));
    ops.extend(touch_all(old, 400, false));
    ops.push(script.phase("cold"));
    ops.extend(touch_all(cold, 400, false));
    script.task(0, Some(group), ops);
    let outcome = script.run(&machine(), variant);
    [0, 1].map(|phase| between(&outcome, "pgmajfault", phase))
}

#[test]
fn cold_memory_goes_before_memory_that_was_used_earlier() {
    for variant in VARIANTS {
        let majors = after_cold(variant, true);
        assert!(majors[0] == 0 && majors[1] >= 256, "{variant}: {majors:?}");
    }
    for variant in ["k6.12", "classic"] {
        let majors = after_cold(variant, false);
        assert!(majors[0] == 0 && majors[1] >= 256, "{variant}: {majors:?}");
    }
}

/// From 6.14 on anonymous memory that is put back enters where fresh memory does, in the second
/// youngest generation, in front of what was faulted in before (spec §3.1). A booted 7.1.13
/// does the same: of 4000 pages each, 2072 used ones had to come back and no cold one.
#[test]
fn cold_anonymous_memory_is_no_older_than_fresh_memory_before_7_2() {
    for variant in ["k7.1", "before"] {
        let majors = after_cold(variant, false);
        assert!(majors[0] >= 256 && majors[1] == 0, "{variant}: {majors:?}");
    }
}

#[test]
fn memory_paged_out_comes_back_page_by_page() {
    for variant in VARIANTS {
        let mut script = Script::default();
        let group = script.group("/g", None);
        let file = script.file(MIB);
        let (anon, mapped) = (script.anon(0, 100), script.region(0, of(file), 100));
        let mut ops = touch_all(anon, 100, true);
        ops.extend(touch_all(mapped, 100, false));
        ops.push(advise(anon, 60, MemoryAdvice::PageOut));
        ops.push(advise(mapped, 30, MemoryAdvice::PageOut));
        ops.push(script.phase("again"));
        ops.extend(touch_all(anon, 100, false));
        ops.extend(touch_all(mapped, 100, false));
        script.task(0, Some(group), ops);
        let outcome = script.run(&machine(), variant);
        let back = ["pswpin", "pgmajfault"].map(|name| between(&outcome, name, 0));
        assert_eq!(back, [60, 60 + 30], "{variant}");
        assert_eq!(outcome.counter("pgsteal_direct"), Some(0), "{variant}: nobody looked for it");
    }
}

fn of(file: u32) -> RegionKind {
    RegionKind::File { file, first_page: 0 }
}

#[test]
fn populated_memory_needs_no_more_faults() {
    let mut script = Script::default();
    let file = script.file(MIB);
    let (anon, mapped) = (script.anon(0, 64), script.region(0, of(file), 64));
    let mut ops = vec![
        advise(anon, 64, MemoryAdvice::PopulateWrite),
        advise(mapped, 32, MemoryAdvice::PopulateRead),
    ];
    ops.push(script.phase("use"));
    ops.extend(touch_all(anon, 64, true));
    ops.extend(touch_all(mapped, 64, false));
    script.task(0, None, ops);
    let outcome = script.run(&machine(), "after");
    assert_eq!(between(&outcome, "pgfault", 0), 32, "the half that was not brought in");
    let first = &outcome.phases[0];
    let before = first.snapshot.counters.iter().find(|(c, _)| *c == "pgpgin").unwrap().1;
    assert_eq!((before, first.accesses), (32 * 4, 0), "read, and nobody accessed it");
}

#[test]
fn reading_zeroes_in_populates_no_memory() {
    let mut script = Script::default();
    let anon = script.anon(0, 64);
    script.task(0, None, vec![advise(anon, 64, MemoryAdvice::PopulateRead)]);
    let outcome = script.run(&machine(), "after");
    assert_eq!(outcome.counter("pgfault"), Some(64));
    assert_eq!(outcome.stat("/", "anon"), Some(0));
}

#[test]
fn locked_memory_stays_until_it_is_unlocked() {
    for variant in VARIANTS {
        let mut script = Script::default();
        let group = script.group("/g", None);
        let file = script.file(8 * MIB);
        let (mapped, anon) = (script.region(0, of(file), 100), script.anon(0, 100));
        let mut ops = touch_all(mapped, 40, false);
        ops.extend([Op::Lock { region: mapped }, Op::Lock { region: anon }]);
        ops.push(script.phase("pressed"));
        ops.extend((100..2048).map(|page| read(file, page, 1)));
        ops.push(reclaim(1024, None));
        ops.push(script.phase("locked"));
        ops.extend(touch_all(mapped, 100, false));
        ops.extend(touch_all(anon, 100, false));
        ops.extend([Op::Unlock { region: mapped }, Op::Unlock { region: anon }]);
        ops.push(reclaim(4096, Some(200)));
        ops.push(reclaim(4096, Some(200)));
        ops.push(script.phase("unlocked"));
        ops.extend(touch_all(mapped, 100, false));
        script.task(0, Some(group), ops);
        let limit = "groups.\"/g\" = { \"memory.max\" = \"2MiB\" }";
        let spec = spec(&format!("readahead_kb = 0\nswap.kind = \"zram\"\n{limit}"));
        let outcome = script.run(&spec, variant);
        let unevictable = |n: usize| {
            let groups = &outcome.phases[n].snapshot.groups;
            groups[1].stat.iter().find(|(name, _)| *name == "unevictable").unwrap().1 / PAGE
        };
        assert_eq!([unevictable(1), unevictable(2)], [200, 0], "{variant}");
        assert!(unevictable(0) > 200 - 31, "{variant}: but for a processor's batch");
        assert_eq!(between(&outcome, "pgfault", 1), 0, "{variant}: brought in and kept");
        assert!(between(&outcome, "pgmajfault", 2) > 50, "{variant}: it can go now");
    }
}

#[test]
fn dontneed_drops_what_is_clean_and_writes_what_is_not() {
    let mut script = Script::default();
    let file = script.file(MIB);
    let drop = |page, nr| Op::AdviseFile { file, page, nr, advice: FileAdvice::DontNeed };
    let mut ops: Vec<Op> = (0..100).map(|page| read(file, page, 1)).collect();
    ops.extend((0..10).map(|page| write(file, page, 1)));
    ops.push(drop(0, 60));
    ops.push(script.phase("dropped"));
    ops.extend([Op::Think { ns: 1_000_000_000 }, drop(0, 60)]);
    ops.push(script.phase("written"));
    ops.extend((0..100).map(|page| read(file, page, 1)));
    script.task(0, None, ops);
    let outcome = script.run(&machine(), "after");
    let resident = [0, 1].map(|phase| outcome.phases[phase].snapshot.resident[0]);
    assert_eq!(resident, [100 - 50, 100 - 60], "dirty pages first have to be written");
    assert_eq!(outcome.counter("nr_written"), Some(10));
    assert_eq!(between(&outcome, "pgpgin", 1), 60 * 4);
    assert_eq!(outcome.counter("workingset_refault_file"), Some(0), "dropping leaves no shadow");
}

/// Reads of a hot mapped file beside a scan by read, in a group that holds the hot file twice.
fn hot_file(variant: &str, advice: Option<FileAdvice>) -> u64 {
    let mut script = Script::default();
    let group = script.group("/g", None);
    let (hot, scan) = (script.file(MIB), script.file(64 * MIB));
    let mapped = script.region(0, of(hot), 200);
    let advise = |advice| Op::AdviseFile { file: hot, page: 0, nr: 256, advice };
    let mut ops: Vec<Op> = advice.map(advise).into_iter().collect();
    for round in 0..40u64 {
        ops.extend(touch_all(mapped, 200, false));
        ops.extend((0..200).map(|page| read(scan, round * 200 + page, 1)));
    }
    script.task(0, Some(group), ops);
    let limit = "groups.\"/g\" = { \"memory.max\" = \"1600KiB\" }";
    script.run(&spec(&format!("readahead_kb = 0\n{limit}")), variant).counter("pgmajfault").unwrap()
}

#[test]
fn accesses_to_a_file_that_is_not_reused_count_for_nothing() {
    for variant in ["k6.12", "k7.1", "k7.2", "after"] {
        let [used, not_reused, again] = [None, Some(FileAdvice::NoReuse), Some(FileAdvice::Normal)]
            .map(|a| hot_file(variant, a));
        assert!(not_reused > 2 * used, "{variant}: {used} {not_reused}");
        assert_eq!(used, again, "{variant}: `normal` is the default");
    }
}

#[test]
fn reclaim_of_anonymous_memory_alone_leaves_files() {
    for variant in VARIANTS {
        let mut script = Script::default();
        let group = script.group("/g", None);
        let (file, anon) = (script.file(2 * MIB), script.anon(0, 400));
        let mut ops: Vec<Op> = (0..400).map(|page| read(file, page, 1)).collect();
        ops.extend(touch_all(anon, 400, true));
        ops.push(reclaim(200, Some(ANON_ONLY)));
        script.task(0, Some(group), ops);
        let outcome = script.run(&machine(), variant);
        let stolen = ["pgsteal_anon", "pgsteal_file"].map(|name| outcome.counter(name).unwrap());
        if variant == "k6.12" {
            assert_eq!(stolen, [0, 0], "6.12 does not know it");
            assert_eq!(outcome.counter("refused_commands"), Some(1));
        } else {
            assert!(stolen[0] >= 200 && stolen[1] == 0, "{variant}: {stolen:?}");
        }
    }
}

#[test]
fn advice_that_no_kernel_takes_fails_the_run() {
    let mut script = Script::default();
    let anon = script.anon(0, 8);
    let cold = advise(anon, 8, MemoryAdvice::Cold);
    script.task(0, None, vec![touch(anon, 0, true), Op::Lock { region: anon }, cold]);
    let error = script.machine(&machine(), "after").run(None).unwrap_err().to_string();
    assert_eq!(error, "task 0: MADV_COLD and MADV_PAGEOUT of a locked region is refused");
    script.ops[0] = vec![Op::Unmap { region: anon }, Op::Lock { region: anon }].into();
    let error = script.machine(&machine(), "after").run(None).unwrap_err().to_string();
    assert_eq!(error, "task 0: mlock of a region that is not mapped is refused");
}
