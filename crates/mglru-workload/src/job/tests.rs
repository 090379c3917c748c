use proptest::prelude::*;

use super::*;
use crate::op::{ANON_ONLY, Control, FileAdvice, FileSpec, MemoryAdvice, Workload};

const TWO_STEPS: &str = "\
# a comment
seed 7
set memory.max 64M
region kind=anon pages=16
region kind=pread path=/f pages=8
stream region=0 gen=seq n=16 base=0 start=14 wr=1000
stream region=1 gen=seq n=8 base=0 wr=0
phase fill ops=3 mix=0:1
reclaim 1M swappiness=0
phase read ops=2 mix=1:1
";

fn ops(text: &str) -> Vec<Op> {
    let mut workload = JobWorkload::new(Job::parse(text).unwrap());
    let mut ops = Vec::new();
    while ops.last() != Some(&Op::Done) {
        workload.fill(0, &mut ops);
    }
    ops
}

fn error(from: &str, to: &str) -> String {
    assert!(TWO_STEPS.contains(from), "{from}");
    Job::parse(&TWO_STEPS.replace(from, to)).unwrap_err().to_string()
}

#[test]
fn steps_become_operations() {
    let touch = |page| Op::Touch { region: 0, page, write: true };
    let read = |page: u64| Op::Read { file: 0, off: page * 4096, len: 4096 };
    let reclaim = Control::Reclaim { group: Some(GROUP), bytes: 1 << 20, swappiness: Some(0) };
    let mark = |phase| Op::Mark { phase };
    let expected = [
        &[mark(0), touch(14), touch(15), touch(0), mark(1), Op::Control(reclaim)][..],
        &[mark(2), read(0), read(1), Op::Done],
    ];
    assert_eq!(ops(TWO_STEPS), expected.concat());
}

#[test]
fn layout_has_a_group_files_and_steps() {
    let workload = JobWorkload::new(Job::parse(TWO_STEPS).unwrap());
    assert_eq!(workload.job().settings, [(GROUP, Knob::MemoryMax, 64 << 20)]);
    assert_eq!(workload.places(), [Place::Region(0), Place::File(0)]);
    assert_eq!(workload.total_ops(), Some(5));
    let layout = workload.layout();
    assert_eq!(layout.phases, ["fill", "reclaim", "read"]);
    assert_eq!(layout.files, [FileSpec { name: "/f".into(), bytes: 8 * 4096 }]);
    assert_eq!((layout.regions.len(), layout.tasks.len()), (1, 1));
}

#[test]
fn a_region_is_as_long_as_its_streams_reach() {
    let job = Job::parse(&TWO_STEPS.replace("n=16 base=0", "n=16 base=5")).unwrap();
    assert_eq!((job.region_pages(0), job.region_pages(1)), (21, 8));
    assert_eq!(JobWorkload::new(job).layout().regions[0].pages, 21);
}

#[test]
fn hash_distinguishes_strings() {
    let hash = |text: &str| {
        let mut workload = JobWorkload::new(Job::parse(text).unwrap());
        while workload.next(0) != Op::Done {}
        workload.string_hash()
    };
    assert_eq!(hash(TWO_STEPS), hash(TWO_STEPS));
    assert_ne!(hash(TWO_STEPS), hash(&TWO_STEPS.replace("start=14", "start=13")));
}

