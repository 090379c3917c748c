//! Private memory of a heap: addresses set aside for it, and staging, where pages are once they
//! were taken from the program and before they are given back.
//!
//! Both are address ranges of one length; a page lies at the same offset in either.

use std::io;

use super::uffd::{Span, Uffd};
use super::{PAGE, raw};

const RW: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Gives the bytes of addresses that one page table maps.
pub const TABLE_SPAN: usize = 512 * PAGE;

/// Addresses nobody can touch, a multiple of [`TABLE_SPAN`].
pub fn reserve(len: usize) -> io::Result<*mut u8> {
    let whole = raw::map(len + TABLE_SPAN, libc::PROT_NONE, PRIVATE, None)?;
    let skip = whole.align_offset(TABLE_SPAN);
    // SAFETY: both ends are parts of the mapping just made that nobody knows of.
    unsafe {
        let start = whole.add(skip);
        raw::unmap(whole, skip);
        raw::unmap(start.add(len), TABLE_SPAN - skip);
        Ok(start)
    }
}

/// Lets a reserved range be used: zeros, as a new mapping has them.
///
/// # Safety
/// The range is reserved and nobody uses it.
pub unsafe fn open(span: Span) -> io::Result<()> {
    // SAFETY: as the caller promises.
    unsafe { raw::map_over(span.start as *mut u8, span.len as usize, RW, PRIVATE, None) }?;
    // SAFETY: nothing is there yet.
    let _ = unsafe { raw::advise(span.start as *mut u8, span.len as usize, libc::MADV_NOHUGEPAGE) };
    Ok(())
}

/// Takes a range back: touching it is SIGSEGV again.
///
/// # Safety
/// Nobody uses the range any more.
pub unsafe fn close(span: Span) -> io::Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        raw::map_over(span.start as *mut u8, span.len as usize, libc::PROT_NONE, PRIVATE, None)
    }
}

/// Where a heap's pages go when they are taken from the program.
#[derive(Debug)]
pub struct Staging {
    start: *mut u8,
    len: usize,
    uffd: Uffd,
    /// A page that those pass through that may not be stored to.
    passage: *mut u8,
}

// SAFETY: staged pages are read and given back under their locks.
unsafe impl Send for Staging {}
// SAFETY: as above.
unsafe impl Sync for Staging {}

impl Staging {
    /// Creates the staging of a heap of `len` bytes. Children of a fork do not inherit it.
    pub fn new(len: usize) -> io::Result<Self> {
        let uffd = Uffd::open_staging()?;
        let start = raw::map(len, RW, PRIVATE, None)?;
        let passage = raw::map(PAGE, RW, PRIVATE, None)?;
        let staging = Self { start, len, uffd, passage };
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTFORK] {
            // SAFETY: nothing is there yet.
            unsafe { raw::advise(start, len, advice) }?;
        }
        staging.uffd.register(Span { start: start as u64, len: len as u64 })?;
        Ok(staging)
    }

    /// Where the page at an offset is once it is staged.
    pub fn address(&self, offset: u64) -> u64 {
        self.start as u64 + offset
    }

    /// Takes pages from the program, at the same offset of `heap`. See [`Uffd::take`].
    pub fn take(&self, heap: u64, span: Span) -> (u64, io::Result<()>) {
        let from = Span { start: heap + span.start, len: span.len };
        self.uffd.take(self.address(span.start), from)
    }

    /// Takes a page that the program may not store to, which userfaultfd does not move: it goes
    /// to the passage, where stores are allowed, and from there to staging. The policy thread's
    /// alone.
    ///
    /// # Errors
    /// EINVAL: the program locked it. ENOENT: it is not there.
    pub fn take_unwritable(&self, heap: u64, offset: u64) -> io::Result<()> {
        let (from, len) = (heap + offset, PAGE);
        if raw::is_locked(from, len) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the passage is the calling thread's.
        unsafe { raw::move_over(from, len, self.passage) }?;
        // SAFETY: as above.
        unsafe { raw::protect(self.passage, len, RW) }?;
        let span = Span { start: self.passage as u64, len: len as u64 };
        let taken = self.uffd.take(self.address(offset), span).1;
        taken.or_else(|why| self.copy_passed(offset, why))
    }

    /// Copies pages that a child shares or a device holds.
    fn copy_passed(&self, offset: u64, why: io::Error) -> io::Result<()> {
        if !raw::is_here(self.passage as u64) {
            return Err(why);
        }
        // SAFETY: a page of the calling thread's.
        let page = unsafe { std::slice::from_raw_parts(self.passage, PAGE) };
        self.uffd.copy(self.address(offset), page, false)?;
        // SAFETY: as above.
        unsafe { raw::advise(self.passage, PAGE, libc::MADV_DONTNEED) }
    }

    /// A staged page, whose lock the caller holds.
    pub fn page(&self, offset: u64) -> &[u8] {
        assert!(offset as usize + PAGE <= self.len);
        // SAFETY: in bounds, staged, and nobody else touches it while it is locked.
        unsafe { std::slice::from_raw_parts(self.start.add(offset as usize), PAGE) }
    }

    /// Gives staged pages back to the system.
    pub fn release(&self, span: Span) -> io::Result<()> {
        let start = self.address(span.start) as *mut u8;
        // SAFETY: the range is staging's, and who calls holds the locks of its pages.
        unsafe { raw::advise(start, span.len as usize, libc::MADV_DONTNEED) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody borrows from it any more.
        unsafe { raw::unmap(self.start, self.len) };
        // SAFETY: as above.
        unsafe { raw::unmap(self.passage, PAGE) };
    }
}

