//! Shared memory of an arena: a memfd that holds the pages, and views of it that fault.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::uffd::Span;
use super::{PAGE, checked, held, raw};

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

/// Holds the pages of an arena, resident or not.
#[derive(Debug)]
pub struct Memory {
    file: File,
    /// Calls under way that hold the file's lock.
    changing: AtomicU32,
}

impl Memory {
    /// Creates an empty one of `len` bytes.
    pub fn new(len: u64) -> io::Result<Self> {
        if len > raw::longest_file() {
            // The call would not fail: it kills the process.
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        // SAFETY: the name is a C string; the call returns a new descriptor.
        let fd = checked(unsafe { libc::memfd_create(c"mglru".as_ptr(), libc::MFD_CLOEXEC) })?;
        // SAFETY: the descriptor is new and ours.
        let file = held::keep(unsafe { File::from_raw_fd(fd) })?;
        file.set_len(len)?;
        Ok(Self { file, changing: AtomicU32::new(0) })
    }

    /// Reads resident pages.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        raw::read_all(self.file.as_fd(), out, offset)
    }

    /// Makes pages resident without mapping them.
    pub fn write(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        self.changing(|| raw::write_all(self.file.as_fd(), content, offset))
    }

    /// Gives pages back, in all views.
    pub fn punch(&self, span: Span) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (start, len) = (span.start as libc::off_t, span.len as libc::off_t);
        held::check(self.file.as_fd());
        // SAFETY: takes numbers only; what is freed is the arena's own.
        let punch = || checked(unsafe { libc::fallocate(self.file.as_raw_fd(), mode, start, len) });
        self.changing(punch).map(drop)
    }

    /// Tells whether a writer would have to wait for another thread.
    pub fn is_changing(&self) -> bool {
        self.changing.load(Ordering::Relaxed) > 0
    }

    fn changing<T>(&self, change: impl FnOnce() -> T) -> T {
        self.changing.fetch_add(1, Ordering::Relaxed);
        let done = change();
        self.changing.fetch_sub(1, Ordering::Relaxed);
        done
    }

    /// Bytes that are resident, as the kernel counts them.
    pub fn resident(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }
}

/// A mapping of an arena's memory, as the program sees it.
#[derive(Debug)]
pub struct View {
    start: *mut u8,
    len: usize,
    /// Parts that are no longer its own, as offsets.
    cut: Mutex<Vec<Range<usize>>>,
}

// SAFETY: a view is an address range; who may touch its bytes is decided by `mapping`.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

/// Drops entries, also where the program locked its memory: what keeps a page resident is a pin.
const ZAP: libc::c_int = libc::MADV_DONTNEED_LOCKED;

/// Drops the entries of runs of pages of views; the pages stay, and so does their protection.
pub fn zap_all(spans: &[Span]) -> io::Result<()> {
    // SAFETY: the spans lie in views, and the advice does not change what they hold.
    unsafe { raw::advise_all(spans, ZAP) }
}

impl View {
    /// Maps all of `memory`. Children of a fork do not inherit it: they would share it.
    pub fn new(memory: &Memory, len: usize) -> io::Result<Self> {
        let start = raw::map(len, READ_WRITE, libc::MAP_SHARED, Some(memory.file.as_fd()))?;
        Self::mapped(start, len)
    }

    /// As [`Self::new`], in place of what is at `start`.
    ///
    /// # Safety
    /// Nobody uses what is there.
    pub unsafe fn over(start: usize, memory: &Memory, len: usize) -> io::Result<Self> {
        let (start, fd) = (start as *mut u8, Some(memory.file.as_fd()));
        // SAFETY: as the caller promises.
        unsafe { raw::map_over(start, len, READ_WRITE, libc::MAP_SHARED, fd) }?;
        Self::mapped(start, len)
    }

    fn mapped(start: *mut u8, len: usize) -> io::Result<Self> {
        let view = Self { start, len, cut: Mutex::default() };
        view.advise(view.span(), libc::MADV_DONTFORK)?;
        Ok(view)
    }

    /// Addresses that are reserved, not mapped.
    pub fn reserved(len: usize) -> io::Result<Self> {
        Ok(Self { start: super::heap::reserve(len)?, len, cut: Mutex::default() })
    }

    /// Returns a pointer to its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Returns its addresses.
    pub fn span(&self) -> Span {
        Span { start: self.start as u64, len: self.len as u64 }
    }

    /// Returns the address of a page.
    pub fn address(&self, page: u32) -> u64 {
        self.start as u64 + u64::from(page) * PAGE as u64
    }

    /// Returns the addresses of the pages `first..first + n`.
    pub fn pages(&self, first: u32, n: u32) -> Span {
        Span { start: self.address(first), len: u64::from(n) * PAGE as u64 }
    }

    /// Drops the entries of a run of pages; the pages stay, and so does their protection.
    pub fn zap(&self, span: Span) -> io::Result<()> {
        self.advise(span, ZAP)
    }

    /// Stores a byte, as a program would.
    pub fn store_byte(&self, offset: usize, byte: u8) {
        assert!(offset < self.len);
        // SAFETY: in bounds; the caller owns the view, and nobody borrows from it.
        unsafe { self.start.add(offset).write_volatile(byte) };
    }

    /// A part that is its owner's to unmap or map over from now on.
    pub fn cut(&self, part: Range<usize>) {
        self.parts().push(part);
    }

    /// Some of it is no longer its own.
    pub fn is_cut(&self) -> bool {
        !self.parts().is_empty()
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Range<usize>>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the pages of a span present, through their faults.
    pub fn populate(&self, span: Span) -> io::Result<()> {
        self.advise(span, libc::MADV_POPULATE_READ)
    }

    fn advise(&self, span: Span, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the span lies in this view, and no advice given here changes what it holds.
        unsafe { raw::advise(span.start as *mut u8, span.len as usize, advice) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut cut = self.parts().clone();
        cut.sort_unstable_by_key(|part| part.start);
        let mut at = 0;
        for part in cut.into_iter().chain(std::iter::once(self.len..self.len)) {
            if at < part.start {
                // SAFETY: the mapping is ours and nobody borrows from it any more.
                unsafe { raw::unmap(self.start.wrapping_add(at), part.start - at) };
            }
            at = at.max(part.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_while_it_lasts() {
        let memory = Memory::new(4096).unwrap();
        memory.changing(|| assert!(memory.is_changing()));
        assert!(!memory.is_changing());
    }
}
