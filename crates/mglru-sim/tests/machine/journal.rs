//! A file system's own blocks: held by the journal, then dirty, and stuck until they are written.

use mglru::Bit;
use mglru_sim::Machine;
use mglru_workload::{Control, Op};

use crate::blocks::{HUGE, machine};
use crate::script::{Script, read, write};

fn wait(seconds: u64) -> Op {
    Op::Think { ns: seconds * 1_000_000_000 }
}

/// Ten blocks change, and after some seconds all caches are dropped.
fn changed(seconds: u64) -> Machine {
    let mut script = Script::default();
    let blocks = script.file(1 << 20);
    script.layout.blocks = Some(blocks);
    let ops = vec![write(blocks, 0, 10), wait(seconds), Op::Control(Control::DropCaches)];
    script.task(0, None, ops);
    script.end(&machine(), "L2").0
}

#[test]
fn a_change_is_held_then_dirty_then_written() {
    let state = |seconds| {
        let machine = changed(seconds);
        let pages = machine.world.files[0].cache.folios(0, u64::MAX);
        let pinned =
            pages.filter(|&(_, folio)| machine.lru.folios()[folio].flags.has(Bit::PINNED)).count();
        (pinned, machine.world.writeback.files.total(), machine.world.device_kib().1)
    };
    assert_eq!(state(4), (10, 0, 0));
    let log = (10 + 2) * 4;
    assert_eq!(state(6), (0, 10, log), "descriptor, ten pages, commit block");
    assert_eq!(state(50), (0, 0, log + 40));
}

#[test]
fn a_block_that_changes_again_waits_for_the_next_commit() {
    let mut script = Script::default();
    let blocks = script.file(1 << 20);
    script.layout.blocks = Some(blocks);
    script.task(0, None, vec![write(blocks, 0, 10), wait(6), write(blocks, 0, 4), wait(1)]);
    let machine = script.end(&machine(), "L2").0;
    assert_eq!(machine.world.writeback.files.total(), 6, "four are held again");
}

/// A cache full of clean pages with a changed block in every pageblock; blocks had of four.
fn had(variant: &str, seconds: u64, journal: bool) -> u64 {
    let mut script = Script::default();
    script.layout.classes.push("blocks".to_owned());
    let (data, blocks) = (script.file(80 << 20), script.file(1 << 20));
    script.layout.blocks = journal.then_some(blocks);
    let fill = (0..160).flat_map(|i| [read(data, i * 128, 128), write(blocks, i, 1)]);
    let ops = fill.chain([wait(seconds), HUGE, HUGE, HUGE, HUGE]).collect();
    script.task(0, None, ops);
    script.run(&machine(), variant).blocks[0].1[1]
}

#[test]
fn compaction_cannot_move_them_and_lumpy_reclaim_writes_them() {
    assert_eq!(had("L2", 0, true), 0, "held");
    assert_eq!(had("L2", 10, true), 0, "dirty");
    assert!(had("L2", 60, true) > 0, "written");
    assert!(had("L2", 0, false) > 0, "pages of files are moved, dirty or not");
    assert_eq!(had("L0", 0, true), 0, "held");
    assert!(had("L0", 10, true) > 0, "written by reclaim");
}
