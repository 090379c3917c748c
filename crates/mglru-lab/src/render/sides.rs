//! Several backends beside each other.

use super::table::{finish, head, new};
use crate::sides::Sides;

/// Writes one line for each question: the answers, and whether they are the same.
pub fn sides(sides: &Sides) -> String {
    let backends: Vec<&str> = sides.backends.iter().map(String::as_str).collect();
    let mut table = new(head(false, "row", &[&backends[..], &["agree"]].concat()));
    for row in &sides.rows {
        let agree = match row.agree {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let answers = row.answers.iter().cloned();
        let cells = std::iter::once(row.row.clone()).chain(answers).chain([agree.to_string()]);
        table.add_row(cells.collect::<Vec<String>>());
    }
    let judged: Vec<bool> = sides.rows.iter().filter_map(|row| row.agree).collect();
    let (same, of) = (judged.iter().filter(|agree| **agree).count(), judged.len());
    let kernel = kernel(sides).map(|release| format!(" (Linux {release})")).unwrap_or_default();
    let title = format!("{} on {}{kernel}\n", sides.plan, backends.join(" and "));
    let notes = sides.reports.iter().map(|report| report.remarks());
    let title = title + &notes.collect::<String>();
    format!("{title}{}\n{same} of {of} answers agree\n", finish(table))
}

/// The booted kernel's release.
fn kernel(sides: &Sides) -> Option<&str> {
    let records = sides.reports.iter().flat_map(|report| &report.records);
    records.into_iter().find_map(|record| record.custom.get("kernel")?.as_str())
}
