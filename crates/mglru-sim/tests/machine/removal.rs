//! Groups that are removed: what they hold goes to their parent at once, or lingers with them; and
//! barriers of barrier sets.

use mglru_sim::{Machine, Outcome};
use mglru_workload::{Control, Op};

use crate::script::{MIB, PAGE, Script, pages, read, spec, touch_all};

const MACHINE: &str = "memory = \"64MiB\"\nreadahead_kb = 0\nswap.kind = \"zram\"\ncpus = 2";

/// A task in /p/c reads 500 pages of a file and ends; another in /p removes the group, then does
/// what `after` says.
fn removed(variant: &str, after: &[Op]) -> (Machine, Outcome) {
    let mut script = Script::default();
    let parent = script.group("/p", None);
    let child = script.group("/p/c", Some(parent));
    let file = script.file(2 * MIB);
    let anon = script.anon(0, 100);
    let mut ops: Vec<Op> = (0..500).map(|page| read(file, page, 1)).collect();
    ops.extend(touch_all(anon, 100, true));
    script.task(0, Some(child), ops);
    let mut ops = vec![script.phase("before"), Op::Barrier { id: 0 }];
    ops.push(Op::Control(Control::Remove { group: child }));
    ops.push(script.phase("removed"));
    ops.extend_from_slice(after);
    script.task(1, Some(parent), ops);
    script.end(&spec(MACHINE), variant)
}

fn held(outcome: &Outcome, phase: usize, group: usize, name: &str) -> u64 {
    let group = &outcome.phases[phase].snapshot.groups[group];
    let lists = ["inactive_file", "active_file"];
    let of = |name: &str| group.stat.iter().find(|(n, _)| *n == name).unwrap().1 / PAGE;
    if name == "lists" { lists.map(of).iter().sum() } else { of(name) }
}

#[test]
fn pages_of_a_removed_group_become_its_parents_from_7_1_on() {
    for variant in ["k7.1", "k7.2", "k7.3", "k7.1+lru=classic"] {
        let (machine, outcome) = removed(variant, &[]);
        let file = [1, 2].map(|group| held(&outcome, 1, group, "file"));
        assert_eq!(file, [500, 0], "{variant}");
        assert_eq!(held(&outcome, 1, 1, "lists"), 500, "{variant}");
        assert_eq!(held(&outcome, 1, 1, "memory.current"), 500, "{variant}: no page counts twice");
        assert_eq!(machine.lru.sizes(mglru::MemcgId(2), mglru::NodeId(0)), mglru::Sizes::default());
    }
}

#[test]
fn before_they_stay_until_they_are_reclaimed() {
    let (_, outcome) = removed("k6.12", &[]);
    assert_eq!([1, 2].map(|group| held(&outcome, 1, group, "file")), [500, 500], "in the subtree");
    let all = Op::Control(Control::Reclaim { group: Some(0), bytes: 500 * PAGE, swappiness: None });
    for variant in ["k6.12", "k7.1"] {
        let (_, outcome) = removed(variant, &[all, all]);
        let left = outcome.stat("/p", "file").unwrap() / PAGE;
        assert!(left < 50, "{variant}: {left} of 500 are left");
    }
}

#[test]
fn a_page_of_a_removed_group_serves_whoever_reads_it() {
    for variant in ["k6.12", "k7.1", "k7.2"] {
        let again: Vec<Op> = (0..500).map(|page| read(0, page, 1)).collect();
        let (_, outcome) = removed(variant, &again);
        assert_eq!(outcome.counter("pgpgin"), Some(500 * 4), "{variant}: all are cached still");
    }
}

#[test]
fn a_group_with_tasks_or_groups_is_not_removed() {
    let mut script = Script::default();
    let parent = script.group("/p", None);
    let child = script.group("/p/c", Some(parent));
    let remove = |group| Op::Control(Control::Remove { group });
    script.task(0, Some(child), vec![Op::Think { ns: 1_000_000 }]);
    script.task(1, None, vec![remove(child)]);
    let error = |script: &Script| {
        script.machine(&spec(MACHINE), "after").run(None).unwrap_err().to_string()
    };
    let problem = "the group has tasks or groups, or is removed already";
    assert_eq!(error(&script), format!("task 1: rmdir /p/c: {problem}"));
    script.ops[1] = vec![Op::Barrier { id: 0 }, remove(parent)].into();
    assert_eq!(error(&script), format!("task 1: rmdir /p: {problem}"));
    script.ops[1] = vec![Op::Barrier { id: 0 }, remove(child), remove(child)].into();
    assert_eq!(error(&script), format!("task 1: rmdir /p/c: {problem}"));
}

/// Groups come and go under pressure: the sums stay whole (`Script::end` checks the lists).
#[test]
fn groups_that_go_under_pressure_leave_sound_lists() {
    for variant in ["k6.12", "k7.1", "k7.2", "classic", "k7.1+lru=classic"] {
        let mut script = Script::default();
        let parent = script.group("/p", None);
        let file = script.file(16 * MIB);
        let mut remove = Vec::new();
        for mm in 0..6u32 {
            let child = script.group(&format!("/p/{mm}"), Some(parent));
            let anon = script.anon(mm, 300);
            let mut ops = vec![Op::Think { ns: u64::from(mm) * 1_000_000 }];
            ops.extend(touch_all(anon, 300, true));
            let reads = pages(u64::from(mm), 4096, 1500);
            ops.extend(reads.into_iter().map(|page| read(file, u64::from(page), 1)));
            ops.extend((0..mm).map(|id| Op::Barrier { id }));
            script.task(mm, Some(child), ops);
            remove.extend([Op::Barrier { id: mm }, Op::Control(Control::Remove { group: child })]);
        }
        script.task(6, Some(parent), remove);
        let limit = "groups.\"/p\" = { \"memory.max\" = \"6MiB\" }";
        let (_, outcome) = script.end(&spec(&format!("{MACHINE}\n{limit}")), variant);
        let current = outcome.stat("/p", "memory.current").unwrap();
        let sum = ["anon", "file"].map(|name| outcome.stat("/p", name).unwrap());
        assert_eq!(current, sum[0] + sum[1], "{variant}");
        assert_eq!(outcome.counter("oom_kill"), Some(0), "{variant}");
    }
}

#[test]
fn barrier_sets_wait_for_their_own_tasks() {
    let mut script = Script::default();
    let ops = |ns| vec![Op::Think { ns }, Op::Barrier { id: 0 }, Op::End { class: 0 }];
    for (mm, ns) in [(0, 1_000_000), (1, 2_000_000), (2, 50_000_000), (3, 60_000_000)] {
        script.task(mm, None, ops(ns));
    }
    script.layout.classes = vec!["x".to_string()];
    script.layout.barrier_sets = vec![Some(0), Some(0), Some(1), Some(1)];
    script.layout.tasks[3].background = true;
    let outcome = script.run(&spec(MACHINE), "after");
    let latency = &outcome.latency[0].1;
    let ms = |quantile| latency.value_at_quantile(quantile) / 1_000_000;
    assert_eq!((latency.len(), ms(0.5), outcome.virtual_ns / 1_000_000), (4, 2, 60));
}
