//! A program under the preload library: this test again, in a child. Needs what the pager needs;
//! where that is refused the test says so and is skipped.

#[path = "../../../mglru-pager/tests/support/library.rs"]
mod built;
mod calls;
mod ends;
mod files;
mod private;
mod programs;
mod signals;
mod unmanaged;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use mglru_pager::{KEPT_BITS, launch, probe};

const PAGE: usize = 4096;
const PAGES: usize = 4096;
const ALL: usize = PAGES * PAGE;
const READ: i32 = libc::PROT_READ;
const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;
const CHILD: &str = "MGLRU_PRELOAD_TEST_FILE";

/// The library, built once.
fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    // A child of this test runs under the library: it is built, and not to be built again.
    let known = std::env::var_os("MGLRU_PRELOAD_TEST_LIBRARY").map(PathBuf::from);
    BUILT
        .get_or_init(|| {
            known.unwrap_or_else(|| built::built("mglru-preload").join("libmglru_preload.so"))
        })
        .clone()
}

fn child(test: &str, file: &Path) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    child.env("LD_PRELOAD", library()).env(launch::ENV_MAX, (6 << 20).to_string());
    child.env(launch::ENV_SHARED_FILES, "1");
    child.env(CHILD, file).env("MGLRU_PRELOAD_TEST_LIBRARY", library());
    child
}

/// Runs `test` once more under the library; `None` in the child, or where it cannot run.
fn parent(test: &str) -> Option<(tempfile::NamedTempFile, String)> {
    parent_with(test, "thread")
}

/// As [`parent`], with faults served so.
fn parent_with(test: &str, faults: &str) -> Option<(tempfile::NamedTempFile, String)> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    if let Some(fact) = probe().into_iter().find(|fact| fact.required && !fact.ok) {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        return None;
    }
    let file = tempfile::NamedTempFile::new_in(".").unwrap();
    file.as_file().set_len(ALL as u64).unwrap();
    let output = child(test, file.path()).env(launch::ENV_FAULTS, faults).output().unwrap();
    let text = but_for_outside(&output.stderr);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
    Some((file, text))
}

/// What a program said, but for what is outside of its budget: this test's own buffers.
fn but_for_outside(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let other = said.lines().filter(|line| !line.contains(" outside of the budget at most: "));
    other.map(|line| format!("{line}\n")).collect()
}

/// A Python program under the library with its heap managed; what it printed. `None`: it cannot
/// run here.
fn python(program: &str, fork: &str) -> Option<String> {
    let output = python_with(program, fork, 1 << 30)?;
    let said = but_for_outside(&output.stderr);
    assert!(output.status.success(), "{:?} {said}", output.status);
    assert!(said.is_empty(), "{said}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// As [`python`], with so many bytes of swap file, however it ended.
fn python_with(program: &str, fork: &str, swap: u64) -> Option<Output> {
    let Some(malloc) = launch::malloc() else {
        println!("skipped: no libjemalloc.so.2 here");
        return None;
    };
    let lacks = probe().into_iter().find(|fact| !fact.ok && fact.what != KEPT_BITS);
    let runs = Command::new("python3").arg("-c").output().is_ok();
    if let Some(fact) = lacks.filter(|_| runs) {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        return None;
    } else if !runs {
        println!("skipped: no python3 here");
        return None;
    }
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut child = Command::new("python3");
    child.args(["-c", program]);
    child.env("LD_PRELOAD", format!("{} {}", library().display(), malloc.display()));
    child.env(launch::ENV_MAX, (12 << 20).to_string()).env(launch::ENV_FORK, fork);
    child.env(launch::ENV_SWAP, swap.to_string()).env(launch::ENV_SWAP_DIR, folder.path());
    Some(child.output().unwrap())
}

fn open() -> Option<File> {
    let path = std::env::var_os(CHILD)?;
    Some(File::options().read(true).write(true).open(path).unwrap())
}

/// Maps all of it, as a C program would.
fn map(file: &File) -> &'static mut [u8] {
    try_map(file, 0..ALL, BOTH, libc::MAP_SHARED).expect("it is mapped")
}

/// Maps a range of it; `None`: errno says why not.
fn try_map(file: &File, range: Range<usize>, prot: i32, kind: i32) -> Option<&'static mut [u8]> {
    let (none, fd, at) = (std::ptr::null_mut(), file.as_raw_fd(), range.start as i64);
    // SAFETY: a new mapping, used by one test alone until it is unmapped.
    unsafe {
        let start = libc::mmap(none, range.len(), prot, kind, fd, at);
        let mapped = start != libc::MAP_FAILED;
        mapped.then(|| std::slice::from_raw_parts_mut(start.cast(), range.len()))
    }
}

