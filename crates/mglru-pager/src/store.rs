//! Where the pages of a mapping come from and are written back to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::{PAGE, direct, raw};

/// Backing for a mapping. Pages are read and written whole, at offsets that are multiples of
/// 4096; only the last may be short.
///
/// Calls come from threads of the pager and must not touch memory that it manages.
pub trait Store: Send + Sync {
    /// Fills `out` with what is at `offset`. Bytes beyond the end are zeros.
    ///
    /// # Errors
    /// Whoever touches the page gets SIGBUS.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes `content` at `offset`.
    ///
    /// # Errors
    /// The page stays dirty; the next flush reports the error.
    fn write_at(&self, offset: u64, content: &[u8]) -> io::Result<()>;

    /// Returns when everything written is durable.
    ///
    /// # Errors
    /// Something may not be.
    fn sync(&self) -> io::Result<()>;

    /// Where transfers of whole pages can be queued, if they can.
    fn queue(&self) -> Option<Queue<'_>> {
        None
    }
}

/// A descriptor that transfers can be queued on.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    /// The descriptor.
    pub fd: BorrowedFd<'a>,
    /// Where in it the mapping starts, bytes; a multiple of 4096.
    pub base: u64,
    /// Whole pages of the mapping that it holds; those beyond go through the store's calls.
    pub nr_pages: u32,
}

/// A file, past the page cache where its file system can.
#[derive(Debug)]
pub struct FileStore {
    direct: File,
    /// For the last page, if the file does not end with a whole one.
    buffered: File,
    len: u64,
}

impl FileStore {
    /// The file as it is now. What the page cache holds of it is written out and dropped.
    ///
    /// # Errors
    /// It cannot be opened again, read for a private mapping or written for a shared one.
    pub fn new(file: &File, writable: bool) -> io::Result<Self> {
        if writable {
            raw::sync_data(file.as_fd())?;
        }
        direct::forget_cached(file)?;
        let len = file.metadata()?.len();
        Ok(Self { direct: direct::reopen(file, writable)?, buffered: file.try_clone()?, len })
    }

    /// Its length when it was opened, bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Nothing to map.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Store for FileStore {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        raw::read_all(self.buffered.as_fd(), out, offset)
    }

    fn write_at(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        let len = self.len.saturating_sub(offset).min(content.len() as u64);
        raw::write_all(self.buffered.as_fd(), &content[..len as usize], offset)
    }

    fn sync(&self) -> io::Result<()> {
        raw::sync_data(self.buffered.as_fd())
    }

    fn queue(&self) -> Option<Queue<'_>> {
        let nr_pages = (self.len / PAGE as u64).min(u32::MAX.into()) as u32;
        Some(Queue { fd: self.direct.as_fd(), base: 0, nr_pages })
    }
}
