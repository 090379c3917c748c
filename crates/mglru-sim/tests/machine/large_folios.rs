//! Large folios in the page cache of files (spec §LF).

use mglru::types::NodeId;
use mglru::{Bit, Counter};
use mglru_sim::Machine;
use mglru_workload::{Control, Op, RegionKind};

use crate::script::{MIB, PAGE, Script, read, spec, touch, write};

const EXT4: &str = "filesystem = \"ext4\"\n";

fn after(text: &str, bytes: u64, ops: Vec<Op>, variant: &str) -> Machine {
    let mut script = Script::default();
    script.file(bytes);
    script.task(0, None, ops);
    script.end(&spec(&format!("{EXT4}{text}")), variant).0
}

/// Orders of the folios that file 0 has in the page cache, in order.
fn orders(machine: &Machine) -> Vec<u8> {
    let cache = &machine.world.files[0].cache;
    let folios = cache.folios(0, u64::MAX);
    folios.map(|(_, folio)| machine.lru.folios()[folio].flags.order()).collect()
}

fn one_by_one(pages: u64) -> Vec<Op> {
    (0..pages).map(|page| read(0, page, 1)).collect()
}

/// What `mm_filemap_add_to_page_cache` printed on a booted 7.2.12 (ext4), as first page:order.
const FROM_0: &str = "0:0 1:0 2:0 3:0 4:2 8:2 12:2 16:3 24:3 32:4 48:4 64:5 96:5 128:5 160:5";
const FROM_100: &str = "100:0 101:0 102:0 103:0 104:0 105:0 106:1 108:2 112:3 120:2 124:1 126:1 \
                        128:2 132:2 136:2 140:2 144:3 152:2 156:2 160:3 168:3 176:3 184:3 192:4";
const FOUR_MIB: &str = "0:0 1:0 2:0 3:0 4:2 8:2 12:2 16:2 20:2 24:3 32:4 48:4 64:4 80:4 96:5 128:6 \
                        192:6 256:6 320:6 384:7 512:8 768:8 1024:9 1536:9 2048:9 2560:9 3072:9";

fn folios(machine: &Machine) -> String {
    let cache = &machine.world.files[0].cache;
    let folio = |(page, folio)| format!("{page}:{}", machine.lru.folios()[folio].flags.order());
    cache.folios(0, u64::MAX).map(folio).collect::<Vec<_>>().join(" ")
}

#[test]
fn streams_get_the_folios_of_a_booted_kernel() {
    let stream = |from: u64, n: u64| (from..from + n).map(|page| read(0, page, 1)).collect();
    let whole = folios(&after("", 24 * MIB, stream(0, 200), "k7.2"));
    assert_eq!(whole[..FROM_0.len()], *FROM_0);
    let skipped = folios(&after("", 24 * MIB, stream(100, 100), "k7.2"));
    assert_eq!(skipped[..FROM_100.len()], *FROM_100);
    let long = folios(&after("readahead_kb = 4096", 24 * MIB, stream(0, 5000), "k7.2"));
    assert_eq!(long[..FOUR_MIB.len()], *FOUR_MIB);
}

#[test]
fn writes_get_the_folios_of_a_booted_kernel() {
    let of = |ops| folios(&after("", 0, ops, "k7.2"));
    let bytes = |off, len| Op::Write { file: 0, off, len };
    assert_eq!(of(vec![bytes(0, 5 << 20)]), "0:9 512:9 1024:8");
    let unaligned = of(vec![bytes(3 * PAGE, 1 << 20)]);
    assert_eq!(unaligned, "3:0 4:2 8:3 16:4 32:5 64:6 128:7 256:1 258:0");
    let short = of((0..8).map(|n| bytes(n * 10_000, 10_000)).collect());
    let measured =
        "0:1 2:0 3:0 4:0 5:0 6:0 7:0 8:0 9:0 10:1 12:0 13:0 14:0 15:0 16:0 17:0 18:0 19:0";
    assert_eq!(short, measured, "two pages where both are written whole");
}

#[test]
fn kernels_and_file_systems_without_large_folios_have_none() {
    let k612 = after("", MIB, one_by_one(256), "k6.12");
    assert_eq!(orders(&k612), [0; 256]);
    let none = after("readahead_kb = 0", MIB, one_by_one(64), "k7.2");
    assert_eq!(orders(&none), [0; 64], "without readahead a miss reads one page");
}

#[test]
fn a_stream_through_a_small_group_evicts_whole_folios_and_refaults_by_the_new_ones() {
    let mut script = Script::default();
    let group = script.group("/g", None);
    script.file(8 * MIB);
    let stream = || (0..2048).map(|page| read(0, page, 1));
    script.task(0, Some(group), stream().chain(stream()).collect());
    let limited = spec(&format!("{EXT4}groups.\"/g\".\"memory.max\" = \"4MiB\""));
    let (machine, outcome) = script.end(&limited, "k7.2");
    let counter = |name| outcome.counter(name).unwrap();
    let resident = machine.world.files[0].cache.cached();
    assert_eq!(counter("pgsteal_file") + resident, counter("readahead_pages") + 2);
    assert!(counter("workingset_refault_file") > 1000, "{outcome:?}");
    assert_eq!(counter("pgalloc") - counter("pgfree"), resident);
}

#[test]
fn a_folio_is_marked_accessed_once_a_call_and_not_again_by_one_that_goes_on_in_it() {
    let machine = after("", MIB, one_by_one(256), "k7.2");
    let last = machine.world.files[0].cache.folio(255).unwrap();
    let flags = machine.lru.folios()[last].flags;
    assert_eq!((flags.order(), flags.has(Bit::REFERENCED), flags.refs()), (5, true, 0));
    let again = one_by_one(256).into_iter().chain([read(0, 230, 8), read(0, 228, 1)]).collect();
    let machine = after("", MIB, again, "k7.2");
    let last = machine.world.files[0].cache.folio(255).unwrap();
    assert_eq!(machine.lru.folios()[last].flags.refs(), 0, "each read began where one had ended");
}

