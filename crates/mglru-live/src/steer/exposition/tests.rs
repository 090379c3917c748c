//! The text is what a scraper of the format takes.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::steer::sample::{Distances, Faults, Generation, Tier};

/// A line of the format: name, labels, value.
fn parse(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let name = regex::Regex::new(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (\S+)$").unwrap();
    let label =
        regex::Regex::new(r#"([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(,|$)"#).unwrap();
    let parts = name.captures(line).unwrap_or_else(|| panic!("not a line: {line}"));
    let found = label.captures_iter(&parts[2]);
    let labels: BTreeMap<_, _> = found.map(|c| (c[1].to_string(), c[2].to_string())).collect();
    let written: usize = label.find_iter(&parts[2]).map(|found| found.len()).sum();
    assert_eq!(written, parts[2].len(), "labels of {line}");
    (parts[1].to_string(), labels, parts[3].parse().unwrap())
}

fn sample(group: &str) -> Sample {
    Sample {
        group: group.to_string(),
        stat: [("pgsteal".to_string(), 3)].into(),
        max: None,
        faults: vec![("major".into(), Faults { count: 7, ns: 2_500, classes: vec![1, 2, 4] })],
        generations: vec![
            Generation { seq: 4, anon: 10, file: 0 },
            Generation { seq: 5, anon: 20, file: 1 },
        ],
        tiers: vec![Tier { kind: "anon".into(), tier: 0, refaulted: 1, total: 4 }],
        distances: Distances { resident: 8192, major: 7, classes: vec![(4096, 2), (8192, 1)] },
        unmanaged: Some(
            [("total", 9), ("peak", 11), ("brk", 9)].map(|(k, n)| (k.into(), n)).into(),
        )
        .filter(|_| group == "/"),
        ..Sample::default()
    }
}

#[test]
fn every_line_is_of_the_format_and_every_metric_declared_once() {
    let text = exposition(&[sample("/"), sample("/we\"ird\\")]);
    assert!(text.ends_with('\n'));
    let mut declared = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, kind) = head.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind));
            assert!(declared.insert(name.to_string()), "{name} declared twice");
        } else if !line.starts_with("# HELP ") {
            let (name, labels, value) = parse(line);
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family = base.filter(|base| declared.contains(*base)).unwrap_or(&name).to_string();
            assert!(declared.contains(&family) && value.is_finite(), "{line}");
            assert!(seen.insert((name, labels)), "twice: {line}");
        }
    }
}

#[test]
fn histograms_add_up() {
    let text = exposition(&[sample("/")]);
    let value = |name: &str, le: Option<&str>| {
        let wanted = |line: &&str| {
            line.starts_with(name) && le.is_none_or(|le| line.contains(&format!("le=\"{le}\"")))
        };
        parse(text.lines().find(wanted).unwrap()).2
    };
    let bucket = |le| value("mglru_fault_seconds_bucket", Some(le));
    assert_eq!([bucket("0.000001"), bucket("0.000002"), bucket("+Inf")], [1.0, 3.0, 7.0]);
    assert_eq!(value("mglru_fault_seconds_sum", None), 2.5e-6);
    assert_eq!(value("mglru_fault_seconds_count", None), 7.0);
    assert_eq!(value("mglru_refault_distance_bytes_bucket", Some("8192")), 3.0);
    assert_eq!(value("mglru_tier_refault_ratio", None), 0.25);
    assert_eq!(value("mglru_evicted_bytes_total", None), 12288.0);
    let unmanaged = text.lines().filter(|line| line.starts_with("mglru_memory_unmanaged_bytes"));
    let right = [r#"mglru_memory_unmanaged_bytes{reason="brk"} 9"#];
    assert_eq!(unmanaged.collect::<Vec<_>>(), right);
    assert!(text.contains("mglru_generation_pages{group=\"/\",gen=\"0\",type=\"anon\"} 20\n"));
    assert!(!text.contains("\nmglru_memory_max_bytes{"), "no limit, no value");
}

/// Every metric that the dashboard asks for is served, with the labels it asks by.
#[test]
fn the_dashboard_asks_for_what_is_served() {
    let text = include_str!("../../../../../contrib/grafana/mglru.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    let served = exposition(&[Sample { max: Some(1), ..sample("/") }]);
    let metric = regex::Regex::new(r"\bmglru_[a-z0-9_]+").unwrap();
    let mut asked = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(panel["id"].is_u64() && panel["gridPos"]["w"].is_u64(), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            let expr = target["expr"].as_str().unwrap();
            let names = metric.find_iter(expr).map(|found| found.as_str());
            let count = names.inspect(|name| asked.extend([name.to_string()])).count();
            assert_eq!(count, 1, "{expr}");
        }
    }
    for name in &asked {
        assert!(served.contains(&format!("\n{name}{{")), "{name} is not served");
    }
    let declared = served.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let unseen: Vec<&str> = declared
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !asked.iter().any(|asked| asked.starts_with(name)))
        .collect();
    assert!(unseen.is_empty(), "no panel shows {unseen:?}");
}
