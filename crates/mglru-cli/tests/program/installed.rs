//! The program alone, as it is installed: in an empty folder, with a home of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

const LIBRARY: &str = "libmglru_preload.so";

struct Installed {
    root: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["bin", "home", "work"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_mglru"), root.path().join("bin/mglru")).unwrap();
        Self { root }
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.root.path().join(below)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.path("bin/mglru"));
        command.args(args).current_dir(self.path("work"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.path("home")).output().unwrap()
    }

    fn out(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns what `mglru doctor` says of the preload library.
    fn library(&self) -> Json {
        let output = self.run(&["doctor", "exec", "--json"]);
        let read: Json = serde_json::from_slice(&output.stdout).unwrap();
        read["features"][0]["parts"][0].clone()
    }
}

/// Tells whether a library was unpacked to the cache of the program's user.
fn is_kept(installed: &Installed) -> bool {
    fs::read_dir(installed.path("home/.cache/mglru/lib")).is_ok_and(|mut files| files.any(|_| true))
}

#[test]
fn the_program_alone_has_its_plans_and_its_truth() {
    let installed = Installed::new();
    assert!(installed.out(&["list"]).contains("quickstart"));
    assert!(installed.out(&["show", "mongodb"]).contains("wiredtiger"));
    let stdout = installed.out(&["doctor", "sim", "plans", "truth", "page"]);
    assert!(stdout.lines().all(|line| line.contains(" ok ")), "{stdout}");
    assert!(stdout.contains("7.3.4") && stdout.contains(" records"), "{stdout}");
    let args = ["run", "quickstart", "--scale", "1/64", "--seeds", "1", "--out", "o"];
    let output = installed.run(&args);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    assert!(installed.path("work/o/report.html").is_file());
}

#[test]
fn a_preload_library_is_found_where_it_is_installed_or_unpacked_once() {
    let installed = Installed::new();
    let (first, carries) = (installed.library(), !cfg!(debug_assertions));
    // A debug build carries none; it builds one in its source tree, which this is not.
    assert_eq!(first["ok"].as_bool(), Some(carries), "{first}");
    let detail = first["detail"].as_str().unwrap_or_default();
    assert_eq!(detail.contains(".cache/mglru/lib/libmglru_preload-"), carries, "{first}");
    assert_eq!(is_kept(&installed), carries);
    let folder = installed.path("lib/mglru");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(LIBRARY), "").unwrap();
    let detail = installed.library()["detail"].as_str().unwrap().to_string();
    let found = fs::canonicalize(Path::new(&detail)).unwrap();
    assert_eq!(found, fs::canonicalize(folder.join(LIBRARY)).unwrap());
    fs::write(installed.path("bin").join(LIBRARY), "").unwrap();
    let detail = installed.library()["detail"].as_str().unwrap().to_string();
    assert!(detail.ends_with("bin/libmglru_preload.so"), "{detail}");
}

#[test]
fn a_program_without_its_library_says_what_to_do_and_with_it_runs() {
    let installed = Installed::new();
    if mglru_pager::probe().iter().any(|fact| fact.required && !fact.ok) {
        return println!("skipped: needs the pager");
    }
    let output = installed.run(&["exec", "--memory.max", "64MiB", "--", "true"]);
    if cfg!(debug_assertions) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr.contains("is not beside mglru; install it there, or set"), "{stderr}");
    } else {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[test]
fn a_feature_that_lacks_something_is_status_1_and_names_the_line_to_type() {
    let installed = Installed::new();
    let empty = installed.path("home");
    let mut command = Command::new(installed.path("bin/mglru"));
    command.args(["doctor", "kernel", "--quick"]).env("PATH", &empty).env("HOME", &empty);
    let output = command.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    if stdout.contains("ok       qemu") {
        return println!("skipped: QEMU lies outside of PATH, too");
    }
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.starts_with("kernel     missing  "), "{stdout}");
    assert!(stdout.contains("apt-get install qemu-system-x86"), "{stdout}");
    assert!(stdout.contains("kernel              mglru doctor --install"), "{stdout}");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let installed = Installed::new();
    assert_eq!(installed.out(&["man", "man1"]), "");
    let help = installed.out(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let words = commands.lines().take_while(|line| !line.is_empty());
    let names = words.filter(|l| !l.starts_with("   ")).filter_map(|l| l.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.contains(&"validate") && names.len() > 15, "{names:?}");
    for name in names {
        let page = installed.path("work/man1").join(format!("mglru-{name}.1"));
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(text.contains(".TH"), "{name}");
    }
    assert!(installed.path("work/man1/mglru-ctl-what-if.1").is_file());
    fs::write(installed.path("work/file"), "").unwrap();
    let refused = installed.run(&["man", "file"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("mglru: error: file: "));
}
