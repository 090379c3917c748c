//! Private memory of a heap: addresses set aside for it, and staging, where pages are once they
//! were taken from the program and before they are given back.
//!
//! Both are address ranges of one length; a page lies at the same offset in either.

use std::io;

use super::memory::View;
use super::uffd::{Span, Uffd, is_again};
use super::{PAGE, raw};

const RW: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

pub use super::memory::TABLE_SPAN;

/// Lets a reserved range be used: zeros, as a new mapping has them.
///
/// # Safety
/// The range is reserved and nobody uses it.
pub unsafe fn open(span: Span) -> io::Result<()> {
    // SAFETY: the range is reserved and unused, as the caller promises.
    unsafe { raw::map_over(span.start as *mut u8, span.len as usize, RW, PRIVATE, None) }?;
    // SAFETY: the range was mapped a moment ago, and nothing is there yet.
    let _ = unsafe { raw::advise(span.start as *mut u8, span.len as usize, libc::MADV_NOHUGEPAGE) };
    Ok(())
}

/// Takes a range back: touching it is SIGSEGV again.
///
/// # Safety
/// Nobody uses the range any more.
pub unsafe fn close(span: Span) -> io::Result<()> {
    // SAFETY: nobody uses the range any more, as the caller promises.
    unsafe {
        raw::map_over(span.start as *mut u8, span.len as usize, libc::PROT_NONE, PRIVATE, None)
    }
}

/// Holds a heap's pages after they are taken from the program.
#[derive(Debug)]
pub struct Staging {
    start: *mut u8,
    len: usize,
    uffd: Uffd,
    /// A page that those pass through that may not be stored to.
    passage: *mut u8,
}

