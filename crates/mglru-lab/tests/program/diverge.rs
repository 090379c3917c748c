//! `mglru diverge`: where two kernels part.

use crate::booted::can_boot;
use crate::desk::Desk;

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

fn write(desk: &Desk) {
    std::fs::write(desk.path().join("parts.toml"), PLAN).unwrap();
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let desk = Desk::new();
    write(&desk);
    for (args, want) in [
        (&["parts.toml", "--on", "pgscam"][..], "--on pgscam: no such field (did you mean pgscan"),
        (&["small.toml", "--backend", "sim"], "small.toml: before: diverge stops booted kernels"),
    ] {
        let told = desk.refused(&[&["diverge"], args].concat());
        assert!(told.starts_with(&format!("mglru: error: {want}")), "{args:?}: {told}");
    }
    let fields = desk.out(&["diverge", "parts.toml", "--fields"], 0);
    assert!(fields.contains("pgsteal") && fields.lines().count() == 16, "{fields}");
}

#[test]
fn one_kernel_alone_is_refused() {
    let desk = Desk::new();
    if !can_boot(&desk) {
        return;
    }
    write(&desk);
    let told = desk.refused(&["diverge", "parts.toml", "--variant", "k6.12"]);
    assert!(told.starts_with("mglru: error: parts.toml: 1 runs; diverge compares two"), "{told}");
}

#[test]
fn generations_and_lists_part_once_memory_is_full() {
    let desk = Desk::new();
    if !can_boot(&desk) {
        return;
    }
    write(&desk);
    let args = ["diverge", "parts.toml", "--out", "page.html", "--format", "json"];
    let found: serde_json::Value = serde_json::from_str(&desk.out(&args, 1)).unwrap();
    let parting = &found["moment"]["parting"];
    let at = |key: &str| parting[key].as_u64().unwrap();
    // 4 MiB hold 1,024 pages, less what else is charged: until then nothing is reclaimed.
    assert!(at("unequal_at") > 800 && at("unequal_at") == at("equal_at") + 1, "{parting}");
    let events = &found["moment"]["events"];
    assert!(events[0].as_str().unwrap().contains("mm_vmscan_"), "{events}");
    assert!(found["moment"]["generations"][0].as_str().unwrap().contains("/job"), "{found}");
    assert!(desk.read("page.html").contains("<svg"));
}
