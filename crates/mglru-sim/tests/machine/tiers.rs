//! A second node of slower memory: what leaves the first goes there before it is lost.
//!
//! An allocation takes free memory of any node before it wakes kswapd, so that demotion begins
//! when the slow node is low as well.

use mglru_sim::Outcome;

use crate::script::{MIB, Script, pages, read, spec, touch_all};

/// 64 MiB in two nodes; a file of 80 MiB read at random beside 4 MiB of anonymous memory.
fn in_64_mib(text: &str, variant: &str) -> Outcome {
    let mut script = Script::default();
    let region = script.anon(0, 1024);
    let file = script.file(80 * MIB);
    let mut ops = touch_all(region, 1024, true);
    ops.extend((0..20 * 1024).map(|page| read(file, page, 1)));
    ops.extend(pages(1, 20 * 1024, 20_000).into_iter().map(|p| read(file, u64::from(p), 1)));
    script.task(0, None, ops);
    let text = format!("memory = \"64MiB\"\ncpus = 2\nnodes = 2\nreadahead_kb = 0\n{text}");
    script.end(&spec(&text), variant).1
}

fn demoted(outcome: &Outcome) -> u64 {
    let count = |name| outcome.counter(name).unwrap();
    count("pgdemote_kswapd") + count("pgdemote_direct")
}

#[test]
fn what_fast_memory_loses_goes_to_slow_memory() {
    for variant in ["after", "before", "k6.12", "classic"] {
        let outcome = in_64_mib("slow_nodes = 1", variant);
        let stolen =
            outcome.counter("pgsteal_kswapd").unwrap() + outcome.counter("pgsteal_direct").unwrap();
        let demoted = demoted(&outcome);
        assert!(demoted > 1_000, "{variant}: {demoted}");
        assert!(stolen > demoted, "{variant}: {stolen} {demoted}");
        assert_eq!(outcome.counter("pswpout"), Some(0), "{variant}");
    }
}

#[test]
fn without_slower_memory_nothing_is_demoted() {
    assert_eq!(demoted(&in_64_mib("slow_nodes = 0", "after")), 0);
}