// SAFETY: staging owns both mappings, and nothing of it is tied to a thread.
unsafe impl Send for Staging {}
// SAFETY: no reference to what the mappings hold is ever made: threads copy it and have the kernel
// move or drop it, each page under its lock. The passage is the policy thread's.
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
        let span = Span { start: start as u64, len: len as u64 };
        // SAFETY: the mapping was just made to hold what is moved there, and nothing else.
        unsafe { staging.uffd.register(span) }?;
        Ok(staging)
    }

    /// Returns the address of the page at an offset once it is staged.
    pub fn address(&self, offset: u64) -> u64 {
        self.start as u64 + offset
    }

    /// Takes pages of a heap from the program. See [`Uffd::take`].
    pub fn take(&self, heap: &View, span: Span) -> (u64, io::Result<()>) {
        assert!(span.end() <= self.len as u64, "staging is as long as its heap");
        let from = Span { start: heap.within(span.start, span.len), len: span.len };
        // SAFETY: the pages are of a heap's view, of which the pager lends addresses alone. The
        // program's next access to one is a fault, which brings it back.
        unsafe { self.uffd.take(self.address(span.start), from) }
    }

    /// Gives a page back to its heap, whose faults arrive at `uffd`. Where the program may not
    /// store (its protection changed meanwhile), pages cannot be moved: they are copied.
    pub fn give_back(&self, heap: &View, uffd: &Uffd, offset: u64) -> io::Result<()> {
        let (to, from) = (heap.within(offset, PAGE as u64), self.page_at(offset));
        // SAFETY: a page of staging, to which no reference is ever made.
        match unsafe { uffd.take(to, from) }.1 {
            Err(error) if !is_again(&error) => {
                // SAFETY: a page of this heap's own content, which is readable while it is staged.
                unsafe { uffd.copy_from(to, from, false) }?;
                self.release(Span { start: offset, len: PAGE as u64 })
            }
            done => done,
        }
    }

    /// Takes a page that the program may not store to, which userfaultfd does not move: it goes
    /// to the passage, where stores are allowed, and from there to staging. The policy thread's
    /// alone.
    ///
    /// # Errors
    /// EINVAL: the program locked it. ENOENT: it is not there.
    pub fn take_unwritable(&self, heap: &View, offset: u64) -> io::Result<()> {
        let (from, len) = (heap.within(offset, PAGE as u64), PAGE);
        if raw::is_locked(from, len) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the passage is this thread's alone and holds nothing between calls. What is taken
        // is a page of a heap's view, of which the pager lends addresses alone.
        unsafe { raw::move_over(from, len, self.passage) }?;
        // SAFETY: more is allowed from now on, not less.
        unsafe { raw::protect(self.passage, len, RW) }?;
        let span = Span { start: self.passage as u64, len: len as u64 };
        // SAFETY: nobody else knows of the passage, and no reference to it is made.
        let taken = unsafe { self.uffd.take(self.page_at(offset).start, span) }.1;
        taken.or_else(|why| self.copy_passed(offset, why))
    }

    /// Copies pages that a child shares or a device holds.
    fn copy_passed(&self, offset: u64, why: io::Error) -> io::Result<()> {
        if !raw::is_here(self.passage as u64) {
            return Err(why);
        }
        let from = Span { start: self.passage as u64, len: PAGE as u64 };
        // SAFETY: a page that is there, and of the heap that this staging is of.
        unsafe { self.uffd.copy_from(self.page_at(offset).start, from, false) }?;
        // SAFETY: the passage is this thread's, and its content was copied.
        unsafe { raw::advise(self.passage, PAGE, libc::MADV_DONTNEED) }
    }

    fn page_at(&self, offset: u64) -> Span {
        assert!(offset as usize + PAGE <= self.len, "staging is as long as its heap");
        Span { start: self.address(offset), len: PAGE as u64 }
    }

    /// Copies a staged page, whose lock the caller holds: one that is not staged would be waited
    /// for without end.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        let (from, len) = (self.page_at(offset).start as *const u8, out.len().min(PAGE));
        // SAFETY: the page is in bounds of a mapping that lives as long as this, and `out` is not
        // of it. No reference to it is made: what the kernel does to other pages is no matter.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), len) };
    }

    /// Gives staged pages back to the system. The caller holds their locks.
    pub fn release(&self, span: Span) -> io::Result<()> {
        assert!(span.end() <= self.len as u64, "staging is as long as its heap");
        let start = self.address(span.start) as *mut u8;
        // SAFETY: the range is staging's, to which no reference is ever made.
        unsafe { raw::advise(start, span.len as usize, libc::MADV_DONTNEED) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: the mapping is staging's own, and nothing borrows from it.
        unsafe { raw::unmap(self.start, self.len) };
        // SAFETY: so is the passage.
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
    fn pages(n: usize) -> Option<(View, Staging)> {
        let Ok(staging) = Staging::new(n * PAGE) else {
            println!("skipped: pages cannot be moved here");
            return None;
        };
        let heap = View::reserved(TABLE_SPAN).unwrap();
        // SAFETY: just reserved.
        unsafe { open(heap.pages(0, n as u32)) }.unwrap();
        (0..n).for_each(|page| fill(&heap, page));
        Some((heap, staging))
    }

    fn fill(heap: &View, page: usize) {
        // SAFETY: within the heap's open part, which is the test's alone.
        unsafe { heap.as_ptr().add(page * PAGE).write_bytes(page as u8 + 1, PAGE) };
    }

    fn staged(staging: &Staging, page: usize) -> [u8; PAGE] {
        let mut content = [0; PAGE];
        staging.read((page * PAGE) as u64, &mut content);
        content
    }

    fn span(pages: std::ops::Range<usize>) -> Span {
        Span { start: (pages.start * PAGE) as u64, len: (pages.len() * PAGE) as u64 }
    }

    #[test]
    fn what_may_not_be_stored_to_is_taken_and_what_is_locked_is_not() {
        let Some((heap, staging)) = pages(4) else { return };
        let at = |page: usize| heap.as_ptr().wrapping_add(page * PAGE);
        let take = |page: usize| {
            let taken = staging.take_unwritable(&heap, (page * PAGE) as u64);
            taken.map_err(|error| error.raw_os_error())
        };
        // SAFETY: pages of this test's, of which nobody else knows.
        unsafe {
            raw::protect(at(1), PAGE, libc::PROT_READ).unwrap();
            raw::protect(at(2), PAGE, libc::PROT_NONE).unwrap();
            assert_eq!(libc::mlock(at(3).cast(), PAGE), 0);
        }
        assert_eq!(staging.take(&heap, span(1..2)).0, 0, "else there is no need");
        assert_eq!([take(0), take(1), take(2)], [Ok(()); 3]);
        for page in 0..3 {
            assert_eq!(staged(&staging, page), [page as u8 + 1; PAGE]);
        }
        assert_eq!(take(3), Err(Some(libc::EINVAL)));
        staging.release(span(1..2)).unwrap();
        assert_eq!(take(1), Err(Some(libc::ENOENT)), "it is there no more");
    }

    #[test]
    fn what_moved_although_the_kernel_denies_it_was_taken() {
        let Some((heap, staging)) = pages(8) else { return };
        let take = |pages| {
            let (taken, end) = staging.take(&heap, span(pages));
            (taken / PAGE as u64, end.map_err(|error| error.raw_os_error()))
        };
        // Moved but not reported: the kernel says EEXIST of it next.
        assert_eq!(take(2..5), (3, Ok(())));
        assert_eq!(take(0..8), (8, Ok(())));
        for page in 0..8 {
            assert_eq!(staged(&staging, page), [page as u8 + 1; PAGE]);
        }
        fill(&heap, 6);
        assert_eq!(take(6..7), (0, Err(Some(libc::EEXIST))), "it is in both places");
    }
}
