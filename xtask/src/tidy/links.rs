//! Links of Markdown pages: the file must exist, and the heading that an anchor names. A page of
//! the book links only to pages of the book, because nothing else is built into it, and the
//! book's summary lists every page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Finding;

/// Where the book lies.
const BOOK: &str = "docs";
/// The list of its pages.
const SUMMARY: &str = "SUMMARY.md";

/// Reports links of a page that lead nowhere.
pub fn check(root: &Path, path: &Path, text: &str) -> Vec<Finding> {
    if path.extension().is_none_or(|e| e != "md") {
        return Vec::new();
    }
    let page = Page { path, in_book: path.starts_with(root.join(BOOK)), root };
    let mut findings = Vec::new();
    for (at, line) in prose(text) {
        // The links of an included file are followed from the page that includes it, too.
        let included = included(path, line);
        let links = prose(included.as_deref().unwrap_or(line)).into_iter();
        let links = links.flat_map(|(_, line)| targets(line));
        let broken = links.filter_map(|target| page.problem(&target));
        findings.extend(broken.map(|problem| Finding::new(at, problem)));
    }
    if path == root.join(BOOK).join(SUMMARY) {
        findings.extend(unlisted(path, text));
    }
    findings
}

struct Page<'a> {
    root: &'a Path,
    path: &'a Path,
    in_book: bool,
}

impl Page<'_> {
    fn problem(&self, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
        let to = match file {
            "" => self.path.to_path_buf(),
            _ => self.path.parent()?.join(file),
        };
        let Ok(to) = to.canonicalize() else { return Some(format!("link {target}: no such file")) };
        if self.in_book && !self.is_in_book(&to) {
            return Some(format!("link {target}: not in the book"));
        }
        let known = anchor.is_none_or(|a| anchors(&whole(&to)).contains(a));
        (!known).then(|| format!("link {target}: no such heading"))
    }

    fn is_in_book(&self, to: &Path) -> bool {
        self.root.join(BOOK).canonicalize().is_ok_and(|book| to.starts_with(book))
    }
}

/// Pages of the book that its summary does not list.
fn unlisted(summary: &Path, text: &str) -> Vec<Finding> {
    let Some(book) = summary.parent() else { return Vec::new() };
    let listed: BTreeSet<PathBuf> = targets(text).iter().map(|t| book.join(t)).collect();
    let mut pages = Vec::new();
    super::walk(book, &mut pages);
    pages.sort();
    let missing = pages.iter().filter(|p| !listed.contains(*p) && p.as_path() != summary);
    let name = |p: &PathBuf| p.strip_prefix(book).unwrap_or(p).display().to_string();
    missing.map(|p| Finding::new(1, format!("does not list {}", name(p)))).collect()
}

/// Reads the file that a line of a page includes.
fn included(page: &Path, line: &str) -> Option<String> {
    let file = line.strip_prefix("{{#include ")?.strip_suffix("}}")?;
    fs::read_to_string(page.parent()?.join(file.trim())).ok()
}

/// Reads a page with the files that it includes.
fn whole(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap_or_default();
    let lines = text.lines().map(|line| included(page, line).unwrap_or_else(|| line.to_string()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines outside of code blocks, by number.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if !in_code && !fence && !line.starts_with("    ") {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// Lists what the links of a text lead to; code spans hold none.
fn targets(text: &str) -> Vec<String> {
    let bare: String = text.split('`').step_by(2).collect();
    let after = bare.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.to_string())).collect()
}

/// Anchors of a page's headings, as mdBook and forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).into_iter().filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let slug = slug(line.trim_start_matches('#').trim());
            let count = seen.entry(slug.clone()).or_insert(0);
            *count += 1;
            if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
        })
        .collect()
}

fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_lowercase().next()?),
        _ if c.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the rule on a book of these files and returns the problems of the first.
    fn problems(name: &str, files: &[(&str, &str)]) -> Vec<String> {
        let root = std::env::temp_dir().join(format!("mglru-links-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("has a folder")).expect("can be made");
            fs::write(path, text).expect("can be written");
        }
        let (first, text) = files[0];
        let found = check(&root, &root.join(first), text);
        fs::remove_dir_all(&root).expect("can be removed");
        found.into_iter().map(|f| format!("{} {}", f.line, f.problem)).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# A page\n[a](b.md#the-2nd-part--x) [c](#a-page) [d](https://example.org)\n\
            `[e](f)`\n```\n[g](h)\n```\n";
        let other = "## The 2nd part \u{2014} `x`\n";
        assert_eq!(problems("good", &[("docs/a.md", text), ("docs/b.md", other)]), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let files = [("docs/a.md", "[x](no.md)\n[y](#no)\n[z](../README.md)"), ("README.md", "")];
        assert_eq!(
            problems("bad", &files),
            [
                "1 link no.md: no such file",
                "2 link #no: no such heading",
                "3 link ../README.md: not in the book"
            ]
        );
        assert_eq!(
            problems("root", &[("README.md", "[x](docs/a.md)"), ("docs/a.md", "")]),
            [""; 0]
        );
    }

    #[test]
    fn links_of_included_files_lead_somewhere_from_both_places() {
        let page = ("docs/a.md", "{{#include ../A.md}}");
        let text = "# One\n[x](B.md#two) [y](a/c.md)";
        let other = ("docs/B.md", "{{#include ../B.md}}");
        let files = [page, ("A.md", text), other, ("B.md", "# Two"), ("a/c.md", "")];
        assert_eq!(problems("include", &files), ["1 link a/c.md: no such file"]);
    }

    #[test]
    fn the_summary_lists_every_page() {
        let files =
            [("docs/SUMMARY.md", "- [A](a.md)\n"), ("docs/a.md", ""), ("docs/deep/b.md", "")];
        assert_eq!(problems("list", &files), ["1 does not list deep/b.md"]);
    }

    #[test]
    fn repeated_headings_are_numbered() {
        let known = anchors("# One\n# One\n```\n# two\n```\n");
        assert_eq!(known.into_iter().collect::<Vec<_>>(), ["one", "one-1"]);
    }
}
