//! Lengths of functions. rustfmt has put the opening line and the closing brace of a function at
//! the same indentation, so no parser is needed.

use super::Finding;

/// Functions longer than `limit` lines, signature and braces included.
pub(super) fn long(text: &str, limit: usize) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = (0..lines.len()).filter(|at| is_function(lines[*at]));
    let finding = |at: usize| {
        let length = length(&lines[at..])?;
        let problem = format!("a function of {length} lines (at most {limit})");
        (length > limit).then(|| Finding::new(at + 1, problem))
    };
    starts.filter_map(finding).collect()
}

fn is_function(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut rest = words.skip_while(|word| {
        matches!(*word, "pub" | "const" | "async" | "unsafe") || word.starts_with("pub(")
    });
    rest.next() == Some("fn")
}

/// Lines to the brace that closes the function; `None` for one without a body or on one line.
fn length(lines: &[&str]) -> Option<usize> {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let opens = lines.iter().position(|line| line.ends_with(['{', ';', '}']))?;
    if !lines[opens].ends_with('{') {
        return None;
    }
    let closing = format!("{}}}", " ".repeat(indent));
    lines.iter().position(|line| *line == closing).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_signature_to_brace() {
        let body = |n| {
            format!("    pub fn f(\n        a: u8,\n    ) {{\n{}    }}\n", "        x;\n".repeat(n))
        };
        assert_eq!(long(&body(6), 10), []);
        assert_eq!(long(&body(7), 10).len(), 1);
        assert_eq!(long(&body(7), 10)[0].problem, "a function of 11 lines (at most 10)");
    }

    #[test]
    fn declarations_and_one_liners_have_no_length() {
        assert_eq!(long("fn f();\nfn g() {}\npub(crate) fn h() -> u8 { 1 }\n", 0), []);
    }
}
