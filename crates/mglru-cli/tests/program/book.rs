//! What the book says that the program prints, it prints.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A page of the book's reference.
fn page(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn printed(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mglru")).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The indented block that follows, without its indent.
fn block(text: &str) -> String {
    let lines = text.lines().skip_while(|line| line.is_empty());
    let shown = lines.take_while(|line| line.starts_with("    ") || line.is_empty());
    let dedented = shown.map(|line| line.strip_prefix("    ").unwrap_or(line));
    dedented.collect::<Vec<_>>().join("\n").trim_end().to_string() + "\n"
}

#[test]
fn lists_are_in_the_book_as_they_are_printed() {
    for (name, list) in
        [("variants.md", "variants"), ("variants.md", "switches"), ("counters.md", "counters")]
    {
        let (page, args) = (page(name), format!("mglru list {list}"));
        let (_, rest) = page.split_once(&format!("`{args}` prints")).unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        assert_eq!(block(rest), printed(&["list", list]), "{name}: {args}");
    }
}

#[test]
fn helps_are_in_the_book_as_they_are_printed() {
    let page = page("commands.md");
    let (_, rest) = page.split_once("of one.\n").unwrap();
    let commands = block(rest);
    let all = printed(&["--help"]);
    assert!(all.contains(&format!("Commands:\n{commands}")), "{commands}");
    let shown: Vec<&str> = page.split("\n## `mglru ").skip(1).collect();
    assert!(shown.len() >= 4, "{}", shown.len());
    for part in shown {
        let (command, rest) = part.split_once("`\n").unwrap();
        let (shown, printed) = (block(rest), printed(&[command, "--help"]));
        assert!(printed.contains(&shown), "mglru {command} --help prints\n{printed}");
    }
}
