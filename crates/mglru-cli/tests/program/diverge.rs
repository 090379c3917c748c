//! `mglru diverge`: where two kernels part.

use crate::booted::can_boot;
use crate::workdir::Workdir;

/// One task reads more than fits, by descriptor.
const PLAN: &str = r#"
name = "parts"
title = "Reads beyond a limit"
variants = ["k6.12", "classic"]
backend = "kernel"
seeds = 1
metrics = ["counters.pgpgin"]
[machine]
memory = "256MiB"
cpus = 1
readahead_kb = 0
[workload]
kind = "job"
text = """
seed 1
set memory.max 4194304
region kind=pread path=/mnt/f0 pages=2048
stream region=0 gen=uniform n=2048 base=0 wr=0
phase main ops=3000 mix=0:1
"""
"#;

fn write(workdir: &Workdir) {
    std::fs::write(workdir.path().join("parts.toml"), PLAN).unwrap();
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let workdir = Workdir::new();
    write(&workdir);
    for (args, want) in [
        (&["parts.toml", "--on", "pgscam"][..], "--on pgscam: no such field (did you mean pgscan"),
        (&["parts.toml", "--picture", "x=a.svg"], "--picture x: no such field"),
        (&["mock.toml"], "mock.toml: before: diverge stops a workload on a booted kernel or"),
        (
            &["small.toml", "--pages", "0:0-9"],
            "--pages: the model does not report pages one by one",
        ),
        (&["small.toml", "--model", "k7.1"], "small.toml: 2 runs; --model goes with one: one"),
        (&["small.toml", "--variant", "after", "--model", "k7.x"], "small.toml: variant"),
    ] {
        let message = workdir.refused(&[&["diverge"], args].concat());
        assert!(message.starts_with(&format!("mglru: error: {want}")), "{args:?}: {message}");
    }
    for (option, value, want) in [
        ("--pages", "0:9-1", "want FILE:FIRST-LAST"),
        ("--picture", "pgscan", "want FIELD=FILE.svg"),
        ("--tolerance", "2%x", "want N, P% or P%+PAGES"),
    ] {
        let message = workdir.refused(&["diverge", "parts.toml", option, value]);
        assert!(message.contains(want), "{option} {value}: {message}");
    }
    let fields = workdir.out(&["diverge", "parts.toml", "--fields"], 0);
    assert!(fields.contains("pgsteal") && fields.lines().count() == 16, "{fields}");
}

#[test]
fn two_models_part_and_one_does_not_part_from_itself() {
    let workdir = Workdir::new();
    let sides = ["--variant", "k6.12", "--variant", "classic"];
    let stdout = workdir.out(&[&["diverge", "small.toml"], &sides[..]].concat(), 1);
    assert!(stdout.contains("first moment: access "), "{stdout}");
    let same = ["--variant", "k7.1", "--model", "twin=k7.1", "--tolerance", "0"];
    let stdout = workdir.out(&[&["diverge", "small.toml"], &same[..]].concat(), 0);
    assert!(stdout.starts_with("no difference up to access "), "{stdout}");
}

#[test]
fn a_kernel_and_the_model_are_two_sides() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    write(&workdir);
    let side = ["diverge", "parts.toml", "--variant", "k6.12", "--model", "k6.12"];
    let near = workdir.out(&side, 0);
    assert!(near.starts_with("no difference up to access "), "{near}");
    // A model is never the same to the page, and another policy is further off.
    let other = ["diverge", "parts.toml", "--variant", "k6.12", "--model", "m=random"];
    let exact = ["--tolerance", "0"];
    let stdout = workdir.out(&[&other[..], &exact].concat(), 1);
    assert!(stdout.contains(" on k6.12, ") && stdout.contains(" on m ("), "{stdout}");
    assert!(workdir.out(&[&side[..], &exact].concat(), 1).contains("first moment: access "));
}

#[test]
fn one_kernel_alone_is_refused() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    write(&workdir);
    let message = workdir.refused(&["diverge", "parts.toml", "--variant", "k6.12"]);
    assert!(
        message.starts_with("mglru: error: parts.toml: 1 runs; diverge compares two"),
        "{message}"
    );
}

#[test]
fn generations_and_lists_part_once_memory_is_full() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    write(&workdir);
    let curves = "pgscan=curves.svg";
    let args = ["diverge", "parts.toml", "--out", "page.html", "--format", "json"];
    let args = [&args[..], &["--picture", curves, "--pages", "0:0-1023"]].concat();
    let found: serde_json::Value = serde_json::from_str(&workdir.out(&args, 1)).unwrap();
    let parting = &found["moment"]["parting"];
    let at = |key: &str| parting[key].as_u64().unwrap();
    // 4 MiB hold 1,024 pages, less what else is charged: until then nothing is reclaimed.
    assert!(at("unequal_at") > 800 && at("unequal_at") == at("equal_at") + 1, "{parting}");
    let events = &found["moment"]["events"];
    assert!(events[0].as_str().unwrap().contains("mm_vmscan_"), "{events}");
    assert!(found["moment"]["generations"][0].as_str().unwrap().contains("/job"), "{found}");
    assert!(workdir.read("page.html").contains("<svg"));
    assert!(workdir.read("curves.svg").starts_with("<svg "));
    let most = found["series"]["sides"][0].as_array().unwrap().iter().map(|row| row[0].as_u64());
    let most = most.max().flatten().unwrap();
    assert!((300..=1024).contains(&most), "half of the file counts: {most}");
}

#[test]
fn a_sysctl_alone_is_found_where_it_first_matters() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    let job = "region kind=pread path=/mnt/f0 pages=2048\nregion kind=anon pages=2048\n\
        stream region=0 gen=uniform n=2048 base=0 wr=0\n\
        stream region=1 gen=uniform n=2048 base=0 wr=500\n\
        phase main ops=6000 mix=0:1,1:1";
    let (head, rest) = PLAN.split_once("region kind").unwrap();
    let (_, tail) = rest.split_once("mix=0:1").unwrap();
    let head = head.replace("readahead_kb = 0", "readahead_kb = 0\nswap.kind = \"zram\"");
    std::fs::write(workdir.path().join("parts.toml"), format!("{head}{job}{tail}")).unwrap();
    let sides = ["--variant", "k6.12+swappiness=0", "--variant", "k6.12+swappiness=200"];
    let stdout = workdir.out(&[&["diverge", "parts.toml"], &sides[..]].concat(), 1);
    assert!(stdout.contains("first moment: access ") && stdout.contains("| anon "), "{stdout}");
}