#[test]
fn errors_name_line_and_key() {
    let cases = [
        ("seed 7", "seed x", "line 2: seed: `x` is not a whole number"),
        ("pages=16", "pages=0", "line 4: pages: 0: must be from 1 to 4294967295"),
        (
            "kind=anon",
            "kind=heap",
            "line 4: kind: `heap` is no kind of region (mmap, pread, anon, shmem)",
        ),
        ("path=/f ", "", "line 5: path: missing"),
        ("n=16", "n=0", "line 6: n: 0: must be from 1 to 4294967295"),
        ("start=14", "theta=1", "line 6: theta: means nothing to this generator"),
        (
            "gen=seq n=8",
            "gen=zipf theta=1.2345678 n=8",
            "line 7: theta: `1.2345678` is no number of at most 6 places",
        ),
        ("gen=seq n=8", "gen=zipf theta=11 n=8", "line 7: theta: 11: must be from 0 to 10"),
        ("mix=0:1", "mix=2:1", "line 8: mix: stream 2 is not declared above"),
        ("mix=0:1", "mix=0:0", "line 8: mix: the weights sum to 0"),
        ("swappiness=0", "swappiness=201", "line 9: swappiness: 201: must be from 0 to 200"),
        ("reclaim 1M", "reclaim", "line 9: BYTES: missing"),
        ("mix=1:1", "mix=1:1 ops=3", "line 10: ops: given twice"),
        (
            "phase read",
            "set memory.max 1\nphase read",
            "line 10: set: must stand before the first step; use `cgset`",
        ),
    ];
    let unknown = [
        ("seed 7", "sede 7", "line 2: sede: no such statement (known: seed, group, task, set, "),
        ("memory.max", "memory.mx", "line 3: memory.mx: no such setting of a group (known: mem"),
        ("start=14", "begin=14", "line 6: begin: no such key of `stream` (known: region, gen, "),
        ("pages=8", "pages=8\nfadvise 1 gone", "line 6: gone: no such advice about a file (know"),
        ("pages=16", "pages=16\nmadvise 0 hot", "line 5: hot: no such advice about mapped page"),
        ("reclaim 1M", "reclaim 1M group=/x", "line 9: /x: no such group declared above (known"),
    ];
    for (from, to, start) in unknown {
        let found = error(from, to);
        assert!(found.starts_with(start), "{found}");
    }
    for (from, to, message) in cases {
        assert_eq!(error(from, to), message);
    }
    assert_eq!(Job::parse("").unwrap_err().to_string(), "line 0: phase: the job has none");
}

#[test]
fn commands_parse() {
    let text = format!("{TWO_STEPS}sleep 2\nage 1 0\nevict 1 60\ncgset memory.high max\ndrop\n");
    let all = ops(&text);
    let found = |op| all.contains(&op);
    assert!(found(Op::Think { ns: 2_000_000 }));
    let (group, nr) = (GROUP, u64::MAX);
    assert!(found(Op::Control(Control::Age { group, can_swap: true, force: false })));
    assert!(found(Op::Control(Control::Evict { group, offset: 1, swappiness: 60, nr })));
    let (knob, value) = (Knob::MemoryHigh, u64::MAX);
    assert!(found(Op::Control(Control::Set { group, knob, value })));
    assert!(found(Op::Control(Control::DropCaches)));
}

const JOB: &str = "\
group /admin
task a group=/web/cache
set memory.max 8M group=/web
region heap kind=anon pages=64
region lib kind=mmap path=/lib pages=32 exec=1
stream fill region=heap gen=seq n=64 base=0 wr=1000
phase fill ops=2 mix=fill:1
mlock lib
madvise heap cold base=8 n=4
barrier 1
task b shares=a
stream region=heap gen=uniform n=64 base=0 wr=0
";

const ADMIN: &str = "\
task admin group=/admin background=0
region kind=pread path=/f pages=8
stream s region=2 gen=seq n=8 base=0 wr=0
phase warm ops=1 mix=s:1
fadvise 2 dontneed
reclaim 4M swappiness=max group=/web
barrier 1
rmdir /web/cache
";

fn job_text() -> String {
    JOB.replace("region=heap gen=uniform", "region=0 gen=uniform") + ADMIN
}

