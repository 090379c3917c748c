//! Says what more memory would have spared a program: a table, a sentence, a page with a picture.

use mglru_live::steer::sample::Distances;
use mglru_live::steer::top;
use mglru_live::steer::what_if::{Saving, saving};
use serde_json::json;

use super::picture::Picture;
use super::table::plain;

/// Points of the curve between its ends.
const POINTS: u32 = 120;

const METHOD: &str = "\
Told from refault distances: how many pages that are away were evicted after a page that came back.
Assumes that pages leave in the order of their last use (the stack property of LRU), that pages get
the same share of the memory as now, and that the program would have done the same.
";

/// Writes a line about the group, a row for each factor, then how the figures come about.
pub fn what_if_table(group: &str, distances: &Distances, savings: &[Saving]) -> String {
    format!("{}\n{}{METHOD}", head(group, distances), rows(savings))
}

fn head(group: &str, distances: &Distances) -> String {
    let resident = top::bytes(distances.resident);
    format!("{group}: {resident} in memory, {} major faults so far", distances.major)
}

fn rows(savings: &[Saving]) -> String {
    let cells = |saving: &Saving| {
        let Saving { factor, more_bytes, spared, percent } = saving;
        let more = top::bytes(*more_bytes);
        vec![format!("{factor}×"), more, spared.to_string(), format!("{percent:.1} %")]
    };
    let names = ["memory", "more by", "major faults spared", "of all"];
    plain(&names, savings.iter().map(cells))
}

/// Writes the page: the table's figures as a curve from the memory of now to the largest factor.
pub fn what_if_page(group: &str, distances: &Distances, savings: &[Saving]) -> String {
    let most = savings.iter().map(|saving| saving.factor).fold(1.0, f64::max);
    let factor = |at: u32| 1.0 + (most - 1.0) * f64::from(at) / f64::from(POINTS);
    let curve: Vec<Saving> = (0..=POINTS).map(|at| saving(distances, factor(at))).collect();
    Picture {
        title: "What more memory would have spared",
        heading: &head(group, distances),
        sentence: &sentence(savings),
        how: METHOD,
        about: "Share of major faults that more memory would have spared",
        table: &rows(savings),
        chart: include_str!("report/what_if.js"),
        facts: json!({ "resident": distances.resident, "curve": curve, "asked": savings }),
    }
    .html()
}

/// Says what the least asked factor with the most faults spared would have brought.
fn sentence(savings: &[Saving]) -> String {
    let better =
        |a: &&Saving, b: &&Saving| a.spared.cmp(&b.spared).then(b.factor.total_cmp(&a.factor));
    let best = savings.iter().max_by(better);
    match best {
        None => "No size was asked for.".to_string(),
        Some(Saving { spared: 0, .. }) => {
            "More memory would have spared no major fault.".to_string()
        }
        Some(Saving { factor, more_bytes, percent, .. }) => format!(
            "{factor} times the memory ({} more) would have spared {percent:.0} % of major faults.",
            top::bytes(*more_bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances() -> Distances {
        Distances { resident: 4 << 20, major: 1000, classes: vec![(1 << 20, 100), (2 << 20, 200)] }
    }

    #[test]
    fn the_sentence_names_the_least_factor_that_spares_most() {
        let savings = [4.0, 1.25, 1.5].map(|factor| saving(&distances(), factor));
        assert!(sentence(&savings).starts_with("1.5 times the memory (2.0M more)"));
        let none = [saving(&Distances { classes: Vec::new(), ..distances() }, 2.0)];
        assert_eq!(sentence(&none), "More memory would have spared no major fault.");
    }

    #[test]
    fn the_page_has_the_curve_and_the_table() {
        let savings = [saving(&distances(), 2.0)];
        let page = what_if_page("/web", &distances(), &savings);
        assert!(page.contains("web: 4.0M in memory, 1000 major faults so far"), "{}", page.len());
        assert!(page.contains("\"percent\":30.0") && page.contains("2×"), "{}", page.len());
    }
}
