//! Shared memory of an arena: a memfd that holds the pages, and views of it that fault.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::uffd::{Span, Uffd};
use super::{PAGE, checked, held, raw};

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
const NOTHING: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Gives the bytes of addresses that one page table maps.
pub const TABLE_SPAN: usize = 512 * PAGE;

/// Creates a file in memory of `len` bytes, with flags of memfd_create(2) besides CLOEXEC.
pub(super) fn memory_file(name: &CStr, len: u64, flags: libc::c_uint) -> io::Result<File> {
    if len > raw::longest_file() {
        // The call would not fail: it kills the process.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    // SAFETY: the name is a C string; the call returns a new descriptor.
    let fd = checked(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) })?;
    // SAFETY: the descriptor is new and ours.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len)?;
    Ok(file)
}

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
        let file = held::keep(memory_file(c"mglru", len, 0)?)?;
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

    /// Counts the bytes that are resident, as the kernel counts them.
    pub fn resident(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }
}

/// Holds a mapping of an arena's memory, as the program sees it.
#[derive(Debug)]
pub struct View {
    start: *mut u8,
    len: usize,
    /// Parts that are no longer its own, as offsets.
    cut: Mutex<Vec<Range<usize>>>,
}

// SAFETY: a view is an address range that it owns, tied to no thread.
unsafe impl Send for View {}
// SAFETY: its methods make no reference to its bytes; the place that hands them out decides which
// code may (`slices`, `shared`).
unsafe impl Sync for View {}

/// Drops entries, also where the program locked its memory: what keeps a page resident is a pin.
const ZAP: libc::c_int = libc::MADV_DONTNEED_LOCKED;

/// Drops the entries of runs of pages of views; the pages stay, and so does their protection.
///
/// # Safety
/// The spans lie in views of a [`Memory`] that are still mapped, and in no part that was cut.
pub unsafe fn zap_all(spans: &[Span]) -> io::Result<()> {
    // SAFETY: what the spans hold is the memfd's and stays there, as the caller promises.
    unsafe { raw::advise_all(spans, ZAP) }
}

/// Addresses nobody can touch, a multiple of [`TABLE_SPAN`].
fn reserve(len: usize) -> io::Result<*mut u8> {
    let whole = raw::map(len + TABLE_SPAN, libc::PROT_NONE, NOTHING, None)?;
    let skip = whole.align_offset(TABLE_SPAN);
    let start = whole.wrapping_add(skip);
    // SAFETY: the part before the start is of the mapping just made, of which nobody knows.
    unsafe { raw::unmap(whole, skip) };
    // SAFETY: so is the part behind the end.
    unsafe { raw::unmap(start.wrapping_add(len), TABLE_SPAN - skip) };
    Ok(start)
}

impl View {
    /// Maps all of `memory`. Children of a fork do not inherit it: they would share it.
    pub fn new(memory: &Memory, len: usize) -> io::Result<Self> {
        let start = raw::map(len, READ_WRITE, libc::MAP_SHARED, Some(memory.file.as_fd()))?;
        Self::mapped(start, len)
    }

    /// Maps as [`Self::new`] does, in place of what is at `start`.
    ///
    /// # Safety
    /// Nobody uses what is there.
    pub unsafe fn over(start: usize, memory: &Memory, len: usize) -> io::Result<Self> {
        let (start, fd) = (start as *mut u8, Some(memory.file.as_fd()));
        // SAFETY: nobody uses what is there, as the caller promises.
        unsafe { raw::map_over(start, len, READ_WRITE, libc::MAP_SHARED, fd) }?;
        Self::mapped(start, len)
    }

    fn mapped(start: *mut u8, len: usize) -> io::Result<Self> {
        let view = Self { start, len, cut: Mutex::default() };
        view.advise(view.span(), libc::MADV_DONTFORK)?;
        Ok(view)
    }

    /// Reserves addresses, and maps nothing there.
    pub fn reserved(len: usize) -> io::Result<Self> {
        Ok(Self { start: reserve(len)?, len, cut: Mutex::default() })
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

    /// Returns the address of an offset with `len` bytes behind it, all of the view.
    pub fn within(&self, offset: u64, len: u64) -> u64 {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len as u64);
        assert!(fits, "offset {offset} of a view of {} bytes", self.len);
        self.start as u64 + offset
    }

    /// Registers a span of it with a userfaultfd, which then reports its faults.
    pub fn register(&self, uffd: &Uffd, span: Span) -> io::Result<()> {
        self.check(span);
        // SAFETY: a view is memory whose missing pages are what is installed for them.
        unsafe { uffd.register(span) }
    }

    /// Drops the entry of a page; the page stays, and so does its protection.
    pub fn zap(&self, page: u32) -> io::Result<()> {
        self.advise(self.pages(page, 1), ZAP)
    }

    /// Stores a byte, as a program would.
    ///
    /// # Safety
    /// The view is mapped, and nobody borrows from it.
    pub unsafe fn store_byte(&self, offset: usize, byte: u8) {
        let at = self.within(offset as u64, 1) as *mut u8;
        // SAFETY: in bounds of the view, which the caller says is mapped and not borrowed from.
        unsafe { at.write_volatile(byte) };
    }

    /// Gives up a part, which its owner may unmap or map over from now on.
    pub fn cut(&self, part: Range<usize>) {
        self.parts().push(part);
    }

    /// Tells whether some of it was given up.
    pub fn is_cut(&self) -> bool {
        !self.parts().is_empty()
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Range<usize>>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes pages present, through their faults.
    pub fn populate(&self, first: u32, n: u32) -> io::Result<()> {
        self.advise(self.pages(first, n), libc::MADV_POPULATE_READ)
    }

    fn check(&self, span: Span) {
        let start = span.start.wrapping_sub(self.start as u64);
        assert_eq!(self.within(start, span.len), span.start);
    }

    fn advise(&self, span: Span, advice: libc::c_int) -> io::Result<()> {
        self.check(span);
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
                // SAFETY: the part was not cut, so it is the view's own, and the code that borrows
                // from it holds the view.
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
