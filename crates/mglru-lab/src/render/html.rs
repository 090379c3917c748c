//! The self-contained page: the same tables, and one chart of ratios with their intervals.

use minijinja::value::Serde;
use minijinja::{Environment, context};

use super::{interval, number, ratio};
use crate::compare::Comparison;
use crate::report::Report;

const TEMPLATE: &str = include_str!("report.html");

/// Width of the chart's plotting area, SVG units.
const WIDTH: f64 = 480.0;

/// The page for a report.
pub fn html(report: &Report) -> String {
    let mut env = Environment::new();
    env.add_filter("number", |x: f64| number(x));
    env.add_filter("ratio", |x: Option<f64>| ratio(x));
    env.add_filter("interval", |x: Option<Vec<f64>>, n: usize| {
        interval(x.and_then(|x| x.try_into().ok()), n)
    });
    env.add_template("report.html", TEMPLATE).expect("the template is fixed");
    let template = env.get_template("report.html").expect("just added");
    let (bars, zero) = chart(&report.comparisons);
    let notes = report.remarks();
    let notes: Vec<String> = notes.lines().map(str::to_string).collect();
    let facts = context! { report => Serde(report), notes, bars => Serde(bars), zero };
    template.render(facts).expect("the template knows the report")
}

/// One line of the chart, in SVG units.
#[derive(Clone, Debug, serde::Serialize)]
struct Bar {
    label: String,
    low: f64,
    at: f64,
    high: f64,
}

/// Ratios on a common logarithmic axis, and where 1 is on it.
fn chart(list: &[Comparison]) -> (Vec<Bar>, f64) {
    let found = |c: &Comparison| c.ratio.map(|r| (r, c.ci95.unwrap_or([r, r])));
    let ends = list.iter().filter_map(found).flat_map(|(r, ci)| [r, ci[0], ci[1]]);
    let reach = ends.map(|x| x.ln().abs()).filter(|x| x.is_finite()).fold(0.1, f64::max);
    let place = |x: f64| {
        let share = (x.ln() / reach).clamp(-1.0, 1.0) / 2.0 + 0.5;
        (share * WIDTH * 10.0).round() / 10.0
    };
    let bar = |c: &Comparison| {
        let (r, [low, high]) = found(c)?;
        let label = format!("{} {} {}", c.metric, c.variant, c.point);
        Some(Bar { label, low: place(low), at: place(r), high: place(high) })
    };
    (list.iter().filter_map(bar).collect(), place(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::record::example;

    #[test]
    fn the_page_holds_every_comparison_and_escapes_names() {
        let text =
            "name=\"t\"\ntitle=\"t\"\nvariants=[\"before\",\"a<b\"]\nmetrics=[\"ops_per_s\"]";
        let plan = Plan::parse("t", text, &[]).unwrap();
        let records = vec![example("before", 1, 1.0), example("a<b", 1, 2.0)];
        let page = html(&Report::new(&plan, "sim", records));
        assert!(page.contains("a&lt;b") && !page.contains("a<b"), "{page}");
        assert!(page.contains("<circle cx=\"480") && page.contains("2.000"), "{page}");
        assert!(!page.contains("http"), "self-contained");
    }
}
