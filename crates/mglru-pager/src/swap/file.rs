//! The swap file. What it holds means nothing once the pager is gone: its index and checksums are
//! in memory and never written, so no crash can tear them; the file has no name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::sys::{PAGE, direct};

/// A file of whole pages, open past the page cache.
#[derive(Debug)]
pub struct SwapFile {
    file: File,
}

impl SwapFile {
    /// A new file of `bytes`, all of them allocated, removed from its directory at once.
    pub fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let named = options.read(true).write(true).create_new(true).open(path)?;
        let opened = direct::reserve(&named, bytes).and_then(|()| direct::reopen(&named, true));
        std::fs::remove_file(path)?;
        Ok(Self { file: opened? })
    }
}

impl AsFd for SwapFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Pages that a file of so many bytes has room for.
pub fn blocks(bytes: u64) -> io::Result<u32> {
    u32::try_from(bytes / PAGE as u64)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a swap file over 16 TiB"))
}
