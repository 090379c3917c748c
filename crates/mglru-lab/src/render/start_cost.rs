//! Cost of a call over the number of groups: a table, and a picture with both axes logarithmic.

use minijinja::value::Serde;
use minijinja::{Environment, context};
use serde::Serialize;

use super::number;
use super::table::{finish, head, new};
use crate::start_cost::{Point, WALKS};

const TEMPLATE: &str = include_str!("start_cost.html");
/// Plotting area, SVG units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 300.0;
/// One colour a line, told apart by most colour-blind readers (Tol's "bright").
const COLOURS: [&str; 3] = ["#4477aa", "#ee6677", "#228833"];

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

/// A line of the picture.
#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    colour: &'static str,
    dots: Vec<[f64; 2]>,
    path: String,
}

/// A mark on an axis.
#[derive(Debug, Serialize)]
struct Tick {
    at: f64,
    label: String,
}

/// Draws the picture as a page.
pub fn start_cost_page(points: &[Point]) -> String {
    let x = Axis::over(points.iter().map(|p| p.groups as f64), WIDTH);
    let y = Axis::over(points.iter().map(|p| p.us), HEIGHT);
    let place = |p: &Point| [x.place(p.groups as f64), rounded(HEIGHT - y.place(p.us))];
    let line = |(&(name, _), colour)| {
        let dots: Vec<[f64; 2]> = points.iter().filter(|p| p.walk == name).map(place).collect();
        let path = dots.iter().map(|[x, y]| format!("{x},{y}")).collect::<Vec<_>>().join(" ");
        Line { name, colour, dots, path }
    };
    let lines: Vec<Line> = WALKS.iter().zip(COLOURS).map(line).collect();
    let xs: Vec<Tick> = groups(points)
        .into_iter()
        .map(|n| Tick { at: x.place(n as f64), label: n.to_string() })
        .collect();
    let ys: Vec<Tick> =
        y.decades().map(|us| Tick { at: HEIGHT - y.place(us), label: number(us) }).collect();
    let asked = points.first().map_or(0, |p| p.asked);
    let mut env = Environment::new();
    env.add_template("start_cost.html", TEMPLATE).expect("the template is fixed");
    let template = env.get_template("start_cost.html").expect("just added");
    let facts = context! {
        lines => Serde(lines), xs => Serde(xs), ys => Serde(ys), asked,
        table => start_cost_table(points),
    };
    template.render(facts).expect("the template knows the picture")
}

/// A logarithmic axis from the decade below the least value to the one above the greatest.
struct Axis {
    low: f64,
    high: f64,
    length: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone, length: f64) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min).max(1e-3);
        let greatest = values.fold(least, f64::max);
        let (low, high) = (least.log10().floor(), greatest.log10().ceil());
        Self { low, high: high.max(low + 1.0), length }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.max(1e-3).log10() - self.low) / (self.high - self.low);
        rounded(share * self.length)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

fn rounded(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
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
    fn equal_costs_lie_level_and_growing_ones_rise() {
        let page = start_cost_page(&points());
        let paths: Vec<&str> = page.lines().filter(|line| line.contains("<polyline")).collect();
        let ys = |line: &str| -> Vec<f64> {
            let dots = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            dots.split(' ').map(|dot| dot.split(',').nth(1).unwrap().parse().unwrap()).collect()
        };
        assert_eq!(ys(paths[0])[0], ys(paths[0])[1]);
        assert!(ys(paths[1])[1] < ys(paths[1])[0], "up is less in SVG");
        assert!(!page.contains("http"), "self-contained");
    }
}
