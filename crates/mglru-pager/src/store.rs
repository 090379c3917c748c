//! Where the pages of a mapping come from and are written back to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::{PAGE, direct, held, raw};

/// Backs a mapping. Pages are read and written whole, at offsets that are multiples of 4096; only
/// the last may be short.
///
/// Calls come from threads of the pager and must not touch memory that it manages.
pub trait Store: Send + Sync {
    /// Fills `out` with what is at `offset`. Bytes beyond the end are zeros.
    ///
    /// # Errors
    /// A thread that touches the page gets SIGBUS.
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

/// Describes a descriptor on which transfers can be queued.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    /// Holds the descriptor.
    pub fd: BorrowedFd<'a>,
    /// Holds the offset in it where the mapping starts, bytes; a multiple of 4096.
    pub base: u64,
    /// Counts the whole pages of the mapping that it holds; those beyond go through the store's
    /// calls.
    pub nr_pages: u32,
}

/// Stores pages in a file or a part of one, past the page cache where its file system can.
#[derive(Debug)]
pub struct FileStore {
    direct: File,
    /// For the last page, if the file does not end with a whole one.
    buffered: File,
    /// Where in the file it starts.
    base: u64,
    /// Its length from there on, bytes.
    len: AtomicU64,
    /// Bounds the bytes of it.
    most: u64,
    /// Past the page cache and through it, once it may be written although it was opened to be
    /// read.
    writable: OnceLock<(File, File)>,
}

impl FileStore {
    /// Stores pages in all of the file as it is now. What the page cache holds of it is written out
    /// and dropped.
    ///
    /// # Errors
    /// It cannot be opened again, read for a private mapping or written for a shared one.
    pub fn new(file: &File, writable: bool) -> io::Result<Self> {
        Self::part(file, writable, 0, u64::MAX)
    }

    /// Opens at most `len` bytes of a file from `base` on, a multiple of 4096.
    ///
    /// # Errors
    /// As [`Self::new`]; `base` is no multiple (`InvalidInput`).
    pub fn part(file: &File, writable: bool, base: u64, len: u64) -> io::Result<Self> {
        if base % PAGE as u64 != 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if writable {
            raw::sync_data(file.as_fd())?;
        }
        direct::forget_cached(file)?;
        let (direct, buffered) = opened(file, writable)?;
        let (most, len) = (len, AtomicU64::new(0));
        let store = Self { direct, buffered, base, len, most, writable: OnceLock::new() };
        store.learn_len()?;
        Ok(store)
    }

    /// Lets a store that was opened to be read be written too, through the file that `file` is.
    ///
    /// # Errors
    /// It cannot be opened so again.
    pub fn allow_writes(&self, file: &File) -> io::Result<()> {
        let both = opened(file, true)?;
        // Somebody else's are as good.
        let _ = self.writable.set(both);
        Ok(())
    }

    /// Takes note of how long the file is by now.
    ///
    /// # Errors
    /// It does not say.
    pub fn learn_len(&self) -> io::Result<()> {
        let len = self.buffered.metadata()?.len();
        self.set_len(len.saturating_sub(self.base).min(self.most));
        Ok(())
    }

    fn direct(&self) -> &File {
        self.writable.get().map_or(&self.direct, |(direct, _)| direct)
    }

    fn buffered(&self) -> &File {
        self.writable.get().map_or(&self.buffered, |(_, buffered)| buffered)
    }

    /// Returns its length, bytes: when it was opened, or as it was last [set](Self::set_len).
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Notes that the file was made shorter or longer. What lies beyond its end cannot be read, and
    /// is not written.
    pub fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    /// Tells whether there is nothing to map.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A file past the page cache, and through it.
fn opened(file: &File, writable: bool) -> io::Result<(File, File)> {
    let kept = |file: io::Result<File>| file.and_then(held::keep);
    Ok((kept(direct::reopen(file, writable))?, kept(direct::buffered(file, writable))?))
}

impl Store for FileStore {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset >= self.len() {
            // Perhaps it grew.
            self.learn_len()?;
        }
        if offset >= self.len() {
            return Err(io::Error::from_raw_os_error(libc::ENXIO));
        }
        raw::read_all(self.buffered().as_fd(), out, self.base + offset)
    }

    fn write_at(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        let len = self.len().saturating_sub(offset).min(content.len() as u64);
        raw::write_all(self.buffered().as_fd(), &content[..len as usize], self.base + offset)
    }

    fn sync(&self) -> io::Result<()> {
        raw::sync_data(self.buffered().as_fd())
    }

    fn queue(&self) -> Option<Queue<'_>> {
        let nr_pages = (self.len() / PAGE as u64).min(u32::MAX.into()) as u32;
        Some(Queue { fd: self.direct().as_fd(), base: self.base, nr_pages })
    }
}
