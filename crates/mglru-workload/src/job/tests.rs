use proptest::prelude::*;

use super::*;
use crate::op::Control;

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
    assert_eq!(workload.job().settings, [(Knob::MemoryMax, 64 << 20)]);
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
fn hash_tells_strings_apart() {
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
        ("seed 7", "sede 7", "line 2: sede: no such statement"),
        ("memory.max", "memory.mx", "line 3: memory.mx: no such setting of a group"),
        ("pages=16", "pages=0", "line 4: pages: 0: must be from 1 to 4294967295"),
        ("kind=anon", "kind=heap", "line 4: kind: `heap` is no kind of region"),
        ("path=/f ", "", "line 5: path: missing"),
        ("n=16", "n=0", "line 6: n: 0: must be from 1 to 4294967295"),
        ("start=14", "begin=14", "line 6: begin: no such key of `stream`"),
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
