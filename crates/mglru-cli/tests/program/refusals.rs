//! Bad input: one line that names file, key or option, exit status 2, nothing on stdout and nothing
//! left behind.

use std::fs;

use crate::workdir::Workdir;

/// Lists mistakes of a plan and its options, and how the line about each begins.
const MISTAKES: &[(&str, &str)] = &[
    (
        "mock.toml --scale 2",
        "invalid value '2' for '--scale <F>': must be above 0 and at most 1, \
 such as 0.25 or 1/64",
    ),
    (
        "mock.toml --scale 0",
        "invalid value '0' for '--scale <F>': must be above 0 and at most 1, \
 such as 0.25 or 1/64",
    ),
    (
        "mock.toml --scale -1",
        "invalid value '-1' for '--scale <F>': must be above 0 and at most 1, \
 such as 0.25 or 1/64",
    ),
    (
        "mock.toml --scale nan",
        "invalid value 'nan' for '--scale <F>': must be above 0 and at most 1, \
 such as 0.25 or 1/64",
    ),
    (
        "mock.toml --scale inf",
        "invalid value 'inf' for '--scale <F>': must be above 0 and at most 1, \
 such as 0.25 or 1/64",
    ),
    (
        "mock.toml --scale 1/0",
        "invalid value '1/0' for '--scale <F>': must be above 0 and at most 1, \
 such as 0.25 or 1/64",
    ),
    ("mock.toml --seeds 0", "invalid value '0' for '--seeds <N>': 0 is not in 1..=10000"),
    ("mock.toml --seeds -3", "invalid value '-3' for '--seeds <N>': invalid digit found in string"),
    (
        "mock.toml --seeds 10001",
        "invalid value '10001' for '--seeds <N>': 10001 is not in 1..=10000",
    ),
    ("mock.toml --jobs 0", "invalid value '0' for '--jobs <N>': 0 is not in 1..=1024"),
    ("mock.toml --skin mmtests2012 --format json", "--skin goes with --format table only"),
    (
        "mock.toml --set workload.opps=1",
        "mock.toml: workload.opps: unknown key (did you mean ops, ops_per_s?)",
    ),
    (
        "mock.toml --set nonsense",
        "invalid value 'nonsense' for '--set <KEY=VALUE>': expected KEY=VALUE",
    ),
    (
        "small.toml --set workload.tasks=many",
        "small.toml: workload.tasks = \"many\": invalid type: string \"many\", expected u32",
    ),
    (
        "small.toml --set machine.memory=true",
        "small.toml: machine.memory: invalid type: boolean `true`, expected a size such as \
             4096, 64MiB, 10GiB or max",
    ),
    (
        "small.toml --set groups./touch.memory.max=lots",
        "small.toml: groups./touch.memory.max = \"lots\": `lots`: expected a size such as \
             4096, 64MiB, 10GiB or max",
    ),
    ("small.toml --set reclaim.swappiness=300", "small.toml: reclaim.swappiness: unknown key"),
    (
        "small.toml --set groups./touch.memory.low=1GiB",
        "small.toml: groups./touch.memory.low = 1GiB: more than memory.max (4MiB)",
    ),
    (
        "small.toml --set groups./touch.memory.max=1GiB",
        "small.toml: groups./touch.memory.max = 1GiB: must be from 4KiB to 64MiB",
    ),
    (
        "small.toml --set groups./touch.memory.swap.max=1MiB",
        "small.toml: groups./touch.memory.swap.max = 1MiB: there is no swap (swap.kind = none)",
    ),
    (
        "small.toml --set groups./tuch.memory.max=1MiB",
        "small.toml: groups./tuch: the workload has no such group (it has: /touch)",
    ),
    (
        "small.toml --set kernel.clok=host",
        "small.toml: kernel.clok: unknown key (did you mean clock?)",
    ),
    ("small.toml --set kernel.timeout_s=0", "small.toml: kernel.timeout_s = 0: must be from 1 to "),
    (
        "small.toml --set machine.swap.ratio=4",
        "small.toml: machine.swap.ratio = set: only swap.kind = zram compresses",
    ),
    ("mock.toml --variant afer", "mock.toml: variant = afer: unknown (did you mean after?)"),
    (
        "small.toml --variant befor+p10",
        "small.toml: variant = befor: unknown (did you mean before?)",
    ),
    (
        "small.toml --variant after+floor=v9",
        "small.toml: variant after+floor=v9: floor = v9: must be none, v2, v4, v5 or v7",
    ),
    ("small.toml --variant lru+p10", "small.toml: variant = lru+p10: a flat cache has no switches"),
    (
        "fio-zipf --variant min",
        "plan fio-zipf: variant = min: is the optimum of a whole run, but this workload has \
             phases",
    ),
    (
        "small.toml --variant lru --set workload.engine=anon",
        "small.toml: variant = lru: a flat cache holds pages of files only, this workload has \
             others",
    ),
    ("small.toml --base classic", "--base classic: does not run (variants: before, after)"),
    ("mock.toml --backend simm", "--backend simm: unknown (did you mean sim?)"),
    ("missing.toml", "missing.toml: No such file or directory (os error 2)"),
    ("mongdb", "no plan named mongdb (did you mean mongodb?)"),
    ("broken.toml", "broken.toml:2:9: "),
];

