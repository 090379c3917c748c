//! `mglru help keys`: every key of a plan, from the reference page that is written from the types
//! which read plans.

use std::ffi::OsString;

use serde_json::{Value as Json, json};

use super::Answer;
use mglru_error::{Error, did_you_mean};
use mglru_lab::render;

const PAGE: &str = include_str!("../../../docs/reference/keys.md");
const COLUMNS: [&str; 5] = ["key", "takes", "unit", "default", "meaning"];

/// Asks for every kind of workload.
const WORKLOAD: &str = "workload";

/// Some keys that belong together.
struct Section {
    title: String,
    rows: Vec<[String; 5]>,
}

impl Section {
    /// Names it to `mglru help keys`: `machine.swap`, `published`, `fio`.
    fn name(&self) -> &str {
        let quoted = self.title.split(['`', '"']).nth(1).unwrap_or(&self.title);
        let kind = self.kind();
        let group = self.title.starts_with("`[groups.").then_some("groups");
        kind.or(group).unwrap_or(quoted.trim_matches(['[', ']']))
    }

    /// The kind of workload that it is about.
    fn kind(&self) -> Option<&str> {
        self.title.strip_prefix("`kind = \"").and_then(|t| t.split('"').next())
    }

    /// `workload` is every kind.
    fn is_asked(&self, name: &str) -> bool {
        self.name() == name || name == WORKLOAD && self.kind().is_some()
    }
}

/// Turns `help keys [SECTION…]` into `list keys [SECTION…]`: clap's own `help` knows commands only.
pub(super) fn asked(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.len() > 2 && args[1] == "help" && args[2] == "keys" {
        args[1] = "list".into();
    }
    args
}

/// Lists the keys of the named sections, or of all.
pub(super) fn run(names: &[String], as_json: bool) -> Answer {
    let all = sections(PAGE);
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|s| s.is_asked(name))) {
        let known: Vec<&str> = all.iter().map(Section::name).chain([WORKLOAD]).collect();
        let near = match did_you_mean(unknown, known.iter().copied()) {
            none if none.is_empty() => format!(" (known: {})", known.join(", ")),
            near => near,
        };
        return Err(Error::Request(format!("keys {unknown}: no section of a plan{near}")));
    }
    let wanted =
        |section: &Section| names.is_empty() || names.iter().any(|name| section.is_asked(name));
    let wanted: Vec<Section> = all.into_iter().filter(wanted).collect();
    let text = if as_json { document(&wanted) } else { text(&wanted) };
    Ok((text, 0))
}

fn text(sections: &[Section]) -> String {
    let plain = |section: &Section| {
        let rows = section.rows.iter().map(|row| row.to_vec());
        format!("{}\n{}", section.title.replace('`', ""), render::plain(&COLUMNS, rows))
    };
    sections.iter().map(plain).collect::<Vec<_>>().join("\n")
}

fn document(sections: &[Section]) -> String {
    let row = |row: &[String; 5]| {
        let [key, takes, unit, default, meaning] = row;
        json!({ "key": key, "takes": takes, "unit": unit, "default": default, "meaning": meaning })
    };
    let section = |section: &Section| {
        let rows: Vec<Json> = section.rows.iter().map(row).collect();
        json!({ "section": section.name(), "keys": rows })
    };
    render::json(&sections.iter().map(section).collect::<Vec<_>>())
}

/// Reads the page's headings and the rows of its tables.
fn sections(page: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    for part in page.split("\n## ").skip(1) {
        let mut lines = part.lines();
        let title = lines.next().unwrap_or_default().to_string();
        let rows = lines.filter(|line| line.starts_with("| `")).filter_map(row).collect();
        sections.push(Section { title, rows });
    }
    sections
}

/// A bar within a cell is written `\|`; code is marked only within the meaning.
fn row(line: &str) -> Option<[String; 5]> {
    let line = line.strip_prefix("| ")?.strip_suffix(" |")?.replace("\\|", "\0");
    let cells: Vec<String> = line.split(" | ").map(|c| c.trim().replace('\0', "|")).collect();
    let [key, takes, unit, default, meaning] = <[String; 5]>::try_from(cells).ok()?;
    let [key, takes, unit, default] = [key, takes, unit, default].map(|cell| cell.replace('`', ""));
    Some([key, takes, unit, default, meaning])
}

#[cfg(test)]
mod tests;
