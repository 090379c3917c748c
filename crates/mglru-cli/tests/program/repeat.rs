//! Virtual time: one plan, booted twice, to the same byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value as Json;

use crate::booted::{can_boot, plan};
use crate::workdir::Workdir;

/// How often a pair is booted whose guests differ because something packed was built anew.
const ATTEMPTS: u32 = 3;

#[test]
fn a_booted_kernel_repeats_to_the_byte_on_a_busy_host() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let run = |out: &str| {
        let args = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12"];
        workdir.out(&[&args[..], &["--out", out]].concat(), 0);
        fs::read(workdir.path().join(out).join("records.jsonl")).unwrap()
    };
    let first = repeated(run);
    let record: Json = serde_json::from_slice(&first).unwrap();
    let custom = &record["custom"];
    assert_eq!((&custom["repeatable"], &custom["boot_s"]), (&true.into(), &().into()));
    let flags = custom["repeat"]["flags"].as_str().unwrap();
    assert!(flags.contains("-icount shift=1,sleep=off") && !flags.contains("-drive"), "{flags}");
    // All the disk is taken before the work begins: what is left is what was asked for.
    let bytes = |name: &str| custom["memory"][name].as_u64().unwrap();
    assert!(bytes("total") > bytes("disk") && bytes("disk") > 64 << 20, "{custom}");
    assert!(bytes("available") < bytes("asked"), "{custom}");
    assert!(record["counters"]["pgsteal_direct"].as_u64().unwrap() > 100, "{record}");
}

/// Checks that two runs of one guest are equal, and returns one.
fn repeated(run: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    for at in 0..ATTEMPTS {
        let first = run(&format!("a{at}"));
        let second = beside_others(|| run(&format!("b{at}")));
        if first == second {
            return first;
        }
        let differing = differing(&first, &second);
        let is_other = differing.iter().any(|line| line.starts_with("/custom/repeat/"));
        assert!(is_other, "two runs of one guest differ:\n{}", differing.join("\n"));
        println!("the two guests differ, once more: {}", differing.join("; "));
    }
    panic!("the guest was another one in each run: something rebuilds it");
}

/// The fields that differ, a line each.
fn differing(first: &[u8], second: &[u8]) -> Vec<String> {
    let fields = |bytes: &[u8]| {
        let mut fields = BTreeMap::new();
        flatten("", &serde_json::from_slice(bytes).unwrap(), &mut fields);
        fields
    };
    let (first, second) = (fields(first), fields(second));
    let names: BTreeSet<_> = first.keys().chain(second.keys()).collect();
    let line = |name: &&String| format!("{name}: {:?} {:?}", first.get(*name), second.get(*name));
    names.iter().filter(|name| first.get(**name) != second.get(**name)).map(line).collect()
}

fn flatten(name: &str, value: &Json, fields: &mut BTreeMap<String, String>) {
    let inner: Vec<(String, &Json)> = match value {
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Json::Array(list) => list.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => {
            fields.insert(name.to_string(), value.to_string());
            return;
        }
    };
    inner.iter().for_each(|(key, value)| flatten(&format!("{name}/{key}"), value, fields));
}

#[test]
fn fields_that_differ_are_named() {
    let (a, b) = (r#"{"x": {"y": [1, 2]}, "z": 3}"#, r#"{"x": {"y": [1, 4]}}"#);
    let lines = differing(a.as_bytes(), b.as_bytes());
    assert_eq!(lines, [r#"/x/y/1: Some("2") Some("4")"#, r#"/z: Some("3") None"#]);
}

/// The result of `run` while every processor has something else to do.
fn beside_others<T>(run: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = run();
        over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn virtual_time_needs_translation() {
    let workdir = Workdir::new();
    plan(&workdir);
    let args = ["run", "booted.toml", "--backend", "kernel", "--set"];
    let args = [&args[..], &["kernel.accel=kvm", "--set", "kernel.clock=virtual"]].concat();
    let message = workdir.refused(&args);
    let want = "booted.toml: kernel.accel = kvm: virtual time counts instructions";
    assert!(message.starts_with(&format!("mglru: error: {want}")), "{message}");
    assert!(workdir.refused(&["run", "booted.toml", "--host-time", "--backend", "sim"]).contains(
        "--backend sim: --kernel, --modules, --append, --host-time and --profile go with"
    ));
}