#[test]
fn tasks_have_groups_memory_and_steps_of_their_own() {
    let mut workload = JobWorkload::new(Job::parse(&job_text()).unwrap());
    let layout = workload.layout();
    let names: Vec<_> = layout.groups.iter().map(|g| (g.name.as_str(), g.parent)).collect();
    assert_eq!(names, [("/admin", None), ("/web", None), ("/web/cache", Some(1))]);
    let tasks: Vec<_> = layout.tasks.iter().map(|task| (task.mm, task.group)).collect();
    assert_eq!(tasks, [(0, Some(2)), (0, Some(2)), (1, Some(0))]);
    assert_eq!((layout.regions[1].exec, layout.regions[0].exec), (true, false));
    assert_eq!(layout.sequences, [0, 0, 0, 0, 2, 2, 2, 2, 2, 0, 1, 2]);
    assert_eq!(layout.phases[9..], ["end"; 3]);
    assert_eq!(workload.job().settings, [(1, Knob::MemoryMax, 8 << 20)]);
    let mut ops = |task| -> Vec<Op> {
        std::iter::repeat_with(|| workload.next(task)).take_while(|op| *op != Op::Done).collect()
    };
    let plain = |ops: Vec<Op>| -> Vec<Op> {
        ops.into_iter().filter(|op| !matches!(op, Op::Mark { .. })).collect()
    };
    let touch = |page| Op::Touch { region: 0, page, write: true };
    let cold = Op::Advise { region: 0, page: 8, nr: 4, advice: MemoryAdvice::Cold };
    let lock = Op::Lock { region: 1 };
    assert_eq!(plain(ops(0)), [touch(0), touch(1), lock, cold, Op::Barrier { id: 1 }]);
    assert_eq!(ops(1), [Op::Mark { phase: 10 }], "a thread without steps");
    let reclaim = Control::Reclaim { group: Some(1), bytes: 4 << 20, swappiness: Some(ANON_ONLY) };
    assert_eq!(
        plain(ops(2)),
        [
            Op::Read { file: 1, off: 0, len: 4096 },
            Op::AdviseFile { file: 1, page: 0, nr: 8, advice: FileAdvice::DontNeed },
            Op::Control(reclaim),
            Op::Barrier { id: 1 },
            Op::Control(Control::Remove { group: 2 }),
        ]
    );
}

#[test]
fn mistakes_in_barrier_sets_are_named() {
    let cases = [
        ("region=2 gen", "region=0 gen", "line 15: 0: is another task's region"),
        ("mix=s:1", "mix=0:1", "line 16: mix: stream 0 is another task's"),
        ("mix=s:1", "mix=x:1", "line 16: mix: stream x is not declared above"),
        ("fadvise 2", "fadvise 3", "line 17: 3: region 3 is not declared above"),
        ("fadvise 2", "mlock 2", "line 17: dontneed: unexpected in `mlock`"),
        ("fadvise 2 dontneed", "mlock 2", "line 17: 2: is read through a descriptor, not mapped"),
        (
            "rmdir /web/cache",
            "rmdir /admin",
            "line 20: /admin: the task that removes it runs in it",
        ),
        ("rmdir /web/cache", "rmdir /", "line 20: /: the root cannot be removed"),
        (
            "background=0",
            "background=1",
            "line 19: barrier: nobody waits for a task in the background",
        ),
        ("shares=a", "shares=a group=/x", "line 11: group: is that of the task it shares"),
        ("task admin", "task a", "line 13: a: is a task's name already"),
        (
            "group=/web/cache",
            "group=web",
            "line 2: web: a group's path is such as /web or /web/cache",
        ),
        ("region lib", "region heap", "line 5: heap: is a region's name already"),
        ("madvise heap cold", "fadvise heap normal", "line 9: heap: has no file behind it"),
        ("base=8 n=4", "base=64", "line 9: base: 64: must be from 0 to 63"),
        (
            "mlock lib",
            "madvise lib dontneed",
            "line 8: dontneed: is for memory; a file has `fadvise`",
        ),
        (
            "group /admin\n",
            "seed 1\npin 0\nsleep 1\n",
            "line 4: task: must stand before everything that is a task's",
        ),
    ];
    for (from, to, message) in cases {
        let text = job_text();
        assert!(text.contains(from), "{from}");
        let found = Job::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert_eq!(found, message, "{from} -> {to}");
    }
}

#[test]
fn every_statement_is_listed_and_every_listed_one_is_known() {
    for (verb, ..) in STATEMENTS {
        let error = Job::parse(verb).unwrap_err().to_string();
        assert!(!error.contains("no such statement"), "{verb}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "([a-z]{0,8}[ =:0-9a-zM.,\n]{0,12}){0,20}") {
        let _ = Job::parse(&text);
    }

    #[test]
    fn damaged_jobs_never_panic(at in 0..TWO_STEPS.len(), junk in "[ -~\n]{0,4}") {
        let mut text = TWO_STEPS.to_owned();
        text.replace_range(at..at + 1, &junk);
        if let Ok(job) = Job::parse(&text) {
            prop_assert!(job.ops() > 0);
        }
    }
}
