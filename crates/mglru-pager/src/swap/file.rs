//! The swap file. What it holds means nothing once the pager is gone: its index and checksums are
//! in memory and never written, so no crash can tear them; the file has no name, and nobody else
//! may read it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::sys::{PAGE, direct, held, raw};

/// Holds a file of whole pages, open past the page cache.
#[derive(Debug)]
pub struct SwapFile {
    file: File,
}

impl SwapFile {
    /// Makes a new, empty file in a folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let file = direct::unnamed(folder)?;
        Ok(Self { file: direct::reopen(&file, true).and_then(held::keep)? })
    }

    /// Allocates `bytes` of it.
    pub fn reserve(self, bytes: u64) -> io::Result<Self> {
        direct::reserve(&self.file, bytes)?;
        Ok(self)
    }
}

impl AsFd for SwapFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Holds the file, which takes room when the first page is to go there, and the result of that. It
/// is made at once: later the program may have another root folder, or be another user.
#[derive(Debug)]
pub struct LazyFile {
    folder: PathBuf,
    bytes: u64,
    empty: Mutex<Option<io::Result<SwapFile>>>,
    made: OnceLock<Option<SwapFile>>,
    failure: OnceLock<String>,
}

impl LazyFile {
    /// Makes one in a folder, which is to have so many bytes. A failure is reported when the file
    /// is needed.
    pub fn new(folder: PathBuf, bytes: u64) -> Self {
        let empty = Mutex::new(Some(SwapFile::create(&folder)));
        Self { folder, bytes, empty, made: OnceLock::new(), failure: OnceLock::new() }
    }

    /// Gives the file, with its room; `None`: it could not be made.
    pub fn get(&self) -> Option<&SwapFile> {
        self.made.get_or_init(|| self.make().inspect_err(|error| self.note(error)).ok()).as_ref()
    }

    fn make(&self) -> io::Result<SwapFile> {
        let empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner).take();
        empty.expect("it is made once")?.reserve(self.bytes)
    }

    /// Says that the file cannot be made or written, the first time: later failures follow from
    /// the same cause.
    pub fn note(&self, error: &io::Error) {
        let said = || {
            let failure = format!("the swap file in {}: {error}", self.folder.display());
            raw::say(&failure);
            failure
        };
        self.failure.get_or_init(said);
    }

    /// Tells whether the file could not be made, or written.
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Says why no page goes there any more.
    pub fn why_full(&self) -> String {
        let full =
            || format!("the swap file in {} is full ({} bytes)", self.folder.display(), self.bytes);
        self.failure.get().cloned().unwrap_or_else(full)
    }
}

/// Finds out whether a swap file of `bytes` can be made in a folder, before anything depends on it.
///
/// # Errors
/// There is no such folder, or files cannot be made there, or not so large.
pub fn check(folder: &Path, bytes: u64) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::other(why));
    blocks(bytes)?;
    if !std::fs::metadata(folder)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    let most = raw::longest_file();
    if bytes > most {
        return refused(format!("a file may have {most} bytes (ulimit -f), not {bytes}"));
    }
    let file = direct::unnamed(folder)?;
    let room = direct::room(&file)?;
    if bytes > room {
        return refused(format!("there is room for {room} bytes, not for {bytes}"));
    }
    // Some file systems cannot set room aside at all.
    direct::reserve(&file, bytes.min(PAGE as u64))
}

/// Tells how large a swap file may be in a folder, bytes.
pub fn room(folder: &Path) -> io::Result<u64> {
    let room = direct::unnamed(folder).and_then(|file| direct::room(&file))?;
    Ok(room.min(raw::longest_file()))
}

/// Counts the pages that a file of so many bytes has room for.
pub fn blocks(bytes: u64) -> io::Result<u32> {
    u32::try_from(bytes / PAGE as u64)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a swap file over 16 TiB"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn the_file_has_no_name_and_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let swap = SwapFile::create(folder.path()).and_then(|swap| swap.reserve(1 << 20)).unwrap();
        let meta = swap.file.metadata().unwrap();
        assert_eq!((meta.nlink(), meta.mode() & 0o777, meta.len()), (0, 0o600, 1 << 20));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn the_file_is_there_from_the_start_and_takes_room_when_it_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let lazy = LazyFile::new(folder.path().into(), 1 << 20);
        let blocks = |swap: &SwapFile| swap.file.metadata().unwrap().blocks();
        {
            let empty = lazy.empty.lock().unwrap();
            assert_eq!(blocks(empty.as_ref().unwrap().as_ref().unwrap()), 0);
        }
        // The program may not reach the folder any more.
        folder.close().unwrap();
        assert!(blocks(lazy.get().unwrap()) >= (1 << 20) / 512);
    }

    #[test]
    fn a_folder_that_cannot_hold_swap_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |path: &Path, bytes| check(path, bytes).unwrap_err().to_string();
        check(folder.path(), 1 << 20).unwrap();
        assert!(refusal(&folder.path().join("none"), 4096).starts_with("No such file"));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(refusal(&file, 4096).starts_with("Not a directory"));
        assert!(refusal(folder.path(), 15 << 40).starts_with("there is room for "));
        assert!(refusal(folder.path(), 17 << 40).ends_with("over 16 TiB"));
        let closed = std::fs::Permissions::from_mode(0o500);
        std::fs::set_permissions(folder.path(), closed).unwrap();
        match check(folder.path(), 4096) {
            Ok(()) => println!("skipped: this user may write anywhere"),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }

    #[test]
    fn what_failed_first_is_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let full = LazyFile::new(folder.path().into(), 4096);
        assert!(full.get().is_some());
        assert_eq!(full.why_full(), format!("the swap file in {at} is full (4096 bytes)"));
        full.note(&io::Error::from_raw_os_error(libc::EIO));
        full.note(&io::Error::from_raw_os_error(libc::ENOSPC));
        let eio = format!("the swap file in {at}: Input/output error (os error 5)");
        assert_eq!(full.why_full(), eio);
        let none = LazyFile::new(folder.path().join("none"), 4096);
        assert!(none.get().is_none() && none.why_full().contains("none: No such file"));
    }
}
