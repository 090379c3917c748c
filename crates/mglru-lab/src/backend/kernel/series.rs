//! Samples in time as a table: columns once, then rows.

use std::collections::BTreeMap;

use mglru_guest::report::Sample;
use serde_json::{Value as Json, json};

/// More rows than this are thinned out evenly.
const ROWS: usize = 1000;

/// Returns one table for each group: seconds, and the figures of the group then.
pub fn of(samples: &[(u64, BTreeMap<String, Sample>)]) -> Json {
    let step = samples.len().div_ceil(ROWS).max(1);
    let mut groups: BTreeMap<&str, Vec<Json>> = BTreeMap::new();
    for (at_us, sample) in samples.iter().step_by(step) {
        for (group, sample) in sample {
            groups.entry(group).or_default().push(row(*at_us, sample));
        }
    }
    let cols = ["t", "current", "anon", "file", "dirty", "writeback", "pgscan", "pgsteal", "swap"];
    json!({ "cols": cols, "rows": groups })
}

fn row(at_us: u64, s: &Sample) -> Json {
    let seconds = (at_us as f64 / 1e4).round() / 100.0;
    json!([seconds, s.current, s.anon, s.file, s.dirty, s.writeback, s.pgscan, s.pgsteal, s.swap])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_are_thinned_and_short_ones_whole() {
        let sample = BTreeMap::from([("/a".to_string(), Sample { anon: 7, ..Sample::default() })]);
        let samples: Vec<_> = (0..2500).map(|at| (at * 10_000, sample.clone())).collect();
        let series = of(&samples);
        let rows = series["rows"]["/a"].as_array().unwrap();
        assert_eq!(
            (rows.len(), rows[1][0].as_f64(), rows[1][2].as_u64()),
            (834, Some(0.03), Some(7))
        );
        assert_eq!(of(&samples[..3])["rows"]["/a"].as_array().unwrap().len(), 3);
    }
}
