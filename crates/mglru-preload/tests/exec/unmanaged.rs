//! Memory of every kind is under the budget, or said to be outside of it, and why.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;

const MIB: u64 = 1 << 20;
/// The budget, and what a process has besides, MiB.
const BUDGET: u64 = 16;
const BESIDES: u64 = 12;

/// Each kind, and how it ends, with the reason that is said of it; without one it is managed.
const KINDS: [(&str, Option<&str>); 29] = [
    ("malloc", None),
    ("zero", None),
    ("opened", None),
    ("long", None),
    ("program", None),
    ("brk", Some("brk")),
    ("bss", Some("brk")),
    ("small", Some("small")),
    ("hint", Some("hint")),
    ("fixed", Some("hint")),
    ("low", Some("hint")),
    ("moved", Some("hint")),
    ("rwx", Some("executable")),
    ("loads", Some("reservation")),
    ("reserved", Some("reservation")),
    ("longest", Some("reservation")),
    ("shared", Some("shared")),
    ("memfd", Some("shared")),
    ("stack", Some("stack")),
    ("thread", Some("stack")),
    ("locked", Some("locked")),
    ("raw", Some("raw")),
    ("raw _exit", Some("raw")),
    ("raw execve", Some("raw")),
    ("vfork", Some("raw")),
    ("child", Some("child")),
    ("orphan", Some("child")),
    ("static", Some("static child")),
    ("file", Some("file")),
];

/// The program, made in a folder, also without libraries. `None`, and said: it cannot run here.
fn made() -> Option<tempfile::TempDir> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let folder = tempfile::tempdir_in(".").unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/unmanaged.c");
    let cc = |name: &str, how: &str| {
        let to = folder.path().join(name);
        let cc = Command::new("cc")
            .args(["-O1", "-w", "-pthread", how, "-o"])
            .arg(to)
            .arg(&source)
            .status();
        cc.is_ok_and(|status| status.success())
    };
    let lack = probe().into_iter().find(|fact| !fact.ok && fact.what != KEPT_BITS);
    let lack = lack.map(|fact| fact.detail).or_else(|| {
        let made = cc("program", "-rdynamic") && cc("static", "-static");
        (!made || launch::malloc().is_none()).then(|| "no cc or libjemalloc.so.2 here".into())
    });
    if let Some(lack) = lack {
        println!("skipped: {lack}");
        return None;
    }
    Some(folder)
}

fn start(folder: &Path, kind: &str, set: &[(&str, &str)]) -> Child {
    let mut child = Command::new("./program");
    child.args(kind.split(' ')).current_dir(folder).envs(set.iter().copied());
    let malloc = launch::malloc().unwrap();
    child.env("LD_PRELOAD", format!("{} {}", library().display(), malloc.display()));
    child.env(launch::ENV_MAX, (BUDGET * MIB).to_string()).env(launch::ENV_FORK, "serve");
    child.env(launch::ENV_SWAP, (1 << 30).to_string()).env(launch::ENV_SWAP_DIR, ".");
    child.stderr(Stdio::piped()).spawn().unwrap()
}

/// What a process and those below it have in memory, bytes.
fn resident(pid: u32) -> u64 {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let rollup = read(format!("/proc/{pid}/smaps_rollup"));
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    let pss = pss.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    let children = read(format!("/proc/{pid}/task/{pid}/children"));
    let below = children.split_whitespace().filter_map(|pid| pid.parse().ok()).map(resident);
    (pss << 10) + below.sum::<u64>()
}

/// Runs a kind to its end: the most that was resident, MiB, and what was said.
fn run(folder: &Path, kind: &str, faults: &str) -> (u64, String) {
    let mut child = start(folder, kind, &[(launch::ENV_FAULTS, faults)]);
    let (mut most, pid) = (0, child.id());
    let status = loop {
        most = most.max(resident(pid) / MIB);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success(), "{kind} {faults}: {status:?} {said}");
    (most, said)
}

/// The MiB that a line says of a reason.
fn said_of(said: &str, reason: &str) -> u64 {
    let start = format!("{reason} ");
    let mut parts = said.trim().split([':', ',', ';']).map(|part| {
        let part = part.trim().trim_start_matches("and ");
        part.strip_prefix(&start)?.strip_suffix(" MiB")?.parse().ok()
    });
    parts.find_map(|mib| mib).unwrap_or(0)
}

fn check(folder: &Path, kind: &str, reason: Option<&str>, faults: &str) {
    let (most, said) = run(folder, kind, faults);
    let what = format!("{kind}, {faults}: {most} MiB in memory; {said}");
    let Some(reason) = reason else {
        assert!(most <= BUDGET + BESIDES, "{what}");
        return assert!(!said.contains("outside"), "{what}");
    };
    assert!((46..=50).contains(&said_of(&said, reason)), "{what}");
    assert_eq!(said.lines().count(), 1, "{what}");
}

#[test]
fn memory_of_every_kind_is_managed_or_said() {
    let Some(folder) = made() else { return };
    let faults = ["thread", "sigbus"];
    let all = faults.iter().flat_map(|faults| KINDS.iter().map(move |kind| (kind, faults)));
    let jobs = Arc::new(Mutex::new(all));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(((kind, reason), faults)) = { jobs.lock().unwrap().next() } {
                    check(folder.path(), kind, *reason, faults);
                }
            });
        }
    });
}

#[test]
fn without_a_heap_it_is_said_all_the_same_and_no_thread_is_started() {
    let Some(folder) = made() else { return };
    for (kind, reason) in [("hint", "hint"), ("long", "no heap"), ("malloc", "no heap")] {
        let mut child = Command::new("./program");
        child.arg(kind).current_dir(folder.path()).stderr(Stdio::piped());
        child.env("LD_PRELOAD", library()).env(launch::ENV_MAX, (BUDGET * MIB).to_string());
        let child = child.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((threads, said_of(&said, reason)), (1, 48), "{kind}: {said}");
    }
}

#[test]
fn what_any_program_has_is_not_said() {
    let Some(folder) = made() else { return };
    assert_eq!(run(folder.path(), "nothing", "thread").1, "");
}
