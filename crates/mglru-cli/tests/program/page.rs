//! The report page in a browser without a window: it draws every chart, says no error, and asks
//! nobody for anything (its own policy forbids that, and a breach is an error of the console).

use std::path::Path;
use std::process::Command;

use crate::workdir::Workdir;

/// Holds the browser's document of a page, and its messages.
struct Seen {
    document: String,
    said: String,
}

fn browse(page: &Path, width: u32) -> Option<Seen> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--disable-background-networking", "--virtual-time-budget=30000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(format!("--window-size={width},2000"))
        .arg(format!("file://{}", page.canonicalize().unwrap().display()))
        .output()
        .ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Seen { document: text(&output.stdout), said: text(&output.stderr) })
}

/// The charts as the browser drew them.
fn drawings(document: &str) -> Vec<&str> {
    let starts = document.split("class=\"marks\" width=\"").skip(1);
    starts.filter_map(|part| part.split("</svg>").next()).collect()
}

/// Their widths, pixels.
fn widths(document: &str) -> Vec<f64> {
    drawings(document).iter().filter_map(|part| part.split('"').next()?.parse().ok()).collect()
}

#[test]
fn a_page_draws_its_charts_alone_and_without_an_error() {
    let workdir = Workdir::new();
    let run = ["run", "quickstart", "--seeds", "2", "--out", "o"];
    let small = ["--set", "workload.operations=150000", "--format", "json"];
    let json = workdir.out(&[&run[..], &small].concat(), 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let page = workdir.path().join("o/report.html");
    let Some(wide) = browse(&page, 1200) else {
        return println!("skipped: needs a browser (apt-get install chromium)");
    };
    let narrow = browse(&page, 500).unwrap();
    for (seen, most) in [(&wide, 1200.0), (&narrow, 500.0)] {
        let errors = seen.said.lines().filter(|line| line.contains("CONSOLE"));
        assert_eq!(errors.count(), 0, "{}", seen.said);
        assert!(seen.document.contains("<body data-drawn=\"6\">"));
        let widths = widths(&seen.document);
        assert!(widths.len() == 6 && widths.iter().all(|width| *width <= most), "{widths:?}");
    }
    let drawn = drawings(&wide.document).concat();
    for comparison in json["comparisons"].as_array().unwrap() {
        let ratio = format!("{:.3} ×", comparison["ratio"].as_f64().unwrap());
        assert!(drawn.contains(&ratio), "{ratio} is not drawn");
    }
    for panel in ["operations / s", "refaults / s", "file, MiB", "dirty, MiB", "youngest"] {
        assert!(drawn.contains(panel), "{panel} is not drawn");
    }
}

#[test]
fn samples_are_kept_beside_the_records_and_a_damaged_file_is_named() {
    let workdir = Workdir::new();
    let args = ["run", "quickstart", "--seeds", "1", "--variant", "after", "--out", "o"];
    workdir.out(&[&args[..], &["--set", "workload.operations=20000"]].concat(), 0);
    let runs = std::fs::read_dir(workdir.path().join("o/runs")).unwrap();
    let kept: Vec<_> = runs.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    std::fs::write(&kept[0], "{").unwrap();
    let error = workdir.refused(&["report", "o"]);
    assert!(error.contains(".samples.json: EOF while parsing"), "{error}");
}

#[test]
fn a_miss_ratio_curve_has_a_sentence_and_a_chart() {
    let workdir = Workdir::new();
    let lines: String = (0..60_000u64).map(|i| format!("{}\n", i * i * 7919 % 5_003)).collect();
    std::fs::write(workdir.path().join("t.trc"), lines).unwrap();
    let all = ["trace", "mrc", "t.trc", "--picture", "curve.html"];
    let said = workdir.out(&[&all[..], &["--policy", "min", "--size", "10%,100%"]].concat(), 0);
    let replayed = ["trace", "replay", "t.trc", "--policy", "lru,min", "--size", "10%,100%"];
    let replayed = workdir.out(&[&replayed[..], &["--format", "json"]].concat(), 0);
    let replayed: serde_json::Value = serde_json::from_str(&replayed).unwrap();
    for result in replayed["results"].as_array().unwrap() {
        let ratio = format!("{:.4}", result["miss_ratio"].as_f64().unwrap());
        let policy = result["policy"].as_str().unwrap();
        let line = |line: &&str| line.contains(policy) && line.contains(&ratio);
        assert!(said.lines().any(|l| line(&l)), "{policy} {ratio}: {said}");
    }
    assert!(said.contains("keeps misses beyond first uses under 1 %"), "{said}");
    for (args, error) in [
        (["trace", "mrc", "t.trc", "--sample", "50%"], "expected a share of the pages up to 12.5%"),
        (["trace", "mrc", "t.trc", "--picture", "no/curve.html"], "no/curve"),
    ] {
        assert!(workdir.refused(&args).contains(error), "{args:?}");
    }
    let Some(seen) = browse(&workdir.path().join("curve.html"), 600) else {
        return println!("skipped: needs a browser (apt-get install chromium)");
    };
    assert!(!seen.said.contains("CONSOLE"), "{}", seen.said);
    assert!(seen.document.contains("<body data-drawn=\"1\">"), "{}", seen.document.len());
    assert!(drawings(&seen.document).concat().contains("enough"));
}

#[test]
fn the_cost_of_a_start_is_drawn_on_a_narrow_page() {
    let workdir = Workdir::new();
    let asked = ["start-cost", "--groups", "16,64", "--calls", "3", "--out", "cost.html"];
    workdir.out(&asked, 0);
    let Some(seen) = browse(&workdir.path().join("cost.html"), 390) else {
        return println!("skipped: needs a browser (apt-get install chromium)");
    };
    assert!(!seen.said.contains("CONSOLE"), "{}", seen.said);
    assert!(seen.document.contains("<body data-drawn=\"1\">"), "{}", seen.document.len());
    assert!(drawings(&seen.document).concat().contains("memcg LRU"));
}

#[test]
fn an_ablation_has_a_chart_of_its_comparisons() {
    let workdir = Workdir::new();
    let asked = ["ablate", "mongodb", "--scale", "1/256", "--seeds", "2", "--mode", "one-in"];
    let said = workdir.out(&[&asked[..], &["--out", "o"]].concat(), 0);
    assert!(said.ends_with("records: o\npage: o/ablation.html\n"), "{said}");
    let page = workdir.read("o/ablation.html");
    assert!(page.contains("\"label\":\"p10 · pgpgin\""), "{}", page.len());
    let Some(seen) = browse(&workdir.path().join("o/ablation.html"), 390) else {
        return println!("skipped: needs a browser (apt-get install chromium)");
    };
    assert!(!seen.said.contains("CONSOLE"), "{}", seen.said);
    assert!(seen.document.contains("<body data-drawn=\"1\">"), "{}", seen.document.len());
    assert!(drawings(&seen.document).concat().contains("p10 · pgpgin"));
}
