use mglru_sim::spec::GroupSpec;
use toml::Table;

use super::*;
use crate::backend::Backend;
use crate::backend::sim::Sim;

/// Sections of a plan of one group.
fn sections(workload: &str) -> Sections {
    let group: GroupSpec = toml::from_str("\"memory.max\" = \"16MiB\"").unwrap();
    let machine = "memory = \"64MiB\"\ncpus = 2\nswap = { kind = \"zram\" }\nreadahead_kb = 0";
    Sections {
        machine: machine.parse().unwrap(),
        groups: IndexMap::from([("/touch".to_owned(), group)]),
        workload: workload.parse().unwrap(),
        reclaim: Table::new(),
        kernel: Table::new(),
        scale: 1.0,
    }
}

fn touch(engine: &str) -> String {
    format!(
        "kind = \"touch\"\nengine = \"{engine}\"\npages = 12288\noperations = 60000\ntasks = 2\n\
         theta = 0.9\nwrite_per_mille = 200"
    )
}

/// Runs a plan's sections; `None` where the host has no userfaultfd or io_uring.
fn run(backend: &dyn Backend, sections: &Sections) -> Option<Result<Outcome, String>> {
    if let Some(lack) = mglru_pager::probe().into_iter().find(|fact| fact.required && !fact.ok) {
        println!("skipped: {} ({})", lack.detail, lack.fix);
        return None;
    }
    let variant = Variant::parse("after").unwrap();
    let job = backend.prepare(sections, &variant).unwrap();
    let folder = tempfile::tempdir_in(".").unwrap();
    Some(job.run_keeping(1, &|_| (), &folder.path().join("run")).map_err(String::from))
}

#[test]
fn a_group_of_real_memory_keeps_to_its_limit_and_swaps() {
    let Some(outcome) = run(&Pager, &sections(&touch("anon"))) else { return };
    let outcome = outcome.unwrap();
    assert_eq!(outcome.metrics.ops, 60_000);
    let stat = &outcome.groups["/touch"].memory_stat;
    assert!(stat["memory.peak"] <= 16 << 20, "{}", stat["memory.peak"]);
    assert!(stat["memory.peak"] > 12 << 20, "{}", stat["memory.peak"]);
    assert!(outcome.counters["pswpin"] > 1000, "{:?}", outcome.counters);
    let refaults = outcome.counters["workingset_refault_anon"];
    assert!(refaults > 1000);
    assert_eq!(refaults, stat["workingset_refault_anon"], "the only group, counted once");
    assert_eq!(outcome.custom["young_bits"], YOUNG_BITS);
}

#[test]
fn files_are_real_and_the_reference_string_is_the_simulators() {
    for engine in ["mmap", "pread"] {
        let sections = sections(&touch(engine));
        let Some(outcome) = run(&Pager, &sections) else { return };
        let outcome = outcome.unwrap();
        let simulated = run(&Sim, &sections).unwrap().unwrap();
        assert_eq!(outcome.custom["string_hash"], simulated.custom["string_hash"], "{engine}");
        assert_eq!(outcome.custom["accesses"], simulated.custom["accesses"], "{engine}");
        let read = |outcome: &Outcome| outcome.counters["pgpgin"] as f64;
        let ratio = read(&outcome) / read(&simulated);
        assert!((0.5..2.0).contains(&ratio), "{engine}: pages read, {ratio} of the simulator's");
    }
}

#[test]
fn what_an_arena_cannot_do_is_said() {
    let mut sections = sections("kind = \"dd\"\nbytes = 33554432");
    sections.groups.clear();
    if let Some(outcome) = run(&Pager, &sections) {
        let why = outcome.unwrap_err();
        assert!(why.contains("arena"), "{why}");
    }
}
