//! The life of one page.

use mglru_sim::explain::{List, Moment, PageId, What};
use mglru_sim::{run, run_explained};
use mglru_workload::Op;

use crate::script::{Script, config, read, spec, touch, touch_all, write};

const LIMIT: &str = "readahead_kb = 0\nswap = { kind = \"zram\" }\n\
    [groups.\"/a\"]\n\"memory.max\" = \"4MiB\"\n";

fn life(script: &Script, variant: &str, page: PageId) -> Vec<Moment> {
    let machine = spec(LIMIT);
    let boxed = || Box::new(script.clone());
    let (outcome, life) = run_explained(&machine, config(variant), boxed(), 1, page).unwrap();
    let quiet = run(&machine, config(variant), boxed(), 1, None).unwrap();
    assert_eq!(outcome, quiet, "{variant}: a look makes no difference");
    assert!(life.windows(2).all(|pair| pair[0].at <= pair[1].at), "{life:?}");
    life
}

/// One reader in a group of 4 MiB.
fn reader(ops: impl IntoIterator<Item = Op>) -> Script {
    let mut script = Script::default();
    let group = script.group("/a", None);
    script.file(64 << 20);
    script.task(0, Some(group), ops.into_iter().collect());
    script
}

#[test]
fn a_page_comes_is_evicted_and_comes_back_with_its_distance() {
    let others = |from: u64| (from..from + 3000).map(|page| read(0, page, 1));
    let ops = [read(0, 7, 1)].into_iter().chain(others(100)).chain([read(0, 7, 1)]);
    let script = reader(ops.chain([Op::Think { ns: 1_000_000 }]));
    for variant in ["k6.12", "after", "k7.2", "classic"] {
        let life = life(&script, variant, PageId::File { file: 0, page: 7 });
        let at = |is: fn(&What) -> bool| {
            let found = life.iter().position(|moment| is(&moment.what));
            found.unwrap_or_else(|| panic!("{variant}: {life:?}"))
        };
        let came = at(|what| matches!(what, What::Came { memcg: 1, refault: None, .. }));
        let read = at(|what| *what == What::Read);
        let evicted = at(|what| *what == What::Evicted { swapped: false });
        let back = at(|what| matches!(what, What::Came { refault: Some(_), .. }));
        assert!(
            came == 0 && read > came && evicted > read && back > evicted,
            "{variant}: {life:?}"
        );
        assert_eq!((life[came].pid, life[read].pid), (1000, 0), "{variant}: the device reads");
        assert_eq!(life[evicted].comm, "a", "{variant}: the group's own task reclaims");
        let What::Came { refault: Some(distance), .. } = life[back].what else { unreachable!() };
        // It left when the group was full, and since then as many left as came.
        assert!((1..=3000 - 1000).contains(&distance), "{variant}: {distance}");
    }
}

#[test]
fn generations_and_writes_show() {
    let writes = (0..900).map(|page| write(0, page, 1));
    let reads = (2000..4000).map(|page| read(0, page, 1));
    let end = [Op::Fsync { file: 0 }, Op::Think { ns: 1_000_000 }];
    let script = reader(writes.chain(end).chain(reads));
    let life = life(&script, "after", PageId::File { file: 0, page: 3 });
    let whats: Vec<&What> = life.iter().map(|moment| &moment.what).collect();
    let position = |what: &What| whats.iter().position(|w| *w == what);
    let [dirtied, began, written] =
        [What::Dirtied, What::WriteBegan, What::Written].map(|w| position(&w).expect("recorded"));
    assert!(dirtied < began && began < written, "{whats:?}");
    let in_generation = |what: &&What| {
        matches!(what, What::Came { list: List::Generation { seq, oldest, youngest }, .. }
            | What::Moved { to: List::Generation { seq, oldest, youngest }, .. }
            if oldest <= seq && seq <= youngest)
    };
    assert!(whats.iter().any(in_generation), "{whats:?}");
    assert!(position(&What::Evicted { swapped: false }).is_some(), "{whats:?}");
}

#[test]
fn memory_is_swapped_and_dropped_with_its_owner() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let region = script.anon(0, 2048);
    let mut ops = touch_all(region, 2048, true);
    ops.extend([touch(region, 5, false), Op::Think { ns: 1_000_000 }]);
    script.task(0, Some(group), ops);
    // The run outlives the owner.
    script.task(1, None, vec![Op::Think { ns: 10_000_000_000 }]);
    let life = life(&script, "after", PageId::Memory { region, page: 5 });
    let whats: Vec<&What> = life.iter().map(|moment| &moment.what).collect();
    assert!(whats.contains(&&What::Evicted { swapped: true }), "{whats:?}");
    assert!(whats.iter().any(|w| matches!(w, What::Came { refault: Some(_), .. })), "{whats:?}");
    assert_eq!(whats.last(), Some(&&What::Dropped));
}

#[test]
fn a_page_that_nobody_asks_for_has_no_life() {
    assert_eq!(life(&reader([read(0, 1, 1)]), "after", PageId::File { file: 0, page: 9 }), []);
}
