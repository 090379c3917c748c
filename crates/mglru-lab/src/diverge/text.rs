//! The result as text: where each field parts, and what happened around the first moment.

use std::fmt::Write;

use super::fields::FIELDS;
use super::pages::Alone;
use super::search::{Found, Moment};
use crate::render::plain;

/// Ranges of pages that are shown of a file and side.
const RANGES: usize = 8;
/// Trace events shown before and after the first that differs.
const BEFORE: usize = 4;
const AFTER: usize = 10;

/// Writes the text; `names` are the sides'.
pub fn text(found: &Found, names: [&str; 2]) -> String {
    let mut out = String::new();
    if found.partings.is_empty() {
        let _ = writeln!(out, "no difference up to access {}", found.accesses);
        return out;
    }
    out += &partings(found, names);
    if let Some(moment) = &found.moment {
        out += &around(moment, names);
    }
    out
}

fn partings(found: &Found, names: [&str; 2]) -> String {
    let row = |parting: &super::Parting| {
        let about = FIELDS.iter().find(|field| field.name == parting.field);
        vec![
            parting.field.to_string(),
            parting.equal_at.to_string(),
            parting.unequal_at.to_string(),
            parting.values[0].to_string(),
            parting.values[1].to_string(),
            about.map_or("", |field| field.about).to_string(),
        ]
    };
    let head = ["field", "equal at access", "differs at", names[0], names[1], "what it is"];
    plain(&head, found.partings.iter().map(row))
}

fn around(moment: &Moment, names: [&str; 2]) -> String {
    let parting = &moment.parting;
    let mut out = format!(
        "first moment: access {}: {} {} on {}, {} on {} ({} and {} ms after the start)\n",
        parting.unequal_at,
        parting.field,
        parting.values[0],
        names[0],
        parting.values[1],
        names[1],
        moment.at_us[0] / 1000,
        moment.at_us[1] / 1000,
    );
    for (side, name) in names.iter().enumerate() {
        for alone in moment.pages.iter().filter(|alone| !alone.ranges[side].is_empty()) {
            let _ = writeln!(out, "cached on {name} alone: {}", pages(alone, side));
        }
    }
    for (name, generations) in names.iter().zip(&moment.generations) {
        let _ = write!(out, "generations on {name}:\n{}", indented(generations.lines()));
    }
    let lines = moment.events.each_ref().map(|text| text.lines().collect::<Vec<_>>());
    let first = first_unequal(&lines[0], &lines[1]);
    for (name, lines) in names.iter().zip(&lines) {
        let shown = lines.iter().skip(first.saturating_sub(BEFORE)).take(BEFORE + AFTER);
        let (from, count) = (parting.equal_at, lines.len());
        let _ = writeln!(out, "trace events on {name} since access {from} ({count}):");
        out += &indented(shown.map(|line| shortened(line)));
    }
    out
}

fn pages(alone: &Alone, side: usize) -> String {
    let ranges = &alone.ranges[side];
    let count: u64 = ranges.iter().map(|(first, last)| last - first + 1).sum();
    let shown = ranges.iter().take(RANGES).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let shown = shown.collect::<Vec<_>>().join(" ");
    let more = if ranges.len() > RANGES { " …" } else { "" };
    format!("{count} pages of file {}: {shown}{more}", alone.file)
}

fn indented<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| format!("  {}\n", line.trim_end())).collect()
}

/// The line from its time stamp on: the task is the workload's.
fn shortened(line: &str) -> &str {
    let is_stamp = |word: &str| {
        let number = word.strip_suffix(':').unwrap_or("");
        number.contains('.') && number.parse::<f64>().is_ok()
    };
    let stamp = line.split_whitespace().find(|word| is_stamp(word));
    stamp.and_then(|word| line.find(word)).map_or(line, |at| &line[at..])
}

/// The first line at which two lists of events differ but for task, processor, time and addresses.
fn first_unequal(a: &[&str], b: &[&str]) -> usize {
    let same = a.iter().zip(b).take_while(|(a, b)| event(a) == event(b));
    same.count()
}

/// Returns the part of a line that says what happened: its words without addresses and frame
/// numbers.
fn event(line: &str) -> Vec<&str> {
    let text = line.split_once(": ").map_or(line, |(_, text)| text);
    let is_address =
        |word: &&str| ["page=", "pfn=", "folio=", "0x"].iter().any(|start| word.starts_with(start));
    text.split_whitespace().filter(|word| !is_address(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diverge::Parting;
    use crate::diverge::window::Series;

    #[test]
    fn events_are_compared_without_time_and_place() {
        let a = "init-76 [000] ..... 3.214: mm_lru_insertion: folio=0xff pfn=0x1 lru=2 flags=D";
        let b = "init-80 [001] ..... 9.000: mm_lru_insertion: folio=0xee pfn=0x2 lru=2 flags=D";
        let c = b.replace("lru=2", "lru=3");
        assert_eq!((first_unequal(&[a, a], &[b, b]), first_unequal(&[a, a], &[b, &c])), (2, 1));
    }

    #[test]
    fn the_text_names_field_moment_pages_and_events() {
        let parting = Parting { field: "pgscan", equal_at: 4, unequal_at: 5, values: [7, 9] };
        let moment = Moment {
            parting,
            at_us: [1_500, 2_500],
            pages: vec![Alone { file: 3, ranges: [vec![(1, 4), (9, 9)], vec![]] }],
            generations: ["memcg 1 /a\n".to_string(), String::new()],
            events: ["x: one\n".to_string(), "y: two\n".to_string()],
        };
        let series = Series::default();
        let mut found =
            Found { accesses: 5, passes: 2, series, partings: vec![parting], moment: Some(moment) };
        let shown = text(&found, ["old", "new"]);
        assert_eq!(shortened("a-1 [0] ..... 3.214: x: y"), "3.214: x: y");
        let want = "access 5: pgscan 7 on old, 9 on new (1 and 2 ms after the start)";
        assert!(shown.contains(want), "{shown}");
        assert!(shown.contains("cached on old alone: 5 pages of file 3: 1-4 9\n"), "{shown}");
        assert!(shown.contains("events on new since access 4 (1):\n  y: two\n"), "{shown}");
        (found.partings, found.moment) = (Vec::new(), None);
        assert_eq!(text(&found, ["old", "new"]), "no difference up to access 5\n");
    }
}
