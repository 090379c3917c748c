//! Starting an unmodified program under a budget: which programs can be, and how.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

mod library;

pub use library::{build_folder, installed_library};

use crate::children::ForkPolicy;
use crate::engine::FaultEngine;
use crate::probe::probe;
use crate::running::LEAST_MAX;
use crate::swap;

/// Sets `memory.max` of the program, bytes.
pub const ENV_MAX: &str = "MGLRU_MEMORY_MAX";
/// Sets `memory.high`, bytes.
pub const ENV_HIGH: &str = "MGLRU_MEMORY_HIGH";
/// Shorter mappings are left to the kernel, bytes.
pub const ENV_LEAST: &str = "MGLRU_LEAST_MAPPING";
/// Gives the default of [`ENV_LEAST`], bytes.
pub const LEAST: usize = 1 << 20;
/// Heaps are managed, and this is how forks are: `serve` or `copy`.
pub const ENV_FORK: &str = "MGLRU_FORK";
/// Selects the engine that serves faults of file mappings: `thread` (unless set) or `sigbus`.
pub const ENV_FAULTS: &str = "MGLRU_FAULTS";
/// Shared mappings of files are managed too, if this is set to 1.
pub const ENV_SHARED_FILES: &str = "MGLRU_SHARED_FILES";
/// Sets the size of the swap file, bytes; none if 0.
pub const ENV_SWAP: &str = "MGLRU_SWAP";
/// Says where the swap file is; /var/tmp unless set.
pub const ENV_SWAP_DIR: &str = "MGLRU_SWAP_DIR";
/// Gives the default of [`ENV_SWAP_DIR`].
pub const SWAP_DIR: &str = "/var/tmp";
/// Says where the preload library is, if not beside the program that launches.
pub const ENV_LIBRARY: &str = "MGLRU_PRELOAD";

/// Memory outside of the budget ends the program: the process that was launched, by number.
pub const ENV_STRICT: &str = "MGLRU_STRICT";

/// Names the abstract socket of the process that writes the pager's trace events.
pub const ENV_TRACE_EVENTS: &str = "MGLRU_TRACE_EVENTS";

/// Sets the prefix of the names of sockets by which running pagers are seen and steered.
pub const ENV_CONTROL: &str = "MGLRU_CONTROL";

/// Names the socket of a process: an abstract name, which ends with the process, however that ends.
pub fn socket_of(prefix: &Path, pid: u32) -> PathBuf {
    format!("@{}/{pid}", prefix.display()).into()
}

/// Begins the message that a mapping of a file is not managed; the reason follows.
pub const LEFT: &str = "a mapping of a file stays with the kernel";

const SETUID: u32 = 0o6000;
const PT_INTERP: u32 = 3;

/// Says why a program cannot be launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no such program.
    #[error("`{0}` is not a program in PATH")]
    NotFound(String),
    /// It does not load libraries.
    #[error("`{0}` is statically linked: its mappings cannot be managed")]
    Static(PathBuf),
    /// It makes system calls by itself.
    #[error("`{0}` is a Go program: it maps memory without the C library")]
    Go(PathBuf),
    /// The loader ignores preloaded libraries for it.
    #[error("`{0}` is set-uid or set-gid: it takes no preloaded library")]
    SetUid(PathBuf),
    /// It is not for this machine.
    #[error("`{0}` is neither a 64-bit ELF program nor a script")]
    NotElf(PathBuf),
    /// The host lacks something.
    #[error("{0}: {1} ({2})")]
    Host(&'static str, String, &'static str),
    /// The budget does not hold the pager itself.
    #[error("memory.max: {0} bytes, but the least is {LEAST_MAX}")]
    TooSmall(u64),
    /// The swap file cannot be made there.
    #[error("swap file in {0}: {1}")]
    Swap(PathBuf, io::Error),
    /// The library that does it is missing.
    #[error("{0}")]
    NoLibrary(String),
    /// The program cannot be read.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

