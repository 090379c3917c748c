//! Physical memory in the machine: blocks of contiguous pages, lumpy reclaim and compaction.

use mglru_sim::physical::{Frame, Use};
use mglru_sim::{Machine, MachineSpec, Outcome};
use mglru_workload::{Control, KernelOp, Op};

use crate::script::{Script, read, spec, touch_all, write};

pub const HUGE: Op = Op::Kernel(KernelOp::TryBlock { order: 9, repeat: false, class: 0 });

pub fn machine() -> MachineSpec {
    spec(
        "memory = \"64MiB\"\nphysical = \"buddy\"\ndevice = \"ram\"\n\
         zones = { min_free = \"512KiB\" }",
    )
}

/// A script whose one task asks for blocks.
fn script(ops: impl FnOnce(&mut Script) -> Vec<Op>) -> Script {
    let mut script = Script::default();
    script.layout.classes.push("blocks".to_owned());
    let ops = ops(&mut script);
    script.task(0, None, ops);
    script
}

fn successes(outcome: &Outcome) -> [u64; 2] {
    outcome.blocks[0].1
}

/// Every folio lies in a frame of its own, and nothing is lost.
fn check(machine: &Machine) {
    let frames = machine.world.frames.as_ref().unwrap();
    let mut folios = 0;
    for pfn in 0..frames.zone.end() {
        if let Frame::Used(Use::Folio(folio)) = frames.zone.frame(pfn) {
            folios += 1;
            assert!(machine.lru.folios().iter().any(|(id, _)| id == folio), "{folio:?} at {pfn}");
        }
    }
    assert_eq!(folios, machine.lru.folios().live());
}

#[test]
fn blocks_of_an_empty_machine_are_had_and_given_back() {
    for variant in ["L0", "L1", "L2", "L3", "classic", "after"] {
        let script = script(|_| {
            let free = Op::Kernel(KernelOp::FreeBlocks);
            [vec![HUGE; 20], vec![free], vec![HUGE; 20]].concat()
        });
        let (machine, outcome) = script.end(&machine(), variant);
        assert_eq!(successes(&outcome), [40, 40], "{variant}");
        assert_eq!(outcome.counter("pgscan_direct"), Some(0));
        check(&machine);
    }
}

#[test]
fn a_cache_full_of_clean_pages_makes_way_for_blocks() {
    for variant in ["L0", "L1", "L2", "L3", "classic", "after"] {
        let script = script(|script| {
            let file = script.file(80 << 20);
            let fill: Vec<Op> = (0..640).map(|i| read(file, i * 32, 32)).collect();
            [fill, vec![HUGE; 8]].concat()
        });
        let (machine, outcome) = script.end(&machine(), variant);
        let [made, successful] = successes(&outcome);
        assert_eq!(made, 8);
        assert!(successful >= 1, "{variant}: {successful} of 8");
        check(&machine);
    }
}

#[test]
fn kernel_pages_and_inodes_come_and_go() {
    let script = script(|_| {
        vec![
            Op::Kernel(KernelOp::Take { pages: 100 }),
            Op::Kernel(KernelOp::Inodes { nr: 400 }),
            Op::Kernel(KernelOp::Give { pages: 60 }),
            Op::Kernel(KernelOp::DropSlab),
        ]
    });
    let (machine, outcome) = script.end(&machine(), "L2");
    let frames = machine.world.frames.as_ref().unwrap();
    let used = frames.zone.managed() - frames.zone.nr_free() - frames.zone.nr_per_cpu();
    assert_eq!(used, 40, "forty kernel pages are left, all inodes are gone");
    assert_eq!(outcome.counter("nr_free_pages"), Some(frames.zone.nr_free()));
    assert_eq!(machine.world.nr_inodes(), 0);
}

#[test]
fn compaction_moves_pages_that_programs_go_on_using() {
    let fragmented = |script: &mut Script| {
        // Hardly a whole block is left.
        let region = script.anon(0, 15_600);
        let holes = (0..7_800).map(|i| Op::Free { region, page: 2 * i, nr: 1 }).collect();
        let again =
            (0..7_800).map(|i| Op::Touch { region, page: 2 * i + 1, write: true }).collect();
        [touch_all(region, 15_600, true), holes, vec![HUGE; 4], again].concat()
    };
    for variant in ["L1", "L2", "L3", "classic"] {
        let (machine, outcome) = script(fragmented).end(&machine(), variant);
        assert!(outcome.counter("compact_pages_moved") > Some(0), "{variant}");
        assert_eq!(outcome.counter("compact_isolated").unwrap(), {
            let get = |name| outcome.counter(name).unwrap();
            get("compact_pages_moved") + get("compact_pagemigrate_failed")
        });
        assert_eq!(outcome.counter("pgfault"), Some(15_600), "moved pages stay mapped");
        check(&machine);
    }
    let without = script(fragmented).run(&machine(), "L0");
    assert_eq!(without.counter("compact_stall"), Some(0), "L0 has no compaction");
}

#[test]
fn only_lumpy_reclaim_writes_pages_of_a_block() {
    let dirty = |script: &mut Script| {
        let file = script.file(80 << 20);
        let clean: Vec<Op> = (0..550).map(|i| read(file, i * 32, 32)).collect();
        let dirty: Vec<Op> = (0..20_000).step_by(16).map(|page| write(file, page, 1)).collect();
        [clean, dirty, vec![HUGE; 8]].concat()
    };
    let writes = |variant| {
        let mut machine = machine();
        machine.dirty.background_ratio = 90;
        machine.dirty.ratio = 95;
        script(dirty).run(&machine, variant).counter("nr_vmscan_write").unwrap()
    };
    assert!(writes("L0") > 0);
    assert_eq!([writes("L2"), writes("L3")], [0, 0]);
}

#[test]
fn a_simple_machine_refuses() {
    let mut machine = machine();
    machine.physical = mglru_sim::spec::Physical::Simple;
    let error = script(|_| vec![HUGE]).machine(&machine, "L1").run(None).unwrap_err().to_string();
    assert!(error.contains("machine.physical"), "{error}");
    let drop = script(|_| vec![Op::Control(Control::DropCaches)]);
    assert!(drop.machine(&machine, "L1").run(None).is_ok());
}

#[test]
fn records_do_not_depend_on_anything_but_the_seed() {
    let run = || {
        script(|script| {
            let file = script.file(80 << 20);
            let fill: Vec<Op> = (0..600).map(|i| write(file, i * 32, 32)).collect();
            [fill, vec![HUGE; 8]].concat()
        })
        .run(&machine(), "L1")
    };
    assert_eq!(run(), run());
}
