//! The quick part of a plan: what a bare `mglru run` makes.

use std::fs;

use crate::workdir::{MOCK, Workdir};

const QUICK: &str = "quick = { seeds = 2, variants = [\"before\", \"after\"] }\n";

/// Has a plan of three variants and three seeds with a quick part of two and two.
fn workdir() -> Workdir {
    let workdir = Workdir::new();
    let plan = MOCK.replace("[\"before\", \"after\"]\n", "[\"before\", \"after\", \"classic\"]\n");
    let quick = plan.replace("seeds = 3\n", &format!("seeds = 3\n{QUICK}"));
    fs::write(workdir.path().join("long.toml"), quick).unwrap();
    workdir
}

fn made(workdir: &Workdir, args: &[&str]) -> String {
    let text = workdir.out(&[&["run", "long.toml", "--out", "o"], args].concat(), 0);
    let first = text.lines().next().unwrap().to_string();
    let last = |from: &str| text.lines().find(|line| line.starts_with(from)).map(str::to_string);
    [Some(first), last("quick"), last("repeat")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_bare_run_makes_the_quick_part_and_says_so() {
    insta::assert_snapshot!(made(&workdir(), &[]), @r"
    mock on mock: 4 records
    quick part of the plan: variants before, after, 2 seeds; --full: all of it
    repeat: mglru run long.toml
    ");
}

#[test]
fn full_goes_on_where_the_quick_part_ended() {
    let workdir = workdir();
    made(&workdir, &[]);
    let quick = workdir.read("o/records.jsonl");
    let output = workdir.run(&["run", "long.toml", "--out", "o", "--full"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("4 records kept"), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("mock on mock: 9 records\n"), "{text}");
    assert!(text.ends_with("repeat: mglru run long.toml --full\n"), "{text}");
    let full = workdir.read("o/records.jsonl");
    assert!(quick.lines().all(|line| full.contains(line)), "the same bytes");
}

#[test]
fn options_take_the_place_of_what_the_quick_part_says() {
    assert!(made(&workdir(), &["--seeds", "3"]).starts_with("mock on mock: 6 records"));
    assert!(made(&workdir(), &["--variant", "before"]).starts_with("mock on mock: 2 records"));
}

#[test]
fn a_quick_part_the_plan_cannot_have_is_refused() {
    let workdir = workdir();
    let refused = |set: &str| workdir.refused(&["run", "long.toml", "--set", set]);
    let message = "mglru: error: long.toml: quick.variants = v9: must be some of the plan's \
                   variants (before, after, classic)\n";
    assert_eq!(refused("quick.variants=[\"v9\"]"), message);
    let message = "mglru: error: long.toml: quick.seeds = 0: must be from 1 to ";
    assert!(refused("quick.seeds=0").starts_with(message));
}
