//! Programs in C that say the same under the library, with either engine, as without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use mglru_pager::{KEPT_BITS, launch, probe};

const FLAGS: [&str; 4] = ["-std=gnu11", "-O1", "-w", "-pthread"];

/// What a program needs of the host that it has not; `None`: it has everything.
fn lack() -> Option<String> {
    if launch::malloc().is_none() {
        return Some("no libjemalloc.so.2 here".into());
    }
    if Command::new("cc").arg("--version").output().is_err() {
        return Some("no C compiler here".into());
    }
    let lacks = probe().into_iter().find(|fact| !fact.ok && fact.what != KEPT_BITS);
    lacks.map(|fact| format!("{} ({})", fact.detail, fact.fix))
}

/// A program of `tests/programs`, compiled once.
fn compiled(name: &str) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let compile = || {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let exe = std::env::current_exe().unwrap();
        let program = exe.with_file_name(format!("{name}-{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(FLAGS).arg(programs.join(format!("{name}.c"))).arg("-o").arg(&program);
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    };
    compiled.entry(name.into()).or_insert_with(compile).clone()
}

/// A shell command that runs a case of a program, in a folder of its own.
pub fn run(command: &str, program: &str, case: &str, faults: Option<&str>) -> Output {
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut shell = Command::new("timeout");
    shell.args(["-k", "5", "100", "sh", "-c", command, "sh"]);
    shell.arg(compiled(program)).arg(case).current_dir(folder.path());
    if let (Some(faults), Some(malloc)) = (faults, launch::malloc()) {
        let preload = format!("{} {}", super::library().display(), malloc.display());
        shell.env("PRELOAD", preload).env(launch::ENV_FAULTS, faults);
        shell.env(launch::ENV_MAX, (12 << 20).to_string()).env(launch::ENV_FORK, "serve");
        shell.env(launch::ENV_SWAP, (1 << 30).to_string());
        shell.env(launch::ENV_SWAP_DIR, folder.path());
    }
    shell.output().unwrap()
}

/// Returns how a case ended: its standard output and its status.
pub fn outcome(output: &Output) -> (String, Option<i32>) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// Replaces the shell by the program, under the library if there is one.
pub const RUN: &str = r#"LD_PRELOAD="$PRELOAD" exec "$@""#;

/// Runs a case after a shell command: what it says on its standard error under the library, with
/// each engine, having said the same otherwise as without. Nothing, if it cannot run here.
pub fn as_plain_after(before: &str, program: &str, case: &str) -> Vec<String> {
    if let Some(lack) = lack() {
        println!("skipped: {lack}");
        return Vec::new();
    }
    let command = format!("{before}{RUN}");
    let plain = outcome(&run(&command, program, case, None));
    let with = |faults: &&str| {
        let output = run(&command, program, case, Some(faults));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(outcome(&output), plain, "{program} {case} {faults}: {said}");
        // What is outside of the budget is no matter of these tests.
        said.split_inclusive('\n').filter(|line| !line.contains(" outside of the budget")).collect()
    };
    ["thread", "sigbus"].iter().map(with).collect()
}

/// As [`as_plain_after`], and the library has nothing to say.
fn as_plain(program: &str, case: &str) {
    for said in as_plain_after("", program, case) {
        assert_eq!(said, "", "{program} {case}");
    }
}

macro_rules! cases {
    ($program:ident: $($case:ident)*) => {
        mod $program {
            $(
                #[test]
                fn $case() {
                    super::as_plain(stringify!($program), stringify!($case));
                }
            )*
        }
    };
}

cases! { memory:
    protected_memory protected_shared_memory
    wipe_on_fork wipe_in_a_child no_fork
    moves_keep_from_children
    move_to_a_place move_and_keep move_in_and_out moves_keep_protection refused_moves
    at_a_free_place
    refused_advice dropped guards private_files
}

cases! { locks: within moved }
cases! { last: others_work other_exits alone by_c11 in_a_child in_a_late_child }
cases! { limits: set_later set_before_exec }

/// Under the library a case says these things of itself, each once.
fn as_plain_but_says(program: &str, case: &str, lines: &[&str]) {
    for said in as_plain_after("", program, case) {
        assert_eq!(said.lines().collect::<Vec<_>>(), lines, "{program} {case}");
    }
}

const OVER_HALF: &str =
    "mglru exec: locked memory may be swapped all the same: it is over half the budget";

#[test]
fn what_is_locked_beyond_half_the_budget_may_be_swapped() {
    for case in ["beyond", "beyond_of_a_file", "all"] {
        as_plain_but_says("locks", case, &[OVER_HALF]);
    }
}

#[test]
fn what_is_to_be_locked_when_it_is_mapped_is_the_kernels() {
    let future = "mglru exec: mappings from now on stay with the kernel: mlockall(MCL_FUTURE)";
    for said in as_plain_after("", "locks", "all_to_come") {
        let lines: Vec<_> = said.lines().filter(|&line| line != OVER_HALF).collect();
        // Two children say it for themselves.
        assert_eq!(lines, [future; 3]);
    }
}

const LIMITED: &str =
    "mglru exec: heaps stay with the kernel: address space is limited to 921600000 bytes\n";
const SHORT: &str =
    "mglru exec: the swap file is smaller: files are limited to 20480000 bytes (ulimit -f)\n";
const FEW: &str = "mglru exec: a mapping of a file stays with the kernel: ";

/// Where only the first limit is set, it is raised by what is set aside.
#[test]
fn a_program_runs_under_the_limits_that_it_is_started_with() {
    for said in as_plain_after("ulimit -Sv 900000; ", "limits", "set_at_start") {
        assert_eq!(said, "");
    }
    for said in as_plain_after("ulimit -v 900000; ", "limits", "set_at_start") {
        assert!(said.is_empty() || said == LIMITED, "{said}");
    }
    for said in as_plain_after("ulimit -Sd 900000; ", "limits", "set_at_start") {
        assert_eq!(said, "");
    }
    for said in as_plain_after("ulimit -f 40000; ", "limits", "short_files") {
        assert!(said == SHORT, "{said}");
    }
}

#[test]
fn a_program_that_maps_many_files_is_left_half_of_its_descriptors() {
    for limit in [140, 256, 1024] {
        // Room for the tables of many mappings.
        let limit = format!("ulimit -n {limit}; export {}={}; ", launch::ENV_MAX, 64 << 20);
        for said in as_plain_after(&limit, "limits", "many_files") {
            assert!(said.lines().all(|line| line.starts_with(FEW)), "{said}");
            assert!(said.lines().filter(|line| line.ends_with("so may others")).count() <= 1);
        }
    }
}