/// Sets a budget for a program's file mappings and its heap.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Names the preload library; looked for, and built in a source tree, where absent.
    pub library: Option<PathBuf>,
    /// Sets `memory.max`, bytes.
    pub memory_max: Option<u64>,
    /// Sets `memory.high`, bytes.
    pub memory_high: Option<u64>,
    /// Shorter mappings are left to the kernel, bytes.
    pub least: Option<u64>,
    /// Says how forks are, if heaps are to be managed.
    pub heap: Option<ForkPolicy>,
    /// Selects the engine that serves faults of file mappings.
    pub faults: FaultEngine,
    /// Manages shared mappings of files too, which other processes then see late.
    pub shared_files: bool,
    /// Sets the bytes of the swap file behind the compressed pool, which takes room when the pool
    /// is full.
    pub swap: Option<u64>,
    /// Says where the swap file is; /var/tmp unless set.
    pub swap_dir: Option<PathBuf>,
    /// Sets the prefix of its socket's name; without that it offers none.
    pub control: Option<PathBuf>,
    /// Memory outside of the budget ends the program.
    pub strict: bool,
    /// Says where trace events of reclaim go: the abstract socket of the process that writes them.
    pub trace_events: Option<String>,
}

impl Launch {
    /// Returns the command that runs `program` under the budget; arguments are the caller's to add.
    ///
    /// # Errors
    /// The program cannot be managed, or the preload library is missing.
    pub fn command(&self, program: &str) -> Result<Command, LaunchError> {
        if let Some(bytes) = self.memory_max.filter(|&bytes| bytes < LEAST_MAX) {
            return Err(LaunchError::TooSmall(bytes));
        }
        if let Some(lack) = probe().into_iter().find(|fact| fact.required && !fact.ok) {
            return Err(LaunchError::Host(lack.what, lack.detail, lack.fix));
        }
        let path = find(program)?;
        check(&path)?;
        let swap_dir = self.swap_folder()?;
        let mut command = Command::new(&path);
        let before = std::env::var("LD_PRELOAD").unwrap_or_default();
        let malloc = self.heap.and_then(|_| malloc()).unwrap_or_default();
        let library = self.library.clone().map_or_else(library::find, Ok)?;
        let preload = format!("{} {} {before}", library.display(), malloc.display());
        command.env("LD_PRELOAD", preload.trim_end());
        let settings = [
            (ENV_MAX, self.memory_max),
            (ENV_HIGH, self.memory_high),
            (ENV_LEAST, self.least),
            (ENV_SWAP, self.swap),
        ];
        for (name, value) in settings {
            value.map(|bytes| command.env(name, bytes.to_string()));
        }
        command.env(ENV_FAULTS, self.faults.name());
        command.env(ENV_SHARED_FILES, if self.shared_files { "1" } else { "0" });
        if let Some(fork) = self.heap {
            command.env(ENV_FORK, fork.name());
        }
        if let Some(name) = &self.trace_events {
            command.env(ENV_TRACE_EVENTS, name);
        }
        if self.strict {
            // The command is to be executed in place of this process.
            command.env(ENV_STRICT, std::process::id().to_string());
        }
        for (name, folder) in [(ENV_SWAP_DIR, &swap_dir), (ENV_CONTROL, &self.control)] {
            folder.as_ref().map(|folder| command.env(name, folder));
        }
        Ok(command)
    }
}

impl Launch {
    /// Where the swap file is to be, wherever the program goes meanwhile; `None`: there is none.
    fn swap_folder(&self) -> Result<Option<PathBuf>, LaunchError> {
        let Some(bytes) = self.swap.filter(|&bytes| bytes > 0) else { return Ok(None) };
        let folder = self.swap_dir.as_deref().unwrap_or(Path::new(SWAP_DIR));
        let refused = |error| LaunchError::Swap(folder.into(), error);
        let absolute = std::path::absolute(folder).map_err(refused)?;
        swap::check(&absolute, bytes).map_err(refused)?;
        Ok(Some(absolute))
    }
}

