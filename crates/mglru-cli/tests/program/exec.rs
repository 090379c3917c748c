//! `mglru exec`: programs under a budget, and those that cannot be.

use std::path::Path;
use std::process::Command;

use mglru_pager::launch::malloc;
use mglru_pager::{KEPT_BITS, probe};

/// Runs `mglru exec`. Returns its status, what it printed and what it said.
pub fn exec(args: &[&str]) -> (Option<i32>, String, String) {
    let mut mglru = Command::new(env!("CARGO_BIN_EXE_mglru"));
    let output = mglru.arg("exec").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_string();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A host that lacks something says what; the test is skipped.
pub fn lacking() -> bool {
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

#[test]
fn a_folder_that_swap_cannot_be_in_is_refused_before_anything_runs() {
    if lacking() {
        return;
    }
    let folder = tempfile::tempdir_in(".").unwrap();
    let refused = |folder: &Path, more: &[&str]| {
        let at = ["--swap-dir", folder.to_str().unwrap()];
        let run = ["--memory-max", "16M", "--", "echo", "ran"];
        let (status, out, error) = exec(&[&at, more, &run].concat());
        assert_eq!((status, out.as_str(), error.lines().count()), (Some(2), "", 1), "{error}");
        let start = format!("mglru: error: swap file in {}: ", folder.display());
        error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_string()
    };
    let none = refused(&folder.path().join("none"), &[]);
    assert!(none.starts_with("No such file or directory"), "{none}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(refused(&file, &[]).starts_with("Not a directory"));
    let large = refused(folder.path(), &["--swap", "15T"]);
    assert!(large.starts_with("there is room for "), "{large}");
    let shell = "ulimit -f 1000; exec \"$0\" exec --memory-max 16M --swap 4G -- echo ran";
    let limited = Command::new("sh").args(["-c", shell, env!("CARGO_BIN_EXE_mglru")]).output();
    let limited = limited.unwrap();
    let said = String::from_utf8_lossy(&limited.stderr);
    assert_eq!((limited.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(" bytes (ulimit -f), not 4294967296"), "{said}");
}

/// Unless a size was asked for, a program runs with what there is room for.
#[test]
fn a_host_with_little_room_has_a_small_swap_file() {
    if lacking() {
        return;
    }
    // In a source tree this builds the library, which the limit would not let it.
    let mglru = env!("CARGO_BIN_EXE_mglru");
    assert_eq!(exec(&["--memory-max", "16M", "--", "true"]).0, Some(0));
    let shell = "ulimit -f 2048; exec \"$0\" exec --memory-max 16M -- echo ran";
    let mut limited = Command::new("sh");
    limited.args(["-c", shell, mglru]);
    limited.env("MGLRU_PRELOAD", Path::new(mglru).with_file_name("libmglru_preload.so"));
    let run = limited.output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(String::from_utf8_lossy(&run.stdout), "ran\n", "{said}");
    assert!(said.starts_with("mglru exec: the swap file has "), "{said}");
}

/// The file is made when the heap has outgrown the budget.
#[test]
fn a_program_may_go_elsewhere_before_it_swaps_and_no_one_can_read_what_it_swaps() {
    if lacking() || Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: needs the pager and python3");
        return;
    }
    const PROGRAM: &str = "
import glob, os, random
os.umask(0); os.chdir('/')
r = random.Random(1); held = [r.randbytes(1 << 20) for _ in range(40)]
for at in glob.glob('/proc/self/fd/*'):
    if os.path.exists(at) and os.stat(at).st_size == 256 << 20:
        print(oct(os.stat(at).st_mode & 0o777), os.stat(at).st_nlink)";
    let folder = tempfile::tempdir_in(".").unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    let args = ["--memory-max", "16M", "--swap-dir", name, "--swap", "256M", "--"];
    let answer = exec(&[&args[..], &["python3", "-c", PROGRAM]].concat());
    assert_eq!(answer, (Some(0), "0o600 0".into(), String::new()));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_swap_file_that_cannot_be_written_is_named_with_the_error() {
    if lacking() || Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: needs the pager and python3");
        return;
    }
    const PROGRAM: &str = "
import random, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
r = random.Random(1); held = [r.randbytes(1 << 20) for _ in range(40)]";
    let args = ["--memory-max", "16M", "--swap-dir", ".", "--", "python3", "-c", PROGRAM];
    let (_, _, said) = exec(&args);
    let folder = std::env::current_dir().unwrap();
    let error = format!("the swap file in {}: File too large", folder.display());
    let out_of_memory = said.lines().find(|line| line.contains(" out of memory: "));
    let out_of_memory = out_of_memory.unwrap_or_default();
    assert!(out_of_memory.contains(&error), "{said}");
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
        // What fio shares between its threads is outside of so small a budget.
        let lines = error.lines().filter(|line| !line.contains(" outside of the budget at most: "));
        assert_eq!((status, lines.count()), (Some(0), 0), "{out}{error}");
        assert_eq!(out.matches("err= 0").count(), 2, "{out}");
    }
}

/// Shared memory, which no budget covers, 48 MiB of it.
const SHARED: &str = "import mmap, time
m = mmap.mmap(-1, 48 << 20)
m.write(b'x' * (48 << 20))
time.sleep(6)
print('end', flush=True)
time.sleep(SECONDS)";

#[test]
fn what_is_outside_of_the_budget_is_said_at_the_end() {
    let program = SHARED.replace("SECONDS", "0");
    let python = Command::new("python3").arg("--version").output().is_ok();
    if lacking() || !python {
        return println!("skipped: needs the pager, libjemalloc2 and python3");
    }
    let (status, out, said) = exec(&["--memory-max", "32M", "--", "python3", "-c", &program]);
    assert_eq!((status, out.as_str(), said.lines().count()), (Some(0), "end", 1), "{said}");
    let start = said.split_once(" MiB were outside of the budget at most: shared 48 MiB");
    let total = start.and_then(|(start, _)| start.strip_prefix("mglru exec: ")?.parse().ok());
    assert!(total.is_some_and(|mib: u32| (48..56).contains(&mib)), "{said}");
}

#[test]
fn strict_ends_the_program_and_all_below_it() {
    let python = Command::new("python3").arg("--version").output().is_ok();
    if lacking() || !python {
        return println!("skipped: needs the pager, libjemalloc2 and python3");
    }
    let program = SHARED.replace("SECONDS", "60");
    let shell = r#"sleep 61 & python3 -c "$0"; echo after"#;
    let through = ["sh", "-c", shell, &program];
    for command in [&["python3", "-c", &program][..], &through] {
        let ours = ["--memory-max", "32M", "--strict", "--"];
        let (status, out, said) = exec(&[&ours, command].concat());
        assert_eq!((status, out.as_str(), said.lines().count()), (Some(2), "", 1), "{said}");
        assert!(said.starts_with("mglru exec: --strict: "), "{said}");
        assert!(said.contains(" are outside of the budget: shared "), "{said}");
    }
    let plain = exec(&["--memory-max", "32M", "--strict", "--", "sh", "-c", "exit 7"]);
    assert_eq!(plain, (Some(7), String::new(), String::new()));
}