fn unmap(map: &'static mut [u8]) {
    // SAFETY: it was mapped by this test and is not used again.
    assert_eq!(unsafe { libc::munmap(map.as_mut_ptr().cast(), map.len()) }, 0);
}

/// Is the pager at work in this process?
fn is_managed() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains("memfd:mglru")
}

fn stamp(map: &mut [u8], salt: u8) {
    (0..PAGES).for_each(|p| map[p * PAGE + p % PAGE] = (p as u8) ^ salt);
}

fn is_stamped(content: &[u8], salt: u8) -> bool {
    (0..PAGES).all(|p| content[p * PAGE + p % PAGE] == (p as u8) ^ salt)
}

#[test]
fn stores_reach_the_file_through_every_door() {
    if let Some((file, _)) = parent("stores_reach_the_file_through_every_door") {
        return assert!(is_stamped(&std::fs::read(file.path()).unwrap(), 0x33));
    }
    let Some(mut file) = open() else { return };
    let memory = map(&file);
    assert!(is_managed());
    stamp(memory, 0x11);
    let mut content = Vec::new();
    file.read_to_end(&mut content).unwrap();
    assert!(is_stamped(&content, 0x11), "read(2) sees stores");
    stamp(&mut content, 0x22);
    file.rewind().unwrap();
    file.write_all(&content).unwrap();
    assert!(is_stamped(memory, 0x22), "loads see write(2)");
    file.write_all_at(&[7], 9 * PAGE as u64 + 100).unwrap();
    assert_eq!(memory[9 * PAGE + 100], 7);
    let (mut low, mut high) = ([0u8; 101], [0u8; 1]);
    file.seek(std::io::SeekFrom::Start(9 * PAGE as u64)).unwrap();
    memory[9 * PAGE + 101] = 9;
    let mut buffers = [std::io::IoSliceMut::new(&mut low), std::io::IoSliceMut::new(&mut high)];
    assert_eq!(file.read_vectored(&mut buffers).unwrap(), 102);
    assert_eq!((low[100], high[0]), (7, 9), "readv(2) sees stores");
    file.seek(std::io::SeekFrom::Start(9 * PAGE as u64 + 100)).unwrap();
    let buffers = [std::io::IoSlice::new(&[0]), std::io::IoSlice::new(&[5])];
    assert_eq!(file.write_vectored(&buffers).unwrap(), 2);
    assert_eq!(memory[9 * PAGE + 100..][..2], [0, 5], "loads see writev(2)");
    memory[9 * PAGE + 101] = content[9 * PAGE + 101];
    file.sync_all().unwrap();
    unmap(memory);
    assert!(!is_managed(), "the last unmapping ends it");
    let again = map(&file);
    assert!(is_stamped(again, 0x22));
    stamp(again, 0x33);
    // Left mapped and dirty: the end of the process writes it.
}

#[test]
fn locked_pages_of_a_file_stay() {
    if parent("locked_pages_of_a_file_stay").is_some() {
        return;
    }
    let Some(file) = open() else { return };
    let memory = map(&file);
    stamp(memory, 0x77);
    let (start, len) = (memory.as_ptr(), 64 * PAGE);
    // SAFETY: locks memory of this test's.
    assert_eq!(unsafe { libc::mlock(start.cast(), len) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT) }, 0, "more than the budget is not");
    stamp(memory, 0x78);
    let mut resident = [0u8; 64];
    // SAFETY: a byte for each page.
    unsafe { libc::mincore(start.cast_mut().cast(), len, resident.as_mut_ptr()) };
    assert!(resident.iter().all(|r| r & 1 == 1));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::munlock(start.cast(), len) }, 0);
    for _ in 0..3 {
        assert!(is_stamped(memory, 0x78));
    }
    // SAFETY: as above.
    unsafe { libc::mincore(start.cast_mut().cast(), len, resident.as_mut_ptr()) };
    assert!(resident.iter().any(|r| r & 1 == 0), "unlocked they may go");
}

#[test]
fn a_forked_child_sees_the_file_as_it_was() {
    if let Some((file, _)) = parent("a_forked_child_sees_the_file_as_it_was") {
        return assert!(is_stamped(&std::fs::read(file.path()).unwrap(), 0x55));
    }
    let Some(file) = open() else { return };
    let memory = map(&file);
    assert!(is_managed());
    stamp(memory, 0x44);
    // SAFETY: the child only reads memory and leaves.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = i32::from(!is_stamped(memory, 0x44));
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child saw every store");
    assert!(is_stamped(memory, 0x44), "and the parent lost none");
    stamp(memory, 0x55);
}

