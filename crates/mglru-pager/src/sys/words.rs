//! Words of memory that two processes share: a sealed file in memory, mapped by both.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU64;

use super::memory::memory_file;
use super::{PAGE, checked, raw};

/// The file keeps its size: what is mapped cannot be cut off.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Maps words that another process may map too.
#[derive(Debug)]
pub struct Words {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its mapping, and all access is atomic.
unsafe impl Send for Words {}
// SAFETY: all access is atomic.
unsafe impl Sync for Words {}

impl Words {
    /// Makes at least `n` zeros, and the file that another process maps. All of it has its memory
    /// already: a store never fails for want of it.
    pub fn create(n: usize) -> io::Result<(Self, File)> {
        let bytes = (n * size_of::<u64>()).next_multiple_of(PAGE);
        let file = memory_file(c"mglru events", bytes as u64, libc::MFD_ALLOW_SEALING)?;
        let fd = file.as_raw_fd();
        // SAFETY: takes numbers only.
        checked(unsafe { libc::fallocate(fd, 0, 0, bytes as libc::off_t) })?;
        // SAFETY: takes numbers only.
        checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) })?;
        Ok((Self::map(&file)?, file))
    }

    /// Maps the words of a file that [`Self::create`] made. Children of a fork do not inherit
    /// them: two would write where one does.
    pub fn map(file: &File) -> io::Result<Self> {
        // SAFETY: takes numbers only.
        let seals = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) })?;
        let bytes = file.metadata()?.len() as usize;
        if seals & SEALS != SEALS || bytes == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let start = raw::map(bytes, prot, libc::MAP_SHARED, Some(file.as_fd()))?;
        let words = Self { start, bytes };
        // SAFETY: the range is the mapping just made, and what it holds does not change.
        unsafe { raw::advise(start, bytes, libc::MADV_DONTFORK) }?;
        Ok(words)
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, this long, of a file that keeps its size, and any
        // bytes are values. Other processes that have it mapped store whole words.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes / size_of::<u64>()) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and borrowed by nobody.
        unsafe { raw::unmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn what_one_mapping_stores_the_other_loads() {
        let (ours, file) = Words::create(513).unwrap();
        let theirs = Words::map(&file).unwrap();
        assert_eq!((ours.len(), theirs.len(), ours[512].load(Relaxed)), (1024, 1024, 0));
        theirs[512].store(7, Relaxed);
        assert_eq!(ours[512].load(Relaxed), 7);
    }

    #[test]
    fn a_file_that_could_be_cut_off_is_refused() {
        let (_, file) = Words::create(1).unwrap();
        assert!(file.set_len(0).is_err());
        let plain = tempfile::tempfile().unwrap();
        plain.set_len(4096).unwrap();
        assert!(Words::map(&plain).is_err());
    }
}
