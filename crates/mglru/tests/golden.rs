//! Golden scenarios: the life of pages under each variant. A scenario is a text file of inputs, one
//! a line; what it did to the machine is written below it. `BLESS=1` rewrites the files.

#[path = "golden/script.rs"]
mod script;
#[path = "toy/toy.rs"]
mod toy;

use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Runs the inputs of a file and compares the whole text.
fn check(name: &str) {
    let path = folder().join(name).with_extension("txt");
    let text = std::fs::read_to_string(&path).expect("a readable scenario");
    let ran = script::run(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, ran).expect("a writable scenario");
        return;
    }
    for (n, (want, got)) in text.lines().zip(ran.lines()).enumerate() {
        assert_eq!(want, got, "{name}, line {}", n + 1);
    }
    assert_eq!(text, ran, "{name}");
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_file_is_a_test() {
            let known = [$(stringify!($name)),*];
            let files = std::fs::read_dir(folder()).expect("the folder");
            let texts = files.map(|f| f.expect("an entry").path());
            for path in texts.filter(|p| p.extension().is_some_and(|e| e == "txt")) {
                let stem = path.file_stem().and_then(|s| s.to_str()).expect("a name");
                assert!(known.contains(&stem), "{stem}.txt is run by no test");
            }
        }
    };
}

scenarios! {
    read_once_after,
    read_once_before,
    read_once_k612,
    read_once_classic,
    mapped_twice_after,
    mapped_twice_before,
    mapped_twice_k612,
    written_after,
    written_before,
    written_classic,
    swapped_and_back_after,
    swapped_and_back_classic,
    returns_after,
}

#[test]
fn a_bad_line_is_named() {
    let error = script::run("variant after\nread 1x\n").unwrap_err();
    assert_eq!(error, "line 2: `1x` is no number");
    let error = script::run("variant after\nfly\n").unwrap_err();
    assert_eq!(error, "line 2: unknown input `fly`");
}