#[test]
fn a_large_write_makes_large_folios_and_dirties_them_whole() {
    let machine = after("", MIB, vec![write(0, 0, 256)], "k7.2");
    assert_eq!(orders(&machine), [8]);
    assert_eq!(machine.lru.node_write(NodeId(0)).0, 256);
    let small =
        after("", MIB, one_by_one(256).into_iter().chain([write(0, 255, 1)]).collect(), "k7.2");
    assert_eq!(small.lru.node_write(NodeId(0)).0, 32, "one page dirties its folio");
    assert_eq!(small.world.writeback.files.total(), 1, "and is all that is to be written");
}

#[test]
fn the_dirty_blocks_of_a_folio_are_written_and_no_others() {
    let mut ops = one_by_one(256);
    ops.extend([write(0, 255, 1), write(0, 250, 2), Op::Fsync { file: 0 }]);
    let machine = after("", MIB, ops, "k7.2");
    assert_eq!(machine.world.files_device().traffic().sectors_out, 3 * 8);
    assert_eq!(machine.lru.node_write(NodeId(0)), (0, 0));
}

#[test]
fn a_fault_maps_a_folio_whole() {
    let mut script = Script::default();
    let file = script.file(MIB);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 256);
    let mut ops = one_by_one(256);
    ops.extend((224..256).map(|page| touch(region, page, false)));
    script.task(0, None, ops);
    let machine = spec(&format!("{EXT4}fault_around_kb = 4"));
    let (machine, outcome) = script.end(&machine, "k7.2");
    assert_eq!(outcome.counter("pgfault"), Some(1), "32 pages by one fault");
    let folio = machine.world.files[0].cache.folio(230).unwrap();
    assert_eq!(machine.lru.folios()[folio].mapcount(), 32);
}

#[test]
fn a_cut_inside_a_folio_splits_it() {
    let mut ops = one_by_one(256);
    ops.push(Op::Truncate { file: 0, len: 243 * PAGE });
    let machine = after("", MIB, ops, "k7.2");
    assert_eq!(machine.world.files[0].cache.cached(), 243);
    let tail = orders(&machine).split_off(orders(&machine).len() - 3);
    assert_eq!(tail, [4, 1, 0], "224 to 239, 240 and 241, 242");
}

#[test]
fn a_machine_with_frames_refuses_large_folios() {
    let buddy = spec(&format!("{EXT4}physical = \"buddy\""));
    let message = buddy.check().unwrap_err().to_string();
    assert_eq!(message, "filesystem = ext4: its large folios need physical = \"simple\"");
}

#[test]
fn a_group_at_its_limit_gets_single_pages_rather_than_none() {
    let mut script = Script::default();
    let group = script.group("/g", None);
    script.file(MIB);
    let locked = script.anon(0, 40);
    script.layout.regions[locked as usize].locked = true;
    let mut ops = crate::script::touch_all(locked, 40, true);
    ops.extend(one_by_one(128));
    script.task(0, Some(group), ops);
    let limited = spec(&format!("{EXT4}groups.\"/g\".\"memory.max\" = \"256KiB\""));
    let outcome = script.run(&limited, "k7.2");
    assert_eq!(outcome.counter("oom_kill"), Some(0));
}

/// A file of one folio of 256 pages, mapped by `group`; then `ops` on the region.
fn mapped(ops: impl Fn(u32, u32) -> Vec<Op>) -> Machine {
    let mut script = Script::default();
    let group = script.group("/g", None);
    let file = script.file(MIB);
    let region = script.region(0, RegionKind::File { file, first_page: 0 }, 256);
    let all = [write(file, 0, 256)].into_iter().chain(ops(group, region)).collect();
    script.task(0, Some(group), all);
    script.end(&spec(EXT4), "after").0
}

#[test]
fn the_young_entries_of_a_folio_are_one_touch() {
    let promoted = |reads: bool| {
        let machine = mapped(|group, region| {
            let marks = reads.then(|| read(0, 0, 1));
            let touches = (0..40).map(|page| touch(region, page, false));
            let age = Op::Control(Control::Age { group, can_swap: true, force: true });
            marks.into_iter().chain(touches).chain([age]).collect()
        });
        let counters = machine.lru.counters();
        (counters[Counter::WalkYoung], counters[Counter::Promoted])
    };
    assert_eq!(promoted(false), (256, 0), "one fault made all of them young: the first touch");
    assert_eq!(promoted(true), (256, 256), "after a read it is the second: all pages go");
}

#[test]
fn unmapping_a_folio_marks_it_once() {
    let machine = mapped(|_, region| vec![touch(region, 9, false), Op::Unmap { region }]);
    let folio = machine.world.files[0].cache.folio(0).unwrap();
    let entry = &machine.lru.folios()[folio];
    assert_eq!(
        (entry.mapcount(), entry.flags.has(Bit::REFERENCED), entry.flags.refs()),
        (0, true, 0)
    );
}

#[test]
fn a_store_dirties_its_folio_and_writes_its_page() {
    let machine = mapped(|_, region| vec![Op::Fsync { file: 0 }, touch(region, 9, true)]);
    assert_eq!(machine.lru.node_write(NodeId(0)).0, 256);
    assert!(machine.world.writeback.files.is_dirty(0, 9));
    assert_eq!(machine.world.writeback.files.total(), 1);
}
