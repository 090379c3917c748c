//! Small programs in C that are run plain and under the library: both must end alike.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::Mutex;

use mglru_pager::{KEPT_BITS, launch, probe};

use super::library;

/// A program built from its source beside these tests, in a folder of its own.
pub struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    /// Builds `programs/NAME.c`; `None`, with a reason, where it cannot run.
    pub fn build(name: &str) -> Option<Self> {
        let lacks = probe().into_iter().find(|fact| !fact.ok && fact.what != KEPT_BITS);
        if let Some(fact) = lacks {
            println!("skipped: {} ({})", fact.detail, fact.fix);
            return None;
        }
        let folder = tempfile::tempdir_in(".").unwrap();
        let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let path = folder.path().join(name).canonicalize().unwrap_or(folder.path().join(name));
        let built = Command::new("cc")
            .args(["-O1", "-pthread", "-w", "-o"])
            .args([path.as_os_str(), source.as_ref()])
            .status();
        assert!(built.unwrap().success(), "{name}.c");
        let path = path.canonicalize().unwrap();
        Some(Self { folder, path })
    }

    /// The file that it works on.
    pub fn file(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("file")
    }

    /// The command without the library.
    pub fn plain(&self, way: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(self.file()).arg(way).current_dir(&self.folder);
        command
    }

    /// The command under the library, its heap managed.
    pub fn managed(&self, way: &str, faults: &str) -> Command {
        let mut command = self.plain(way);
        let malloc = launch::malloc().unwrap_or_default();
        command.env("LD_PRELOAD", format!("{} {}", library().display(), malloc.display()));
        command.env(launch::ENV_MAX, (32 << 20).to_string()).env(launch::ENV_FORK, "serve");
        command.env(launch::ENV_FAULTS, faults);
        command.env(launch::ENV_SWAP, (1u64 << 30).to_string());
        command.env(launch::ENV_SWAP_DIR, self.folder.path().canonicalize().unwrap());
        command
    }
}

/// One program at a time: each is given time.
static ALONE: Mutex<()> = Mutex::new(());

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn ended(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), status.signal())
}

fn bytes(file: &Path, byte: u8) -> usize {
    std::fs::read(file).unwrap().iter().filter(|&&b| b == byte).count()
}

const WAYS: [&str; 33] = [
    "return",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "raw exit_group",
    "exit in a thread",
    "execl",
    "execl, many",
    "execlp",
    "execle",
    "execle, many",
    "execv",
    "execvp",
    "raw execve",
    "abort",
    "fault",
    "trap",
    "SIGTERM",
    "SIGINT",
    "SIGPIPE",
    "SIGRTMIN+3",
    "alarm",
    "raw kill",
    "SIGTERM again by default",
    "SIGKILL",
    "munmap, killed",
    "close, killed",
    "sync, killed",
    "syncfs, killed",
    "fsync, killed",
    "msync async, killed",
    "killed",
];

#[test]
fn stores_to_a_shared_file_are_in_it_however_the_program_ends() {
    let _alone = ALONE.lock();
    let Some(program) = Program::build("ends") else { return };
    for way in WAYS {
        let plain = ended(run(&mut program.plain(way)).status);
        for (faults, shared) in [("thread", "0"), ("sigbus", "0"), ("thread", "1")] {
            if (way, shared) == ("killed", "1") {
                continue; // This is what `--manage-shared-files` says that it does not keep.
            }
            let mut command = program.managed(way, faults);
            let output = run(command.env(launch::ENV_SHARED_FILES, shared));
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(ended(output.status), plain, "{way}, {faults}, {shared}: {said}");
            assert_eq!(bytes(&program.file(), b'x'), 8 << 20, "{way}, {faults}, {shared}: {said}");
        }
    }
}

#[test]
fn a_program_does_what_it_likes_with_its_descriptors() {
    let _alone = ALONE.lock();
    let Some(program) = Program::build("descriptors") else { return };
    let ways = ["dup2 3", "dup2 9", "dup2 13", "dup3 7", "dup2 200", "dup2 1000"];
    let all = ["close all", "close twice the limit", "close_range", "closefrom", "replace all"];
    for way in ways.into_iter().chain(all).chain(["stderr", "lower the limit", "as they are"]) {
        let plain = run(&mut program.plain(way));
        let faults = if way.starts_with("dup2") { "sigbus" } else { "thread" };
        let output = run(&mut program.managed(way, faults));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(ended(output.status), ended(plain.status), "{way}: {said}");
        assert_eq!(output.stdout, plain.stdout, "{way}: {said}");
        let written = std::fs::read_to_string(program.file()).unwrap();
        assert_eq!(written, "record1\nrecord2\n", "{way}");
    }
}

#[test]
fn a_file_put_at_the_pagers_number_by_the_kernel_itself_is_not_written() {
    let _alone = ALONE.lock();
    let Some(program) = Program::build("descriptors") else { return };
    let inner = program.managed("behind every library", "thread");
    let mut command = Command::new("sh");
    command.arg("-c").arg("ulimit -n 4096; exec \"$0\" \"$@\"").arg(inner.get_program());
    command.args(inner.get_args()).current_dir(inner.get_current_dir().unwrap());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run(&mut command);
    let said = String::from_utf8_lossy(&output.stderr);
    let written = std::fs::read_to_string(program.file()).unwrap();
    if output.status.success() {
        // This process may exceed its limit: beyond it no number can be replaced.
        return assert_eq!(written, "record1\nrecord2\n");
    }
    assert!("record1\n".starts_with(&written), "{written:?} {said}");
    assert!(said.contains("system call of its own: the memory is lost"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
}