/// Has a page be the process's alone again, after a fork shared it, as a store would that changes
/// nothing. It waits for the handler if stores to it are protected.
pub fn unshare(address: u64) {
    // Pages that left meanwhile must not come back for this.
    if raw::is_here(address) {
        // SAFETY: no content changes.
        let _ = unsafe { raw::advise(address as *mut u8, PAGE, libc::MADV_POPULATE_WRITE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` pages of a heap, each filled with its number and 1, and their staging.
    fn pages(n: usize) -> Option<(*mut u8, Staging)> {
        let Ok(staging) = Staging::new(n * PAGE) else {
            println!("skipped: pages cannot be moved here");
            return None;
        };
        let heap = reserve(TABLE_SPAN).unwrap();
        // SAFETY: just reserved.
        unsafe { open(Span { start: heap as u64, len: (n * PAGE) as u64 }) }.unwrap();
        (0..n).for_each(|page| fill(heap, page));
        Some((heap, staging))
    }

    fn fill(heap: *mut u8, page: usize) {
        // SAFETY: within the heap's open part, which is the test's alone.
        unsafe { heap.add(page * PAGE).write_bytes(page as u8 + 1, PAGE) };
    }

    fn span(pages: std::ops::Range<usize>) -> Span {
        Span { start: (pages.start * PAGE) as u64, len: (pages.len() * PAGE) as u64 }
    }

    #[test]
    fn what_may_not_be_stored_to_is_taken_and_what_is_locked_is_not() {
        let Some((heap, staging)) = pages(4) else { return };
        let at = |page: usize| heap.wrapping_add(page * PAGE);
        let take = |page: usize| {
            let taken = staging.take_unwritable(heap as u64, (page * PAGE) as u64);
            taken.map_err(|error| error.raw_os_error())
        };
        // SAFETY: pages of this test's, of which nobody else knows.
        unsafe {
            raw::protect(at(1), PAGE, libc::PROT_READ).unwrap();
            raw::protect(at(2), PAGE, libc::PROT_NONE).unwrap();
            assert_eq!(libc::mlock(at(3).cast(), PAGE), 0);
        }
        assert_eq!(staging.take(heap as u64, span(1..2)).0, 0, "else there is no need");
        assert_eq!([take(0), take(1), take(2)], [Ok(()); 3]);
        for page in 0..3 {
            assert_eq!(staging.page((page * PAGE) as u64), [page as u8 + 1; PAGE]);
        }
        assert_eq!(take(3), Err(Some(libc::EINVAL)));
        staging.release(span(1..2)).unwrap();
        assert_eq!(take(1), Err(Some(libc::ENOENT)), "it is there no more");
    }

    #[test]
    fn what_moved_although_the_kernel_denies_it_was_taken() {
        let Some((heap, staging)) = pages(8) else { return };
        let take = |pages| {
            let (taken, end) = staging.take(heap as u64, span(pages));
            (taken / PAGE as u64, end.map_err(|error| error.raw_os_error()))
        };
        // Moved but not told: the kernel says EEXIST of it next.
        assert_eq!(take(2..5), (3, Ok(())));
        assert_eq!(take(0..8), (8, Ok(())));
        for page in 0..8 {
            assert_eq!(staging.page((page * PAGE) as u64), [page as u8 + 1; PAGE]);
        }
        fill(heap, 6);
        assert_eq!(take(6..7), (0, Err(Some(libc::EEXIST))), "it is in both places");
    }
}
