//! `mglru measure`: it runs, and says what it cannot run.

use std::process::Command;

fn measure(args: &[&str]) -> (Option<i32>, String, String) {
    let mut mglru = Command::new(env!("CARGO_BIN_EXE_mglru"));
    let output = mglru.arg("measure").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_string();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn lacking() -> bool {
    let lack = mglru_pager::probe().into_iter().find(|fact| fact.required && !fact.ok);
    lack.is_some_and(|fact| {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        true
    })
}

#[test]
fn sections_are_measured_and_the_status_is_the_verdict() {
    if lacking() {
        return;
    }
    let dir = tempfile::tempdir_in(".").unwrap();
    let place = dir.path().to_str().unwrap();
    let sections = ["hit", "fault", "umap", "aging", "budget"];
    let quick = [&sections[..], &["--quick", "--format", "json", "--dir", place]].concat();
    let (status, text, _) = measure(&quick);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let mut named: Vec<&str> = findings.iter().map(|f| f["section"].as_str().unwrap()).collect();
    named.dedup();
    assert_eq!(named, sections);
    let missed = findings.iter().any(|finding| finding["met"] == false);
    assert_eq!(status, Some(i32::from(missed)));
    assert!(findings.iter().all(|f| f["spread"]["median"].as_f64().unwrap() > 0.0), "{text}");
}

#[test]
fn what_cannot_be_measured_says_what_is_missing() {
    if lacking() {
        return;
    }
    let (status, text, error) = measure(&["policy"]);
    assert_eq!((status, text.as_str()), (Some(2), ""));
    assert!(error.ends_with("name some with --trace FILE"), "{error}");
    let mut mglru = Command::new(env!("CARGO_BIN_EXE_mglru"));
    let output = mglru.args(["measure", "fio"]).env("PATH", "").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error, "mglru: error: fio: not found (apt-get install fio)\n");
}