#[test]
fn every_mistake_is_one_line_and_status_2() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("broken.toml"), "name = \"t\"\ntitle = = 3\n").unwrap();
    for (args, want) in MISTAKES {
        let args: Vec<&str> = ["run"].into_iter().chain(args.split(' ')).collect();
        let message = workdir.refused(&args);
        assert!(message.starts_with(&format!("mglru: error: {want}")), "{args:?}\n{message}{want}");
        assert_eq!(message.matches('\n').count(), 1, "{args:?}: {message}");
    }
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
}

#[test]
fn other_commands_refuse_alike() {
    let workdir = Workdir::new();
    let cases: [(&[&str], &str); 6] = [
        (&["frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (&[], "needs a command; see mglru --help"),
        (&["report", "nowhere"], "nowhere: No such file or directory (os error 2)"),
        (&["compare", "a", "b"], "a: No such file or directory (os error 2)"),
        (&["show", "mongdb"], "no plan named mongdb (did you mean mongodb?)"),
        (&["ablate", "mock.toml", "--variant", "after"], "--variant after: ablate makes its own"),
    ];
    for (args, want) in cases {
        let message = workdir.refused(args);
        assert!(message.starts_with(&format!("mglru: error: {want}")), "{args:?}: {message}");
        assert_eq!(message.matches('\n').count(), 1, "{args:?}: {message}");
    }
}

/// The same traces through the plan, through `info` and through `replay`.
#[test]
fn damaged_traces_are_refused_by_every_command() {
    let workdir = Workdir::new();
    let whole: String = (0..5000).map(|page| format!("l {:#x} 1\n", page << 12)).collect();
    let packed = zstd::encode_all(whole.as_bytes(), 3).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(workdir.path().join(name), bytes).unwrap();
    write("cut.addr.zst", &packed[..packed.len() / 2]);
    write("noise.addr.zst", b"\x28\xb5\x2f\xfd this is no frame");
    write("letters.addr", b"l 0x1000 1\nl zzz 1\n");
    write("empty.addr", b"");
    write("half.u32", &[1, 0, 0, 0, 2, 0]);
    for name in
        ["none.addr", "cut.addr.zst", "noise.addr.zst", "letters.addr", "empty.addr", "half.u32"]
    {
        let set = format!("workload.path={name}");
        let commands: [&[&str]; 3] = [
            &["run", "trace", "--set", &set],
            &["trace", "info", name],
            &["trace", "replay", name, "--policy", "lru,min", "--size", "1"],
        ];
        for args in commands {
            let message = workdir.refused(args);
            assert!(message.contains(name), "{args:?}: {message}");
            assert_eq!(message.matches('\n').count(), 1, "{args:?}: {message}");
        }
    }
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
}

#[test]
fn a_cache_is_given_once_and_is_a_size() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("t.addr"), "l 0x1000 1\n").unwrap();
    let refused = |set: &str| {
        let path = ["run", "trace", "--set", "workload.path=t.addr", "--set", set];
        workdir.refused(&path)
    };
    let twice = refused("groups./trace.memory.max=1MiB");
    assert!(twice.contains("workload.cache: contradicts groups./trace.memory.max"), "{twice}");
    for bad in ["0", "101%", "-1", "big", "[1.5]"] {
        let message = refused(&format!("workload.cache={bad}"));
        assert!(message.contains("workload.cache = "), "{bad}: {message}");
        assert!(message.contains("expected "), "{bad}: {message}");
    }
}
