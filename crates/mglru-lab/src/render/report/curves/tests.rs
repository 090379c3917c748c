//! Tests of curves.

use indexmap::IndexMap;

use super::*;
use crate::record::example;

/// A run of two seconds: 1 MiB of file a look, a page scanned each ten milliseconds.
fn kept(looks: u64) -> Series {
    let every = 10_000_000;
    let all = |f: &dyn Fn(u64) -> u64| (0..looks).map(f).collect::<Vec<u64>>();
    let columns = IndexMap::from([
        ("file".to_string(), all(&|_| 1 << 20)),
        ("pgscan".to_string(), all(&|at| at)),
    ]);
    let group = GroupSeries {
        columns,
        generations: (0..looks).map(|_| vec![[4, 0, 1, 2], [5, 0, 3, 4]]).collect(),
        refaulted: vec![[[1, 2, 0, 0]; 2]; looks as usize],
        judged: vec![[[10, 20, 0, 0]; 2]; looks as usize],
        limits: vec![[0, 1]; looks as usize],
    };
    let mut series = Series::default();
    series.at_ns = all(&|at| at * every);
    series.ops = all(&|at| 5 * at);
    series.counters.insert("oom_kill".to_string(), all(&|at| u64::from(at > 100)));
    series.groups.insert("/a".to_string(), group);
    series
}

fn curve(looks: u64) -> Curve {
    Curve::new(&example("after", 1, 1.0), Some(kept(looks))).unwrap()
}

#[test]
fn rates_are_per_second_and_sizes_in_mib() {
    let rows = curve(200).rows();
    let of = |panel: &str| rows.iter().filter(|row| row.p == panel).collect::<Vec<_>>();
    assert!(of("operations / s").iter().all(|row| row.y == 500.0), "{rows:?}");
    assert!(of("scanned, pages / s").iter().all(|row| row.y == 100.0));
    assert!(of("file, MiB").iter().all(|row| row.y == 1.0));
    assert_eq!((of("file, MiB").len(), of("swap, MiB").len()), (100, 0));
}

#[test]
fn the_youngest_generation_has_rank_0() {
    let heat = curve(3).heat();
    let youngest: Vec<_> = heat.iter().filter(|row| row["rank"] == 0).collect();
    assert_eq!(youngest.len(), 4, "two spans between looks, two types");
    assert!(youngest.iter().all(|row| row["pages"] == if row["type"] == "anon" { 3 } else { 4 }));
}

#[test]
fn generations_are_those_of_the_group_that_holds_pages() {
    let mut kept = kept(3);
    let mut above = kept.groups["/a"].clone();
    above.generations.iter_mut().for_each(|rows| rows.iter_mut().for_each(|row| row[2..].fill(0)));
    above.columns["pgscan"].iter_mut().for_each(|all| *all *= 2);
    kept.groups.insert("/".to_string(), above);
    let curve = Curve::new(&example("after", 1, 1.0), Some(kept)).unwrap();
    assert!(curve.heat().iter().any(|row| row["pages"] == 3));
}

#[test]
fn a_series_without_tiers_has_none_to_draw() {
    let mut kept = kept(3);
    kept.groups["/a"].limits.clear();
    let curve = Curve::new(&example("after", 1, 1.0), Some(kept)).unwrap();
    assert_eq!(curve.tiers(), Vec::<Json>::new());
    assert!(!curve.heat().is_empty());
}

#[test]
fn tiers_are_those_of_the_last_look() {
    let tiers = curve(3).tiers();
    assert_eq!(tiers.len(), 4, "tiers with nothing judged are left out: {tiers:?}");
    let evicted = |kind: &str| {
        tiers.iter().filter(|row| row["type"] == kind && row["evicted"] == true).count()
    };
    assert_eq!((evicted("anon"), evicted("file")), (1, 2));
}

#[test]
fn an_event_stands_where_its_counter_rose() {
    let events = curve(200).events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (events[0]["kind"].as_str(), events[0]["t"].as_f64()),
        (Some("oom_kill"), Some(1.02))
    );
}

#[test]
fn a_booted_kernels_samples_are_drawn_too() {
    let mut record = example("k6.12", 1, 1.0);
    let rows = serde_json::json!({ "/a": [[0.0, 1048576, 0], [0.5, 2097152, 8]] });
    let table = serde_json::json!({ "cols": ["t", "file", "pgscan"], "rows": rows });
    record.custom.insert("series".to_string(), table);
    let rows = Curve::new(&record, None).unwrap().rows();
    let scanned: Vec<f64> =
        rows.iter().filter(|row| row.p == "scanned, pages / s").map(|row| row.y).collect();
    assert_eq!(scanned, [16.0]);
    assert!(Curve::new(&example("a", 1, 1.0), None).is_none());
}
