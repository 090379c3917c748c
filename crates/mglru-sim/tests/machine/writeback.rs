//! Dirty data: durable after fsync, old data written, writers slowed, reclaim notified.

use mglru_workload::{Control, Op, RegionKind};

use crate::script::{MIB, PAGE, Script, read, spec, touch, write};

fn one_task(bytes: u64, ops: Vec<Op>) -> Script {
    let mut script = Script::default();
    script.file(bytes);
    script.task(0, None, ops);
    script
}

#[test]
fn fsync_makes_a_file_durable() {
    let script = one_task(0, vec![write(0, 0, 500), Op::Fsync { file: 0 }]);
    let outcome = script.run(&spec(""), "after");
    assert_eq!(outcome.counter("dev_out"), Some(500 * 4));
    assert_eq!(outcome.counter("nr_dirty"), Some(0));
    assert_eq!(outcome.counter("nr_writeback"), Some(0));
    assert_eq!(outcome.counter("dev_in"), Some(0), "whole pages need no read");
    assert!(outcome.virtual_ns > 1_000_000, "2 MB take time");
}

#[test]
fn a_page_written_in_part_is_read_first() {
    let part = |off: u64| Op::Write { file: 0, off, len: 100 };
    let read_in = |bytes, off| {
        one_task(bytes, vec![part(off)]).run(&spec(""), "after").counter("dev_in").unwrap() / 4
    };
    assert_eq!(read_in(MIB, 5 * PAGE + 10), 1);
    assert_eq!(read_in(MIB, 5 * PAGE), 1);
    assert_eq!(read_in(5 * PAGE, 5 * PAGE + 10), 0, "past the end there is nothing to read");
    assert_eq!(read_in(5 * PAGE + 50, 5 * PAGE), 0, "all that there was is overwritten");
}

#[test]
fn old_data_is_written_without_being_asked() {
    let script = one_task(0, vec![write(0, 0, 10), Op::Think { ns: 29_000_000_000 }]);
    assert_eq!(script.run(&spec(""), "after").counter("dev_out"), Some(0));
    let script = one_task(0, vec![write(0, 0, 10), Op::Think { ns: 40_000_000_000 }]);
    assert_eq!(script.run(&spec(""), "after").counter("dev_out"), Some(40));
}

#[test]
fn writers_go_no_faster_than_the_device_in_the_end() {
    let chunks = (0..512).map(|i| write(0, i * 256, 256)).collect();
    let script = one_task(0, chunks);
    let outcome = script.run(&spec("memory = \"256MiB\"\ndevice = \"hdd\""), "after");
    // 512 MiB at 100 MB/s, of which 20 % of memory may still be dirty.
    let seconds = outcome.virtual_ns as f64 / 1e9;
    assert!((4.5..8.0).contains(&seconds), "{seconds} s");
    assert!(outcome.counter("dirty_paused_us") > Some(3_000_000));
    assert!(outcome.counter("oom_kill") == Some(0));
}

#[test]
fn stores_through_a_mapping_are_written_back() {
    let mut script = Script::default();
    let file = script.file(MIB);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 256);
    let store = |page| touch(region, page, true);
    let sync = Op::Fsync { file };
    script.task(0, None, vec![store(3), store(3), sync, store(3), store(4), sync, sync]);
    let outcome = script.run(&spec(""), "after");
    assert_eq!(outcome.counter("nr_dirtied"), Some(3));
    assert_eq!(outcome.counter("dev_out"), Some(3 * 4));
    assert_eq!(outcome.counter("pgfault"), Some(3), "a clean page is write-protected");
}

#[test]
fn dirty_pages_survive_reclaim() {
    // Each page is written once and read back later, in a group that holds a tenth of them.
    for variant in ["classic", "before", "after", "k6.12"] {
        let mut script = Script::default();
        let file = script.file(2560 * PAGE);
        let group = script.group("/a", None);
        let mut ops: Vec<Op> = (0..2560).map(|p| write(file, p, 1)).collect();
        ops.extend((0..2560).map(|p| read(file, p, 1)));
        ops.push(Op::Control(Control::Sync));
        script.task(0, Some(group), ops);
        // By summed statistics the group would be full of dirty pages before its limit is seen.
        let text = "device = \"ufs\"\ndirty = { summed = false }\n[groups.\"/a\"]\n\
                    \"memory.max\" = \"1MiB\"";
        let (machine, outcome) = script.end(&spec(text), variant);
        assert_eq!(outcome.counter("nr_written"), Some(2560), "{variant}");
        assert_eq!(outcome.counter("nr_dirty"), Some(0), "{variant}");
        assert!(outcome.counter("dev_in") >= Some(2300 * 4), "{variant}");
        assert_eq!(outcome.counter("oom_kill"), Some(0), "{variant}");
        assert_eq!(machine.world.writeback.files.total(), 0, "{variant}");
    }
}

#[test]
fn cut_pages_are_not_written() {
    let cut = Op::Truncate { file: 0, len: 3 * PAGE };
    let script = one_task(0, vec![write(0, 0, 100), cut, Op::Fsync { file: 0 }]);
    let (machine, outcome) = script.end(&spec(""), "after");
    assert_eq!(outcome.counter("dev_out"), Some(3 * 4));
    assert_eq!(machine.world.files[0].cache.cached(), 3);
}

#[test]
fn dropping_caches_keeps_what_is_dirty_or_mapped() {
    let mut script = Script::default();
    let file = script.file(MIB);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 256);
    let drop = Op::Control(Control::DropCaches);
    let ops = vec![read(file, 0, 32), touch(region, 200, false), write(file, 5, 1), drop];
    script.task(0, None, ops);
    let (machine, _) = script.end(&spec("readahead_kb = 4\nfault_around_kb = 4"), "after");
    assert_eq!(machine.world.files[0].cache.cached(), 2);
}
