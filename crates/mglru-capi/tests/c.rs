//! Programs in C, compiled against the header and run with the library. Needs what the pager
//! needs; where that is refused the test says so and is skipped.

#[path = "../../mglru-pager/tests/support/library.rs"]
mod library;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use mglru_pager::probe;

const FLAGS: [&str; 6] = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"];
/// Lists what the static library needs besides itself.
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the libraries, two levels up from this test.
fn folder() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| library::built("mglru-capi"))
}

fn cc(source: &str, program: &Path, libraries: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(FLAGS).arg("-I").arg(here().join("include")).arg(here().join(source));
    let output = cc.arg("-o").arg(program).args(libraries).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a program, with the shared library and with the static one, and runs both; what they
/// printed. `None`: the pager cannot run here.
fn run(source: &str) -> Option<Vec<String>> {
    let dir = tempfile::tempdir_in(".").unwrap();
    let folder = folder().display().to_string();
    let (shared, archive) = (dir.path().join("shared"), format!("{folder}/libmglru.a"));
    let fixed = dir.path().join("fixed");
    cc(source, &shared, &["-L", &folder, "-lmglru", &format!("-Wl,-rpath,{folder}")]);
    cc(source, &fixed, &[[archive.as_str()].as_slice(), &SYSTEM].concat());
    if let Some(fact) = probe().into_iter().find(|fact| fact.required && !fact.ok) {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        return None;
    }
    let said = [shared, fixed].map(|program| {
        let output = Command::new(std::fs::canonicalize(&program).unwrap())
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {:?} {said}", program.display(), output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    Some(said.into())
}

#[test]
fn every_function_does_what_the_header_says() {
    let _ = run("tests/every_function.c");
}

#[test]
fn the_example_keeps_its_budget() {
    for said in run("examples/table.c").unwrap_or_default() {
        assert!(said.starts_with("8388608 rows, 0 wrong; 1"), "{said}");
    }
}

/// Names of functions: `mglru_` up to the parenthesis.
fn functions<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    let name = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        rest[end..].starts_with('(').then_some(&rest[..end])
    };
    let at = text.match_indices("mglru_").filter(|(at, _)| text[..*at].ends_with(before));
    at.filter_map(|(at, _)| name(&text[at..])).collect()
}

#[test]
fn the_header_declares_what_the_library_has_and_the_test_calls_all_of_it() {
    let header = std::fs::read_to_string(here().join("include/mglru.h")).unwrap();
    let declared: BTreeSet<&str> =
        functions(&header, " ").union(&functions(&header, "*")).copied().collect();
    let symbols = symbols();
    assert_eq!(declared, symbols.iter().map(String::as_str).collect());
    let test = std::fs::read_to_string(here().join("tests/every_function.c")).unwrap();
    let unused: Vec<_> = declared.iter().filter(|name| !test.contains(**name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

fn symbols() -> BTreeSet<String> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only"]).arg(folder().join("libmglru.so"));
    let output = nm.output().unwrap();
    assert!(output.status.success(), "nm of binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    names.filter(|name| name.starts_with("mglru_")).map(String::from).collect()
}

#[test]
fn the_header_is_one_for_programs_in_cpp_too() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("p.cpp");
    std::fs::write(&source, "#include <mglru.h>\nint main() { mglru_close(nullptr); }\n").unwrap();
    let mut cpp = Command::new("c++");
    let output = cpp
        .args(["-fsyntax-only", "-Wall", "-Werror", "-I"])
        .arg(here().join("include"))
        .arg(source);
    match output.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => println!("skipped: c++: {error}"),
    }
}
