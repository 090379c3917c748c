//! House rules as a program: sizes, names, words, citations and links. Each rule turns a file's
//! text into findings.

mod citations;
mod functions;
mod layers;
mod links;

use std::fs;
use std::path::{Path, PathBuf};

use citations::Library;

/// Longest file, lines.
const FILE_FAIL: usize = 400;
/// Longest function, lines.
const FUNCTION_FAIL: usize = 70;
/// Longest line, columns.
const LINE_FAIL: usize = 100;

/// File names that say nothing.
const BANNED_FILES: [&str; 4] = ["utils.rs", "common.rs", "helpers.rs", "mod.rs"];

/// Words no file may hold, split so that this file does not.
const BANNED_WORDS: [&str; 8] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("unimpl", "emented!"),
    concat!("to", "do!("),
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("\"/tm", "p/"),
];

/// Describes a finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    problem: String,
}

impl Finding {
    fn new(line: usize, problem: String) -> Self {
        Self { line, problem }
    }
}

/// Checks the tree, prints findings. True when there is none.
pub fn run(root: &Path) -> bool {
    println!("== tidy");
    let library = Library::read(root);
    let mut passed = true;
    if let Some(problem) = crate::keys::stale(root) {
        println!("error: {}: {problem}", crate::keys::PAGE);
        passed = false;
    }
    for breach in layers::check(root) {
        println!("error: {breach}");
        passed = false;
    }
    for path in sources(root) {
        let Ok(text) = fs::read_to_string(&path) else {
            println!("{}: not readable as text", path.display());
            passed = false;
            continue;
        };
        let mut findings = check(&path, &text, &library);
        findings.extend(links::check(root, &path, &text));
        for finding in findings {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            println!("error: {name}:{}: {}", finding.line, finding.problem);
            passed = false;
        }
    }
    passed
}

fn check(path: &Path, text: &str, library: &Library) -> Vec<Finding> {
    let mut findings = words(text);
    findings.extend(library.check(path, text));
    if path.extension().is_some_and(|e| e == "rs") {
        findings.extend(name(path));
        findings.extend(size(path, text));
        findings.extend(lines(text));
        findings.extend(functions::long(text, FUNCTION_FAIL));
    }
    findings
}

fn name(path: &Path) -> Option<Finding> {
    let name = path.file_name()?.to_str()?;
    let banned = BANNED_FILES.contains(&name);
    banned.then(|| Finding::new(1, format!("a file named {name} says nothing about its content")))
}

/// Test files and tables may be long.
fn size(path: &Path, text: &str) -> Option<Finding> {
    let path = path.to_string_lossy();
    let exempt = path.contains("/tests/") || path.ends_with("tests.rs");
    let count = text.lines().count();
    let over = (count > FILE_FAIL && !exempt).then_some(count)?;
    Some(Finding::new(1, format!("{over} lines (at most {FILE_FAIL})")))
}

fn lines(text: &str) -> Vec<Finding> {
    let long = |(at, line): (usize, &str)| {
        let columns = line.chars().count();
        (columns > LINE_FAIL).then(|| Finding::new(at + 1, format!("{columns} columns")))
    };
    text.lines().enumerate().filter_map(long).collect()
}

fn words(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let found = BANNED_WORDS.iter().filter(|word| line.contains(**word));
        findings.extend(found.map(|word| Finding::new(at + 1, format!("holds `{word}`"))));
    }
    findings
}

fn sources(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(root, &mut found);
    found.sort();
    found
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    const SKIPPED: [&str; 3] = ["target", "mglru-runs", "node_modules"];
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                walk(&path, found);
            }
        } else if matches!(path.extension().and_then(|e| e.to_str()), Some("rs" | "toml" | "md")) {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let found = check(Path::new(path), text, &Library::default());
        found.into_iter().map(|f| format!("{} {}", f.line, f.problem)).collect()
    }

    #[test]
    fn clean_code_passes() {
        assert_eq!(problems("src/lru.rs", "// Says why.\nfn f() {}\n"), [""; 0]);
    }

    #[test]
    fn names_words_and_lines() {
        let problem = "1 a file named utils.rs says nothing about its content";
        assert_eq!(problems("src/utils.rs", ""), [problem]);
        let word = BANNED_WORDS[0];
        assert_eq!(problems("a.md", &format!("x\n{word}")), [format!("2 holds `{word}`")]);
        assert_eq!(problems("a.rs", &"x".repeat(101)), ["1 101 columns"]);
    }

    #[test]
    fn long_files_fail_and_tests_may_be_long() {
        let text = |n| "\n".repeat(n);
        assert_eq!(problems("a.rs", &text(400)), [""; 0]);
        assert_eq!(problems("a.rs", &text(401)), ["1 401 lines (at most 400)"]);
        assert_eq!(problems("a.rs", &text(801)), ["1 801 lines (at most 400)"]);
        assert_eq!(problems("src/a/tests.rs", &text(801)), [""; 0]);
    }
}
