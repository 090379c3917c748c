//! `mglru exec`: programs under a budget, and those that cannot be.

use std::process::Command;

use mglru_pager::launch::malloc;
use mglru_pager::{KEPT_BITS, probe};

fn exec(args: &[&str]) -> (Option<i32>, String, String) {
    let mut mglru = Command::new(env!("CARGO_BIN_EXE_mglru"));
    let output = mglru.arg("exec").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_string();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A host that lacks something says what; the test is skipped.
fn lacking() -> bool {
    let lack = probe().into_iter().find(|fact| !fact.ok && fact.what != KEPT_BITS);
    let lack = lack.map(|fact| format!("{} ({})", fact.detail, fact.fix));
    let no_malloc = || "no libjemalloc.so.2 (mglru doctor --install)".to_string();
    let lack = lack.or_else(|| malloc().is_none().then(no_malloc));
    lack.is_some_and(|lack| {
        println!("skipped: {lack}");
        true
    })
}

#[test]
fn a_program_runs_as_it_is_and_its_status_is_ours() {
    if lacking() {
        return;
    }
    let shell = "echo $MGLRU_MEMORY_MAX $MGLRU_FORK; exit 7";
    let answer = exec(&["--memory-max", "16M", "--fork=copy", "--", "sh", "-c", shell]);
    assert_eq!(answer, (Some(7), "16777216 copy".into(), String::new()));
    let shell = "echo ${MGLRU_FORK-none} $MGLRU_FAULTS";
    let answer = exec(&["--memory-max", "16M", "--no-heap", "--", "sh", "-c", shell]);
    assert_eq!(answer.1, "none thread");
    let answer = exec(&["--faults=sigbus", "--no-heap", "--", "sh", "-c", shell]);
    assert_eq!(answer.1, "none sigbus");
}

#[test]
fn what_cannot_be_managed_is_refused_in_one_line() {
    if lacking() {
        return;
    }
    let refused = |args: &[&str]| {
        let (status, out, error) = exec(args);
        assert_eq!((status, out.as_str(), error.lines().count()), (Some(2), "", 1), "{error}");
        error
    };
    let error = refused(&["--memory-max", "16M", "--", "no-such-program-here"]);
    assert!(error.contains("`no-such-program-here` is not a program in PATH"), "{error}");
    let error = refused(&["--memory-max", "64K", "--", "true"]);
    assert!(error.contains("memory.max: 65536 bytes, but the least is 4194304"), "{error}");
}

/// Each mapping starts a thread that allocates, while both jobs map, unmap and allocate.
#[test]
fn fio_verifies_two_files_at_once() {
    let fio = Command::new("fio").arg("--version").output().is_ok();
    if lacking() || !fio {
        println!("skipped: needs the pager and fio (apt-get install fio)");
        return;
    }
    let folder = tempfile::tempdir_in(".").unwrap();
    let folder = format!("--directory={}", folder.path().display());
    let fio = "fio --thread --numjobs=2 --ioengine=mmap --size=16M --rw=randwrite --verify=crc32c";
    for faults in ["--faults=thread", "--faults=sigbus"] {
        let ours = ["--memory.max=8M", faults, "--", "timeout", "-s", "KILL", "120"];
        let more = ["--verify_state_save=0", "--name=job", &folder];
        let job: Vec<&str> = fio.split(' ').chain(more).collect();
        let (status, out, error) = exec(&[&ours, job.as_slice()].concat());
        assert_eq!((status, error.as_str()), (Some(0), ""), "{out}");
        assert_eq!(out.matches("err= 0").count(), 2, "{out}");
    }
}
