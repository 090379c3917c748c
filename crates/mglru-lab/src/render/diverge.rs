//! Two kernels over the accesses of one load: a curve a field, both sides in it.

use minijinja::value::Serde;
use minijinja::{Environment, context};
use serde::Serialize;

use super::number;
use crate::diverge::{FIELDS, Found, text};

const TEMPLATE: &str = include_str!("diverge.html");
const SVG: &str = include_str!("diverge.svg");
/// Plotting area, SVG units.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 150.0;

/// A field's picture.
#[derive(Debug, Serialize)]
struct Picture {
    name: &'static str,
    about: &'static str,
    /// The lines of both sides.
    paths: [String; 2],
    /// The largest value, for the axis.
    most: String,
    /// Where the sides part.
    parts: Option<f64>,
    ends: [String; 2],
}

/// Writes the page: the text, and the fields that differ, earliest first.
pub fn diverge_page(found: &Found, names: [&str; 2], title: &str) -> String {
    let pictures: Vec<Picture> =
        found.partings.iter().filter_map(|parting| picture(found, parting.field)).collect();
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE).expect("the template is valid");
    let page = environment.get_template("page.html").expect("it was added");
    let comparison = text(found, names);
    let context = context! {
        title, comparison,
        names => names.map(String::from),
        pictures => Serde(pictures),
        accesses => number(found.accesses as f64),
        width => WIDTH, height => HEIGHT,
    };
    page.render(context).expect("the template uses what it is given")
}

/// Draws the curves of one field alone, as a file that a document shows.
pub fn diverge_picture(found: &Found, names: [&str; 2], field: &str) -> String {
    let mut environment = Environment::new();
    // The name's ending has text escaped.
    environment.add_template("picture.html", SVG).expect("the template is valid");
    let template = environment.get_template("picture.html").expect("it was added");
    let context = context! {
        names => names.map(String::from),
        p => Serde(picture(found, field)),
        accesses => number(found.accesses as f64),
        width => WIDTH, height => HEIGHT,
    };
    template.render(context).expect("the template uses what it is given")
}

fn picture(found: &Found, name: &str) -> Option<Picture> {
    let at = FIELDS.iter().position(|field| field.name == name)?;
    let series = &found.series;
    let column = |side: usize| series.sides[side].iter().map(move |row| row[at]);
    let most = column(0).chain(column(1)).max()?.max(1) as f64;
    let last = *series.accesses.last()? as f64;
    let x = |access: u64| access as f64 / last * WIDTH;
    let path = |side: usize| {
        let dots = series.accesses.iter().zip(column(side));
        let dots = dots.map(|(access, value)| {
            format!("{:.1},{:.1}", x(*access), HEIGHT - value as f64 / most * HEIGHT)
        });
        dots.collect::<Vec<_>>().join(" ")
    };
    let parting = found.partings.iter().find(|parting| parting.field == name);
    let end = |side: usize| number(column(side).next_back().unwrap_or(0) as f64);
    Some(Picture {
        name: FIELDS[at].name,
        about: FIELDS[at].about,
        paths: [path(0), path(1)],
        most: number(most),
        parts: parting.map(|parting| x(parting.unequal_at)),
        ends: [end(0), end(1)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diverge::{Parting, Series};

    #[test]
    fn a_page_draws_each_field_that_differs_and_escapes_names() {
        let row = |n: u64| [n; FIELDS.len()];
        let parting = Parting { field: "pgscan", equal_at: 10, unequal_at: 20, values: [2, 4] };
        let found = Found {
            accesses: 20,
            passes: 1,
            series: Series {
                accesses: vec![10, 20],
                sides: [vec![row(1), row(2)], vec![row(1), row(4)]],
            },
            partings: vec![parting],
            moment: None,
        };
        let page = diverge_page(&found, ["<old>", "new"], "t");
        assert!(page.contains("points=\"260.0,112.5 520.0,75.0\""), "{page}");
        assert!(page.contains("points=\"260.0,112.5 520.0,0.0\"") && page.contains("pgscan"));
        assert!(!page.contains("<old>") && page.contains("&lt;old&gt;"));
        let svg = diverge_picture(&found, ["<old>", "new"], "pgscan");
        assert!(svg.contains("points=\"260.0,112.5 520.0,0.0\"") && svg.starts_with("<svg "));
        assert!(svg.contains("&lt;old&gt;") && svg.contains("prefers-color-scheme: dark"));
        assert!(!page.contains("http://") && !page.contains("https://"), "nothing is fetched");
    }
}