#[test]
fn a_second_process_is_refused_what_a_first_manages() {
    if parent("a_second_process_is_refused_what_a_first_manages").is_some() {
        return;
    }
    let Some(file) = open() else { return };
    let memory = map(&file);
    stamp(memory, 1);
    let path = std::env::var_os(CHILD).unwrap();
    let test = "stores_reach_the_file_through_every_door";
    let output = child(test, Path::new(&path)).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("another process manages a file"), "{text}");
}

/// Resident bytes of private memory that is readable and writable, by the kernel's count.
const RESIDENT: &str = "
def resident():
    total, heap = 0, False
    for line in open('/proc/self/smaps'):
        word = line.split()[0]
        if '-' in word and not word.endswith(':'):
            heap = 'rw-p 00000000 00:00 0' in line and '[stack]' not in line
        elif word == 'Rss:' and heap:
            total += int(line.split()[1])
    return total
";

#[test]
fn the_heap_of_an_unmodified_program_stays_within_its_budget() {
    let program = format!(
        "{RESIDENT}
rows = [bytes([n % 251]) * 3000 for n in range(16000)]
kept = all(row == bytes([n % 251]) * 3000 for n, row in enumerate(rows))
print(kept, resident() // 1024)"
    );
    let Some(said) = python(&program, "serve") else { return };
    let (kept, mib) = said.split_once(' ').unwrap();
    assert_eq!(kept, "True");
    // 48 MB of rows; 12 MiB of budget, and what was there before the library was.
    assert!(mib.parse::<u32>().unwrap() < 24, "{mib} MiB");
}

#[test]
fn what_is_reserved_first_and_opened_later_stays_within_the_budget() {
    let program = format!(
        "{RESIDENT}
import ctypes
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
ALL, HALF, PAGE, ANON, FIXED = 96 << 20, 48 << 20, 4096, 0x22, 0x10
# As InnoDB does: reserved whole, opened by mprotect; as a Java heap: mapped over, and given up so.
start = c.mmap(None, ALL, 0, ANON | 0x4000, -1, 0)
assert c.mprotect(start, HALF, 3) == 0
assert c.mmap(start + HALF, HALF, 3, ANON | FIXED, -1, 0) == start + HALF
at = lambda n: ctypes.c_uint32.from_address(start + n * PAGE)
for n in range(ALL // PAGE):
    at(n).value = n + 1
kept = all(at(n).value == n + 1 for n in range(ALL // PAGE))
mib = resident() // 1024
assert c.mmap(start, HALF, 0, ANON | FIXED | 0x4000, -1, 0) == start
assert c.mprotect(start, HALF, 3) == 0
zeros = all(at(n).value == 0 for n in range(0, HALF // PAGE, 7))
rest = all(at(n).value == n + 1 for n in range(HALF // PAGE, ALL // PAGE))
print(kept, zeros, rest, c.munmap(start, ALL), mib)"
    );
    let Some(said) = python(&program, "serve") else { return };
    let (right, mib) = said.rsplit_once(' ').unwrap();
    assert_eq!(right, "True True True 0");
    assert!(mib.parse::<u32>().unwrap() < 36, "{mib} MiB");
}

#[test]
fn forked_children_have_what_their_parent_had() {
    for fork in ["serve", "copy"] {
        let program = "
import os
rows = [bytes([n % 251]) * 3000 for n in range(10000)]
right = lambda salt: all(row == bytes([(n + salt) % 251]) * 3000 for n, row in enumerate(rows))
pid = os.fork()
if pid == 0:
    os._exit(0 if right(0) else 1)
for n in range(len(rows)):
    rows[n] = bytes([(n + 1) % 251]) * 3000
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), right(1))";
        let Some(said) = python(program, fork) else { return };
        assert_eq!(said, "0 True", "{fork}");
    }
}

#[test]
fn a_child_outlives_its_parent() {
    let program = "
import os, sys
rows = [bytes([n % 251]) * 3000 for n in range(10000)]
pipe = os.pipe()
if os.fork() == 0:
    os.read(pipe[0], 1)  # until the parent has ended
    right = all(row == bytes([n % 251]) * 3000 for n, row in enumerate(rows))
    print(right, flush=True)
    os._exit(0)
os.close(pipe[0])";
    let Some(said) = python(&program.replace("os.read", "os.close(pipe[1]); os.read"), "serve")
    else {
        return;
    };
    assert_eq!(said, "True");
}

#[test]
fn a_program_without_room_ends_by_sigbus_and_learns_why() {
    let program = "import os\nrows = [os.urandom(3000) for n in range(16000)]";
    let Some(output) = python_with(program, "serve", 0) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{said}");
    let lines = said.lines().filter(|line| line.starts_with("mglru-pager: /: out of memory: "));
    assert_eq!(lines.count(), 1, "{said}");
}
