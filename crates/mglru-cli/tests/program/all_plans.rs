//! `mglru run all`: every plan that is judged, on one page.

use std::fs;

use crate::workdir::{MOCK, Workdir};

/// Copies in `./plans` count instead of the plans compiled in: each with results written in it, and
/// one of them with a change that is too small.
fn workdir() -> (Workdir, Vec<String>) {
    let workdir = Workdir::new();
    let listed: serde_json::Value =
        serde_json::from_str(&workdir.out(&["list", "plans", "--json"], 0)).unwrap();
    let names = listed.as_array().unwrap().iter().map(|plan| plan["name"].as_str().unwrap());
    let names: Vec<String> = names.map(str::to_owned).collect();
    fs::create_dir_all(workdir.path().join("plans")).unwrap();
    for name in &names {
        let text = MOCK.replacen("\"mock\"", &format!("{name:?}\ngap = \"Too slow a disk.\""), 1);
        let text = match name.as_str() {
            "quickstart" | "read-scan" | "trace" => {
                text[..text.find("[[published]]").unwrap()].to_owned()
            }
            "mysql" => text.replace("after = 1.25", "after = 1.01"),
            _ => text,
        };
        fs::write(workdir.path().join(format!("plans/{name}.toml")), text).unwrap();
    }
    (workdir, names)
}

#[test]
fn every_judged_plan_is_on_the_page() {
    let (workdir, names) = workdir();
    let page = workdir.out(&["run", "all", "--out", "o"], 1);
    for name in &names {
        let rows = page.lines().filter(|line| line.starts_with(&format!("| {name} "))).count();
        let judged = !matches!(name.as_str(), "quickstart" | "read-scan" | "trace");
        assert_eq!(rows, usize::from(judged), "{name}: {page}");
        assert_eq!(workdir.path().join("o").join(name).exists(), judged, "{name}");
    }
    assert_eq!(page.matches("| missed ").count(), 1, "{page}");
    let cause = page.split("### mysql").nth(1).unwrap();
    assert!(cause.contains("1.010 of published 1.200") && cause.contains("Too slow a disk."));
    assert_eq!(page, workdir.out(&["run", "all", "--out", "p"], 1), "the page repeats");
}

#[test]
fn options_for_one_plan_are_refused() {
    let (workdir, _) = workdir();
    for (args, option) in [
        (["--variant", "after"], "--variant"),
        (["--base", "after"], "--base"),
        (["--set", "scale=1"], "--set"),
        (["--scale", "1/2"], "--scale"),
        (["--format", "html"], "--format html"),
        (["--skin", "mmtests2012"], "--skin"),
    ] {
        let message = workdir.refused(&["run", "all", args[0], args[1]]);
        assert_eq!(message, format!("mglru: error: {option}: not with `run all`\n"));
    }
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
}
