//! A run that somebody drives event by event.

use mglru_sim::live::{Act, Actor, Wait};
use mglru_sim::{Live, run_sampled};
use mglru_workload::Op;

use crate::script::{Script, config, read, spec, write};

/// Memory that is full of dirty pages beside a limit, on a slow device.
const MACHINE: &str = "memory = \"64MiB\"\nreadahead_kb = 0\nswap = { kind = \"zram\" }\n\
    [groups.\"/a\"]\n\"memory.max\" = \"4MiB\"\n";

fn two_tasks() -> Script {
    let mut script = Script::default();
    let group = script.group("/a", None);
    script.file(64 << 20);
    script.file(64 << 20);
    let reads = (0..6000).map(|n| read(0, n * 7 % 3000, 1));
    let writes = (0..6000).map(|n| write(1, n * 5 % 3000, 1));
    script.task(0, Some(group), reads.chain([Op::Think { ns: 1_000_000 }]).collect());
    script.task(0, Some(group), writes.collect());
    script
}

#[test]
fn a_run_driven_by_turns_with_looks_is_the_same_run() {
    for variant in ["k6.12", "after", "k7.2", "classic"] {
        let (machine, script) = (spec(MACHINE), two_tasks());
        let boxed = || Box::new(script.clone());
        let plain = run_sampled(&machine, config(variant), boxed(), 1, None).unwrap();
        let mut live = Live::new(&machine, config(variant), boxed(), 1).unwrap();
        let mut turns = 0;
        while live.turn().unwrap() {
            turns += 1;
            if turns % 7 == 0 {
                let look = live.look();
                assert_eq!(look.sample.at, live.now());
                assert_eq!(look.actors.len(), 3, "kswapd and two tasks");
                live.invariants().unwrap();
            }
        }
        assert!(!live.turn().unwrap(), "{variant}: it stays over");
        assert_eq!(live.finish(), plain, "{variant}");
    }
}

/// All that threads were seen to do and to wait for.
fn seen(machine: &str, variant: &str) -> Vec<Actor> {
    let script = Box::new(two_tasks());
    let mut live = Live::new(&spec(machine), config(variant), script, 1).unwrap();
    let mut seen: Vec<Actor> = Vec::new();
    while live.turn().unwrap() {
        let new = live.look().actors.into_iter().filter(|actor| !seen.contains(actor));
        seen.extend(new.collect::<Vec<_>>());
    }
    assert_eq!(live.groups(), ["/", "/a"]);
    assert_eq!((live.limit(0), live.limit(1)), (None, Some(4 << 20)));
    seen
}

#[test]
fn looks_say_who_reclaims_and_what_others_wait_for() {
    let found = seen(MACHINE, "k7.2");
    let is_at_limit = |actor: &Actor| matches!(actor.act, Act::Reclaims { target: Some(1), .. });
    assert!(found.iter().any(|a| is_at_limit(a) && a.name == "a-0" && a.group == 1), "{found:?}");
    let waits = |found: &[Actor], wait| found.iter().any(|actor| actor.wait == Some(wait));
    assert!(waits(&found, Wait::Data) && waits(&found, Wait::Time), "{found:?}");
    // A rotating disk cannot keep up with the writer, and the limit sees it at once.
    let slow = "device = { preset = \"hdd\" }\ndirty = { summed = false }\n";
    let slow = format!("{slow}{MACHINE}");
    let found = seen(&slow, "classic");
    assert!(waits(&found, Wait::DirtyLimit), "{found:?}");
}

#[test]
fn counters_and_stat_are_those_of_the_results() {
    let mut live = Live::new(&spec(MACHINE), config("after"), Box::new(two_tasks()), 1).unwrap();
    while live.turn().unwrap() {}
    let (counters, stat, accesses) = (live.counters(), live.stat(1), live.accesses());
    let (outcome, _) = live.finish();
    assert_eq!((counters, accesses), (outcome.counters, outcome.accesses));
    assert_eq!(stat, outcome.groups[1].stat);
}
