//! Citations: `spec §5.3` and the like must name a heading of a document in `docs/`, and
//! `document = "002"` of a plan a row of the table of source documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::Finding;

/// The sign that a citation begins with.
const SIGN: char = '\u{a7}';
/// Documents that may be cited, by the word before the sign.
const CITED: [&str; 3] = ["spec", "experiments", "pager"];
/// Names what a bare sign cites where nothing was named before.
const DEFAULT: &str = "spec";

/// Lists what may be cited.
#[derive(Debug, Default)]
pub struct Library {
    sections: BTreeMap<&'static str, BTreeSet<String>>,
    documents: BTreeSet<String>,
}

impl Library {
    /// Reads the headings of all documents; one that is missing has none.
    pub fn read(root: &Path) -> Self {
        let text = |name| fs::read_to_string(page(root, name)).unwrap_or_default();
        let sections = CITED.map(|name| (name, sections(&text(name))));
        Self { sections: sections.into(), documents: documents(&text("experiments")) }
    }

    /// Reports each citation of a file that resolves to nothing.
    pub fn check(&self, path: &Path, text: &str) -> Vec<Finding> {
        let own = own_name(path);
        let mut cited = own.unwrap_or(DEFAULT);
        let mut findings = Vec::new();
        let mut above = "";
        for (at, line) in text.lines().enumerate() {
            cited = own.unwrap_or(cited);
            let mut problems = self.unresolved(above, line, &mut cited);
            problems.extend(self.unknown_document(line));
            findings.extend(problems.into_iter().map(|p| Finding::new(at + 1, p)));
            above = line;
        }
        findings
    }

    /// Looks up each sign of a line; `cited` is the document that a bare sign means.
    fn unresolved(&self, above: &str, line: &str, cited: &mut &'static str) -> Vec<String> {
        let mut problems = Vec::new();
        for (at, _) in line.match_indices(SIGN) {
            let section = number(&line[at + SIGN.len_utf8()..]);
            match named(above, &line[..at]) {
                Named::Document(name) => *cited = name,
                Named::Unknown(word) => {
                    problems.push(format!("{word} {SIGN}{section}: no such document"));
                    continue;
                }
                Named::Nothing => {}
            }
            if !section.is_empty() && !self.holds(cited, &section) {
                problems.push(format!("{cited} {SIGN}{section}: no section"));
            }
        }
        problems
    }

    fn holds(&self, document: &str, section: &str) -> bool {
        self.sections.get(document).is_some_and(|known| known.contains(section))
    }

    fn unknown_document(&self, line: &str) -> Option<String> {
        let given = line.split_once("document = \"")?.1.split_once('"')?.0;
        let digits = given.len() == 3 && given.bytes().all(|b| b.is_ascii_digit());
        (digits && !self.documents.contains(given))
            .then(|| format!("document {given}: no such source document"))
    }
}

fn page(root: &Path, name: &str) -> std::path::PathBuf {
    root.join("docs").join(name).with_extension("md")
}

/// The document that a page is, if it is one: its own bare signs mean itself.
fn own_name(path: &Path) -> Option<&'static str> {
    let in_docs = path.parent()?.file_name()? == "docs";
    let stem = path.file_stem()?.to_str()?;
    CITED.into_iter().find(|name| in_docs && *name == stem)
}

/// Returns what stands before a sign.
enum Named {
    Document(&'static str),
    Unknown(String),
    Nothing,
}

/// Documents that are not in `docs/`; any other word before a sign is prose.
const STRANGE: [&str; 4] = ["design", "style", "facts", "interfaces"];

/// The word before a sign may end the line above.
fn named(above: &str, before: &str) -> Named {
    let begins = before.chars().all(|c| c.is_whitespace() || "/!#*|".contains(c));
    let before = if begins { above } else { before }.trim_end();
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase();
    match CITED.into_iter().find(|name| *name == word) {
        Some(name) => Named::Document(name),
        None if STRANGE.contains(&word.as_str()) => Named::Unknown(word),
        None => Named::Nothing,
    }
}

/// The section that a text begins with: `5.3` of `5.3, 6`, `K71.1` of `K71.1 has`.
fn number(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.').to_string()
}

/// Numbers of a document's headings.
fn sections(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let words = headings.flat_map(|line| line.split_whitespace().skip(1));
    words.map(number).filter(|word| is_number(word)).collect()
}

/// Numbers of sections: 5, 5.3, E5, LF, FG.1, K72.2a.
fn is_number(word: &str) -> bool {
    let letters = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let counted = letters.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    counted || matches!(word, "LF" | "FG")
}

/// Numbers of the table of source documents: rows that begin with `| 002 |`.
fn documents(text: &str) -> BTreeSet<String> {
    let first = |line: &str| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_string());
    let numbers = text.lines().filter_map(first);
    numbers.filter(|n| n.len() == 3 && n.bytes().all(|b| b.is_ascii_digit())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> Library {
        let spec =
            sections("# Spec\n## 5. Eviction\n### 5.3 sort: 9 rules\n### K71.1 Limit\n## LF. X");
        let experiments = sections("## 0. Common\n## E7. one and E8. two\n");
        let documents = documents("| document |\n|---|\n| 002 | the series |\n");
        let sections = [("spec", spec), ("experiments", experiments), ("pager", BTreeSet::new())];
        Library { sections: sections.into(), documents }
    }

    fn problems(path: &str, text: &str) -> Vec<String> {
        let text = text.replace('$', &SIGN.to_string());
        let found = library().check(Path::new(path), &text);
        let problems = found.into_iter().map(|f| format!("{} {}", f.line, f.problem));
        problems.map(|p| p.replace(SIGN, "$")).collect()
    }

    #[test]
    fn what_exists_may_be_cited() {
        let text = "spec $5.3, $5, and $K71.1 (experiments $E8, $E7.) pager\n// Spec $LF: x";
        assert_eq!(problems("a.rs", text), [""; 0]);
    }

    #[test]
    fn dangling_citations_are_found() {
        assert_eq!(problems("a.rs", "\nspec $5.4, spec $5.3"), ["2 spec $5.4: no section"]);
        assert_eq!(problems("a.toml", "# experiments $5.3"), ["1 experiments $5.3: no section"]);
        assert_eq!(problems("a.md", "pager $1"), ["1 pager $1: no section"]);
        assert_eq!(problems("a.rs", "design $0.7"), ["1 design $0.7: no such document"]);
        assert_eq!(problems("a.rs", "ranges: $5 to $6"), ["1 spec $6: no section"]);
    }

    #[test]
    fn a_bare_sign_means_what_was_named_last_or_the_page_itself() {
        assert_eq!(
            problems("a.rs", "experiments $0, $E7\n$5.3"),
            ["2 experiments $5.3: no section"]
        );
        assert_eq!(problems("docs/experiments.md", "$E7"), [""; 0]);
        assert_eq!(problems("docs/spec.md", "$E7"), ["1 spec $E7: no section"]);
    }

    #[test]
    fn the_document_may_be_named_on_the_line_above() {
        assert_eq!(problems("a.rs", "//! (experiments\n//! $E7)"), [""; 0]);
        assert_eq!(problems("a.rs", "//! (design\n//! $5)"), ["2 design $5: no such document"]);
    }

    #[test]
    fn plans_name_documents_that_are_listed() {
        assert_eq!(problems("a.toml", "document = \"002\""), [""; 0]);
        let found = problems("a.toml", "x\ndocument = \"009\"");
        assert_eq!(found, ["2 document 009: no such source document"]);
    }
}
