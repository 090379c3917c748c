//! Help, lists, completions and `show`: what the program says about itself.

use crate::workdir::Workdir;

const COMMANDS: [&str; 10] = [
    "run",
    "check",
    "kernel",
    "ablate",
    "list",
    "show",
    "compare",
    "report",
    "trace info",
    "trace replay",
];

#[test]
fn every_command_teaches_by_example() {
    let workdir = Workdir::new();
    let help = workdir.out(&["--help"], 0);
    assert!(help.contains("mglru run quickstart") && help.contains("Exit status"), "{help}");
    for command in COMMANDS {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = workdir.out(&args, 0);
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains(&format!("  mglru {command} ")), "{help}");
    }
    assert_eq!(workdir.out(&["--version"], 0), format!("mglru {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_commands_and_options() {
    let workdir = Workdir::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = workdir.out(&["completions", shell], 0);
        for word in ["run", "ablate", "replay", "seeds", "variants"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn lists_hold_what_the_program_knows() {
    let workdir = Workdir::new();
    let cases: [(&str, &[&str]); 5] = [
        (
            "plans",
            &[
                "quickstart",
                "mongodb",
                "fio-zipf",
                "fio-zipf-advised",
                "fio-uniform",
                "chrome-node",
                "mysql",
                "kernel-build",
                "memcached-bulk",
                "postmark",
                "fsmark",
                "dd",
                "android-launch",
                "android-heavy",
                "trace",
            ],
        ),
        ("variants", &["classic", "before", "after", "v5", "k7.1", "k7.2", "k7.3", "lru", "min"]),
        (
            "switches",
            &["p01", "p14", "prefault", "drain_entry", "goal_stop", "floor", "refs_model"],
        ),
        (
            "workloads",
            &[
                "touch",
                "ycsb",
                "wiredtiger",
                "fio",
                "chrome-node",
                "sysbench",
                "kernel-build",
                "memcached",
                "postmark",
                "fsmark",
                "dd",
                "android",
                "job",
                "trace",
            ],
        ),
        ("counters", &["pgpgin", "pgscan_direct", "workingset_refault_file", "oom_kill"]),
    ];
    for (what, names) in cases {
        let text = workdir.out(&["list", what], 0);
        let listed: Vec<&str> =
            text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        let absent: Vec<&&str> = names.iter().filter(|name| !listed.contains(name)).collect();
        assert!(absent.is_empty(), "{what} lacks {absent:?}:\n{text}");
        assert!(text.lines().all(|line| line.split_whitespace().count() > 1), "{text}");
        let mut once = listed.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), listed.len(), "{what}: {text}");
        let json: serde_json::Value =
            serde_json::from_str(&workdir.out(&["list", what, "--json"], 0)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), listed.len());
    }
}

#[test]
fn show_resolves_a_plan() {
    let workdir = Workdir::new();
    let text = workdir.out(&["show", "mongodb", "--scale", "1/64", "--set", "machine.cpus=8"], 0);
    for part in ["scale 0.015625", "  machine.cpus = 8", "variants\n", "passes in", "expect: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