/// Tells how large a swap file may be in a folder, bytes: what the file system has room for, and
/// what a file of this process may have.
///
/// # Errors
/// Files cannot be made there.
pub fn swap_room(folder: &Path) -> io::Result<u64> {
    swap::room(folder)
}

fn find(program: &str) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound(program.into());
    if program.contains('/') {
        let path = PathBuf::from(program);
        return if path.is_file() { Ok(path) } else { Err(not_found()) };
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|dir| dir.join(program)).find(|p| p.is_file());
    found.ok_or_else(not_found)
}

/// Finds the malloc that is preloaded with the library, because it asks mmap for all its memory:
/// the C library's own calls cannot be stood in for. Looked for where distributions keep it.
pub fn malloc() -> Option<PathBuf> {
    const NAME: &str = "libjemalloc.so.2";
    const FOLDERS: [&str; 5] =
        ["/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64"];
    FOLDERS.iter().map(|folder| Path::new(folder).join(NAME)).find(|path| path.is_file())
}

/// Can the program be managed? Of a script, its interpreter.
fn check(path: &Path) -> Result<(), LaunchError> {
    let (mode, bytes) = read(path).map_err(|error| LaunchError::Io(path.into(), error))?;
    if mode & SETUID != 0 {
        return Err(LaunchError::SetUid(path.into()));
    }
    if let Some(script) = bytes.strip_prefix(b"#!") {
        let line = script.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_whitespace().next().unwrap_or_default();
        return check(Path::new(interpreter));
    }
    match program_headers(&bytes) {
        None => Err(LaunchError::NotElf(path.into())),
        Some(types) if !types.contains(&PT_INTERP) => Err(LaunchError::Static(path.into())),
        Some(_) if is_go(&bytes) => Err(LaunchError::Go(path.into())),
        Some(_) => Ok(()),
    }
}

fn read(path: &Path) -> io::Result<(u32, Vec<u8>)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((file.metadata()?.mode(), bytes))
}

/// The types of a 64-bit little-endian ELF file's program headers.
fn program_headers(elf: &[u8]) -> Option<Vec<u32>> {
    let half = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(elf.get(at..at + 4)?.try_into().ok()?));
    if elf.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let start = u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?) as usize;
    let (size, n) = (usize::from(half(54)?), usize::from(half(56)?));
    (0..n).map(|nth| word(start.checked_add(nth * size)?)).collect()
}

/// The Go linker marks what it makes.
fn is_go(elf: &[u8]) -> bool {
    const MARK: &[u8] = b"\xff Go buildinf:";
    elf.windows(MARK.len()).any(|window| window == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_load_libraries_are_taken() {
        assert!(check(&find("sh").unwrap()).is_ok());
        let refused = find("no-such-program-here").unwrap_err().to_string();
        assert_eq!(refused, "`no-such-program-here` is not a program in PATH");
    }

    #[test]
    fn a_budget_below_the_least_is_refused_before_anything_starts() {
        let launch = Launch { memory_max: Some(1 << 20), ..Launch::default() };
        let refused = launch.command("sh").unwrap_err().to_string();
        assert_eq!(refused, "memory.max: 1048576 bytes, but the least is 4194304");
    }

    #[test]
    fn what_cannot_be_managed_is_refused_with_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let refusal = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let text = check(&path).unwrap_err().to_string();
            text.split('`').nth(2).unwrap().trim().to_string()
        };
        assert_eq!(refusal(b"hello"), "is neither a 64-bit ELF program nor a script");
        let mut elf = vec![0u8; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56], elf[64]) = (64, 56, 1, 1);
        assert_eq!(refusal(&elf), "is statically linked: its mappings cannot be managed");
        elf[64] = PT_INTERP as u8;
        elf.extend_from_slice(b"\xff Go buildinf:");
        assert_eq!(refusal(&elf), "is a Go program: it maps memory without the C library");
        assert!(refusal(b"\x7fELF\x02\x01").contains("neither"), "cut short");
    }
}
