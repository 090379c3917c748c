//! Shadows in page caches, and what reclaim does about them.

use crate::script::{PAGE, Script, read, spec, write};

const MACHINE: &str = "readahead_kb = 0\n[groups.\"/a\"]\n\"memory.max\" = \"4MiB\"\n";

/// A file read from start to end in a group of 4 MiB, `rounds` times.
fn reads(pages: u64, rounds: u32) -> Script {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(pages * PAGE);
    let round = (0..pages).map(|page| read(file, page, 1));
    let ops = (0..rounds).flat_map(|_| round.clone()).collect();
    script.task(0, Some(group), ops);
    script
}

#[test]
fn nodes_that_hold_only_shadows_are_shrunk_to_an_eighth_of_the_pages() {
    for variant in ["classic", "before", "after", "k6.12"] {
        let (machine, outcome) = reads(32_768, 1).end(&spec(MACHINE), variant);
        let nodes = machine.world.files[0].cache.nodes();
        let entitled = 1024 / 8;
        let of_pages = 1024 / 64;
        assert!((entitled..entitled + 3 * of_pages).contains(&nodes), "{variant}: {nodes}");
        assert!(outcome.counter("slabs_scanned") > Some(300), "{variant}: of 512 nodes");
    }
}

#[test]
fn a_page_whose_shadow_is_lost_is_a_plain_miss() {
    let outcome = reads(32_768, 2).run(&spec(MACHINE), "after");
    let refaults = outcome.counter("workingset_refault_file").unwrap();
    assert_eq!(refaults, 0, "each shadow of the first round is gone before the second comes to it");
    assert_eq!(outcome.counter("dev_in"), Some(2 * 32_768 * PAGE / 1024));
}

#[test]
fn a_group_keeps_the_shadows_its_pages_entitle_it_to() {
    let outcome = reads(4096, 2).run(&spec(MACHINE), "after");
    assert_eq!(outcome.counter("slabs_scanned"), Some(0));
    assert!(outcome.counter("workingset_refault_file") > Some(3000));
}

#[test]
fn truncation_forgets_the_nodes_too() {
    let mut script = reads(32_768, 1);
    script.ops[0].push_back(mglru_workload::Op::Truncate { file: 0, len: 0 });
    script.ops[0].extend((0..4096).map(|page| write(0, page, 1)));
    let (machine, _) = script.end(&spec(MACHINE), "after");
    assert_eq!(
        machine.world.files[0].cache.nodes(),
        65,
        "64 and the one above them: none was shrunk"
    );
}
