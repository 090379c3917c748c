//! Programs for UMap, compiled against its header and run. Needs what the pager needs; where that
//! is refused the test says so and is skipped.

#[path = "../../mglru-pager/tests/support/library.rs"]
mod library;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use mglru_pager::probe;

/// The folder of the library, two levels up from this test.
fn folder() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| library::built("mglru-umap"))
}

/// Compiles a program into a folder of its own, ready to be run with a buffer of so many pages.
fn program(name: &str, pages: &str) -> (tempfile::TempDir, Command) {
    let (here, dir) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir_in(".").unwrap());
    let path = std::fs::canonicalize(dir.path()).unwrap().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-I"]);
    cc.arg(here.join("include")).arg(here.join("tests").join(name).with_extension("c"));
    cc.arg("-o").arg(&path).arg("-L").arg(folder()).arg("-lumap");
    let output = cc.arg(format!("-Wl,-rpath,{}", folder().display())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut program = Command::new(path);
    program.current_dir(dir.path()).env("UMAP_BUFSIZE", pages);
    (dir, program)
}

fn run(program: &mut Command) -> Option<Output> {
    if let Some(fact) = probe().into_iter().find(|fact| fact.required && !fact.ok) {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        return None;
    }
    Some(program.output().unwrap())
}

/// Returns the output of a program that ended well.
fn said(program: &mut Command) -> Option<String> {
    let output = run(program)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {errors}", output.status);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_sort_of_twice_the_buffer_is_right_in_memory_and_on_disk() {
    let (_dir, mut sort) = program("sort", "256");
    sort.args(["file", "1300000", "2"]).env("UMAP_PAGESIZE", "16384");
    let Some(said) = said(&mut sort) else { return };
    assert_eq!(said, "sorted\n");
}

#[test]
fn pages_that_churn_keep_every_store() {
    let (_dir, mut churn) = program("churn", "512");
    let Some(said) = said(churn.args(["in", "out", "4096", "2"])) else { return };
    assert!(said.starts_with("0 wrong, 8192 of"), "{said}");
}

#[test]
fn a_setting_that_is_none_is_refused_by_name() {
    let (_dir, mut sort) = program("sort", "lots");
    let Some(output) = run(sort.args(["file", "1000", "1"])) else { return };
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("umap: UMAP_BUFSIZE: `lots` is not a value it takes\n"), "{errors}");
}
