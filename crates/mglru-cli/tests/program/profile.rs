//! Instructions of a booted kernel by function: counted without changing the run, the same in each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value as Json;

use crate::booted::{can_boot, plan};
use crate::workdir::Workdir;

const RUN: [&str; 6] = ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12"];

fn run(workdir: &Workdir, args: &[&str]) -> Json {
    workdir.out(&[&RUN[..], args].concat(), 0);
    let out = args.last().unwrap();
    serde_json::from_str(&workdir.read(&format!("{out}/records.jsonl"))).unwrap()
}

/// The one file of a run folder's that ends so.
fn profile(workdir: &Workdir, out: &str) -> String {
    let files = fs::read_dir(workdir.path().join(out).join("runs")).unwrap().flatten();
    let mut files = files.map(|file| file.path());
    let file = files.find(|path| path.to_string_lossy().ends_with(".profile.json")).unwrap();
    fs::read_to_string(file).unwrap()
}

#[test]
fn a_profile_is_the_same_each_time_and_leaves_the_run_as_it_is() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let mut plain = run(&workdir, &["--out", "plain"]);
    let mut counted = run(&workdir, &["--profile", "--out", "a"]);
    run(&workdir, &["--profile", "--out", "b"]);
    let text = profile(&workdir, "a");
    assert!(text == profile(&workdir, "b"), "two profiles of one run differ");
    for record in [&mut plain, &mut counted] {
        record["plan_hash"] = Json::Null;
        record["custom"]["repeat"]["flags"] = Json::Null;
    }
    assert_eq!(plain, counted, "to count changes the run");
    let phase = &serde_json::from_str::<Json>(&text).unwrap()["phases"][0];
    let reclaimed = plain["counters"]["pgsteal_file"].as_u64().unwrap();
    assert_eq!((phase["reclaimed"].as_u64(), &phase["measured"]), (Some(reclaimed), &true.into()));
    let cost = |name: &str| phase["functions"][name].as_u64().unwrap_or(0);
    for name in ["shrink_folio_list", "folio_referenced_one", "page_vma_mapped_walk"] {
        assert!(cost(name) > 10 * reclaimed, "{name}: {} for {reclaimed} pages", cost(name));
    }
    assert!(phase["user"].as_u64().unwrap() > 100_000, "{text}");

    let table = workdir.out(&["profile", "a", "--against", "b", "--top", "3"], 0);
    assert!(table.starts_with("instructions for each page reclaimed\nA k6.12: kernel "), "{table}");
    assert_eq!(table.matches("|          0 |").count(), 5, "no function differs: {table}");
    let lines = workdir.out(&["profile", "a", "--format", "collapsed"], 0);
    assert!(lines.contains("k6.12;kernel;shrink_folio_list "), "{lines}");
    assert!(workdir.out(&["profile", "a", "--format", "svg"], 0).starts_with("<svg "));
    let message = workdir.refused(&["profile", "plain"]);
    assert_eq!(
        message,
        "mglru: error: plain: k6.12 seed 1 has no profile; run it with --profile\n"
    );
    let message = workdir.refused(&["profile", "a", "--variant", "x"]);
    assert_eq!(message, "mglru: error: --variant x: not in a (it has: k6.12)\n");
}

#[test]
fn a_qemu_that_has_no_plugins_is_one_line() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exec echo old\n\
                  echo 'qemu-system-x86_64: -plugin: invalid option' >&2\nexit 1\n";
    let program = workdir.path().join("qemu-system-x86_64");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut mglru = Command::new(env!("CARGO_BIN_EXE_mglru"));
    mglru.env("PATH", format!("{}:{path}", workdir.path().display())).current_dir(workdir.path());
    let output = mglru.args(RUN).args(["--profile", "--out", "o"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), stderr.matches('\n').count()), (Some(2), 1), "{stderr}");
    let want = "--profile: this QEMU cannot count instructions by function: qemu-system-x86_64: \
                -plugin: invalid option";
    assert!(stderr.contains(want), "{stderr}");
}

#[test]
fn counting_needs_virtual_time_and_a_booted_kernel() {
    let workdir = Workdir::new();
    plan(&workdir);
    let message = workdir.refused(&[&RUN[..], &["--profile", "--host-time"]].concat());
    let want = "mglru: error: booted.toml: kernel.profile = true: instructions are counted in";
    assert!(message.starts_with(want), "{message}");
    let message = workdir.refused(&["run", "small.toml", "--profile", "--backend", "sim"]);
    assert!(message.contains("--host-time and --profile go with --backend kernel"), "{message}");
    let message = workdir.refused(&["profile", "gone"]);
    assert!(message.starts_with("mglru: error: gone: "), "{message}");
}
