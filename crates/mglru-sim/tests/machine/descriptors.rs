//! Files through descriptors: readahead, what counts as an access, fault-around (experiments
//! §0.6).

use mglru_workload::{Advice, Op, RegionKind};

use crate::script::{PAGE, Script, read, spec, touch, write};

const KIB: u64 = 4;

fn dev_in(spec_text: &str, bytes: u64, ops: Vec<Op>) -> u64 {
    let mut script = Script::default();
    script.file(bytes);
    script.task(0, None, ops);
    script.run(&spec(spec_text), "after").counter("dev_in").unwrap() / KIB
}

#[test]
fn a_sequential_reader_is_read_ahead_of() {
    // 4 pages at once; page 1 carries the mark: 8 more; page 4 carries the next: 16 more.
    assert_eq!(dev_in("", 1 << 20, vec![read(0, 0, 1)]), 4);
    assert_eq!(dev_in("", 1 << 20, vec![read(0, 0, 1), read(0, 1, 1)]), 4 + 8);
    let five = (0..5).map(|p| read(0, p, 1)).collect();
    assert_eq!(dev_in("", 1 << 20, five), 4 + 8 + 16);
    let all = (0..256).map(|p| read(0, p, 1)).collect();
    assert_eq!(dev_in("", 1 << 20, all), 256, "nothing twice, nothing past the end");
}

#[test]
fn random_reads_bring_what_was_asked() {
    assert_eq!(dev_in("", 1 << 20, vec![read(0, 100, 7), read(0, 200, 7)]), 14);
    // Two cached blocks before a third look like a stream.
    let blocks = vec![read(0, 114, 7), read(0, 107, 7), read(0, 121, 7)];
    assert_eq!(dev_in("", 1 << 20, blocks), 7 + 7 + 21);
}

#[test]
fn without_readahead_each_page_is_read_by_itself() {
    let ops: Vec<Op> = (0..20).map(|p| read(0, p, 1)).collect();
    assert_eq!(dev_in("readahead_kb = 0", 1 << 20, ops), 20);
}

#[test]
fn short_reads_stop_at_the_end_of_the_file() {
    assert_eq!(dev_in("", 3 * PAGE - 1, vec![read(0, 0, 100), read(0, 3, 1)]), 3);
    assert_eq!(dev_in("", 0, vec![read(0, 0, 1)]), 0);
}

/// Reads page 0 so often, by calls that do or do not follow one another in that page, and returns
/// whether the folio counts as referenced.
fn flags_after(ops: Vec<Op>) -> (bool, u32) {
    let mut script = Script::default();
    script.file(1 << 20);
    script.task(0, None, ops);
    let (machine, _) = script.end(&spec("readahead_kb = 0"), "after");
    let folio = machine.world.files[0].cache.folio(0).unwrap();
    let flags = machine.lru.folios()[folio].flags;
    (flags.has(mglru::Bit::REFERENCED), flags.refs())
}

#[test]
fn reads_that_continue_in_a_page_count_once() {
    let part = |at: u64| Op::Read { file: 0, off: at, len: 100 };
    assert_eq!(flags_after(vec![part(0)]), (true, 0));
    assert_eq!(flags_after(vec![part(0), part(100), part(0)]), (true, 0));
    assert_eq!(flags_after(vec![part(0), part(5 * PAGE), part(0)]), (true, 1));
    assert_eq!(flags_after(vec![read(0, 0, 2), part(0)]), (true, 1), "page 1 was the last");
    assert_eq!(flags_after(vec![write(0, 0, 1)]), (false, 0), "writes do not count");
}

#[test]
fn two_readers_of_a_page_share_one_read() {
    let mut script = Script::default();
    script.file(1 << 20);
    for mm in 0..2 {
        script.task(mm, None, vec![read(0, 50, 1), Op::End { class: 0 }]);
    }
    script.layout.classes.push("read".to_owned());
    let outcome = script.run(&spec("cpus = 2"), "after");
    assert_eq!(outcome.counter("dev_in"), Some(4));
    let latency = &outcome.latency[0].1;
    let (min, max) = (latency.min(), latency.max());
    assert!(min > 80_000 && max < 90_000, "both wait for the device: {min} {max}");
}

#[test]
fn faults_map_what_is_cached_around() {
    let mut script = Script::default();
    let file = script.file(1 << 20);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 256);
    let mut ops = vec![read(file, 0, 32)];
    ops.extend((0..32).map(|page| touch(region, page, false)));
    script.task(0, None, ops);
    let faults = |text: &str| {
        let outcome = script.run(&spec(text), "after");
        (outcome.counter("pgfault").unwrap(), outcome.counter("pgmajfault").unwrap())
    };
    assert_eq!(faults("fault_around_kb = 4"), (32, 0));
    // Page 16 carries the readahead mark: no fault maps it by the way.
    assert_eq!(faults("fault_around_kb = 64"), (2, 0));
}

#[test]
fn advice_rules_the_read_around() {
    let read_by = |advice| {
        let mut script = Script::default();
        let file = script.file(1 << 20);
        let region = script.region(0, RegionKind::File { file, first_page: 0 }, 256);
        script.layout.regions[0].advice = advice;
        script.task(0, None, vec![touch(region, 100, false)]);
        let outcome = script.run(&spec(""), "after");
        assert_eq!(outcome.counter("pgmajfault"), Some(1));
        outcome.counter("dev_in").unwrap() / KIB
    };
    assert_eq!([Advice::Random, Advice::Normal, Advice::Sequential].map(read_by), [1, 32, 32]);
}

/// Nobody missed what a page held that comes back only to be overwritten.
#[test]
fn overwriting_an_evicted_page_is_no_refault() {
    let refaults = |again: fn(u32, u64, u32) -> Op| {
        let mut script = Script::default();
        let group = script.group("/a", None);
        let file = script.file(4 << 20);
        let reads = (0..1024).map(|page| read(file, page, 1));
        script.task(0, Some(group), reads.chain((0..8).map(|p| again(file, p, 1))).collect());
        let text = "readahead_kb = 0\ngroups.\"/a\" = { \"memory.max\" = \"2MiB\" }";
        script.run(&spec(text), "classic").counter("workingset_refault_file")
    };
    assert_eq!([refaults(read), refaults(write)], [Some(8), Some(0)]);
}

#[test]
fn descriptors_of_a_file_are_shared_by_tasks() {
    let mut script = Script::default();
    script.file(1 << 20);
    let wait = |ns| Op::Think { ns };
    script.task(0, None, vec![read(0, 100, 1)]);
    script.task(1, None, vec![wait(1_000_000), read(0, 101, 1)]);
    let outcome = script.run(&spec(""), "after");
    assert_eq!(outcome.counter("dev_in"), Some((1 + 4) * KIB), "the second looks sequential");
}
