//! Cost of a call over the number of groups: a table, and a picture with both axes logarithmic.

use serde_json::json;

use super::number;
use super::picture::Picture;
use super::table::{finish, head, new};
use crate::start_cost::{Point, WALKS};

/// Writes a row per number of groups, a column per way of finding them.
pub fn start_cost_table(points: &[Point]) -> String {
    let names: Vec<&str> = WALKS.iter().map(|(name, _)| *name).collect();
    let mut table = new(head(false, "groups", &names));
    for groups in groups(points) {
        let found = |walk: &&str| points.iter().find(|p| p.groups == groups && p.walk == *walk);
        let cells = names.iter().map(|walk| found(walk).map_or_else(String::new, cell));
        table.add_row([groups.to_string()].into_iter().chain(cells).collect::<Vec<_>>());
    }
    format!("processor time of a call and the pages it got\n{}", finish(table))
}

fn cell(point: &Point) -> String {
    format!("{} µs, {} pages", number((point.us * 10.0).round() / 10.0), number(point.got.round()))
}

fn groups(points: &[Point]) -> Vec<usize> {
    let mut all: Vec<usize> = points.iter().map(|p| p.groups).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Draws the picture as a page.
pub fn start_cost_page(points: &[Point]) -> String {
    let asked = points.first().map_or(0, |point| point.asked);
    Picture {
        title: "Cost of starting root reclaim",
        heading: &format!("Root reclaim of {asked} pages, on this host"),
        sentence: &sentence(points),
        how: "Medians of processor time. A call that looks only at the groups it takes pages from \
              costs the same among any number of groups.",
        about: "Processor time of a call over the number of groups",
        table: &start_cost_table(points),
        chart: include_str!("report/start_cost.js"),
        facts: json!({ "points": points, "walks": WALKS.map(|(name, _)| name) }),
    }
    .html()
}

/// Says how much more a call costs among the most groups than among the fewest.
fn sentence(points: &[Point]) -> String {
    let all = groups(points);
    let (Some(fewest), Some(most)) = (all.first(), all.last()) else {
        return "Nothing was measured.".to_string();
    };
    let us = |walk: &str, n: usize| {
        points.iter().find(|p| p.walk == walk && p.groups == n).map(|point| point.us)
    };
    let grown = |(name, _): &(&str, _)| {
        let times = us(name, *most)? / us(name, *fewest)?;
        Some(format!("{} times ({name})", number((times * 10.0).round() / 10.0)))
    };
    let grown: Vec<String> = WALKS.iter().filter_map(grown).collect();
    if fewest == most {
        return format!("A call among {most} groups, for each way of finding them.");
    }
    format!("From {fewest} to {most} groups a call's cost grows {}.", grown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<Point> {
        let point = |walk, groups, us| Point { walk, groups, us, asked: 512, got: 512.0 };
        vec![
            point(WALKS[0].0, 16, 10.0),
            point(WALKS[0].0, 1600, 10.0),
            point(WALKS[1].0, 16, 10.0),
            point(WALKS[1].0, 1600, 1000.0),
        ]
    }

    #[test]
    fn a_row_per_number_of_groups() {
        let table = start_cost_table(&points());
        let rows: Vec<&str> = table.lines().filter(|line| line.contains("µs")).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[1].contains("1600") && rows[1].contains("1000 µs, 512 pages"), "{table}");
    }

    #[test]
    fn the_sentence_tells_costs_that_grow_from_costs_that_do_not() {
        let said = sentence(&points());
        assert!(
            said.ends_with("cost grows 1 times (memcg LRU), 100 times (iterator, 6.1)."),
            "{said}"
        );
        assert!(start_cost_page(&points()).contains("100 times (iterator, 6.1)"));
    }
}
