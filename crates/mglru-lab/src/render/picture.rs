//! A page with one chart: a sentence, the chart, a table. It needs no network.

use minijinja::{Environment, context};
use serde_json::Value as Json;

use super::report::{HEAD, STYLE, scripts};

const TEMPLATE: &str = include_str!("report/picture.html");
const SHARED: &str = include_str!("report/picture.js");

/// Holds the parts of the page.
pub(super) struct Picture<'a> {
    /// Names the page in the browser's tab.
    pub title: &'a str,
    /// Stands above the sentence.
    pub heading: &'a str,
    /// Says what was found.
    pub sentence: &'a str,
    /// Says how to read the chart.
    pub how: &'a str,
    /// Names the chart for people who do not see it.
    pub about: &'a str,
    /// Holds the figures as a table.
    pub table: &'a str,
    /// Holds the script that draws `facts`; `picture.js` says what it finds.
    pub chart: &'static str,
    /// Holds what the script draws.
    pub facts: Json,
}

impl Picture<'_> {
    /// Writes the page.
    pub fn html(self) -> String {
        let Self { title, heading, sentence, how, about, table, chart, facts } = self;
        let scripts = scripts(&[SHARED, chart]);
        let facts = facts.to_string().replace('<', "\\u003c");
        let mut env = Environment::new();
        env.add_template("picture.html", TEMPLATE).expect("the template is fixed");
        let page = context! {
            head => HEAD, style => STYLE,
            title, heading, sentence, how, about, table, scripts, facts,
        };
        let template = env.get_template("picture.html").expect("just added");
        template.render(page).expect("the template knows the parts")
    }
}
