//! Results as text: tables for people, JSON for programs, one HTML page for both. Pure functions.

mod ablation;
mod ablation_page;
mod compared;
mod diverge;
mod measured;
mod mmtests2012;
mod mrc;
mod page;
mod picture;
mod profile;
mod report;
mod sides;
mod start_cost;
mod table;
mod what_if;

pub use ablation::{ablation, mechanisms};
pub use ablation_page::{ablation_page, mechanisms_page};
pub use compared::{letter, mmtests};
pub use diverge::{diverge_page, diverge_picture};
pub use measured::measured;
pub use mmtests2012::mmtests2012;
pub use mrc::{mrc_page, mrc_sentence, mrc_table};
pub use page::page;
pub use profile::{collapsed, profile_picture, profile_table};
pub use report::{Beside, html};
pub use sides::sides;
pub use start_cost::{start_cost_page, start_cost_table};
pub use table::{comparisons, list, misses, plain, report};
pub use what_if::{what_if_page, what_if_table};

use serde::Serialize;

/// Writes a value as one JSON document with a final newline.
pub fn json<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string(value).expect("results have string keys only");
    text.push('\n');
    text
}

/// Counts things by their name.
fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Writes a figure for people: whole numbers whole, others with five significant digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        x if value.fract() == 0.0 && x < 1e15 => 0,
        x => (4 - x.log10().floor() as i32).clamp(0, 12) as usize,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Writes a ratio for people, `–` when there is none.
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), |x| format!("{x:.3}"))
}

/// Writes an interval for people; a single pair has none and says so.
pub fn interval(value: Option<[f64; 2]>, n: usize) -> String {
    match value {
        Some([low, high]) => format!("[{low:.3}, {high:.3}]"),
        None if n == 1 => "n=1".to_string(),
        None => "–".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(164636727.0), "164636727");
        assert_eq!(number(63050.38), "63050");
        assert_eq!(number(1.02), "1.02");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(0.0123456), "0.012346");
        assert_eq!(interval(None, 1), "n=1");
        assert_eq!(interval(Some([0.9, 1.1]), 6), "[0.900, 1.100]");
    }
}
