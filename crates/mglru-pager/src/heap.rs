//! Private anonymous memory for a whole program: what its `mmap` or its allocator asks for. It
//! behaves as the kernel's own, across `madvise`, `mprotect`, `munmap`, `mlock` and `fork`, and
//! its pages obey the budget.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub use crate::children::ForkPolicy;

use crate::arena::{Arena, Backing, FaultStat, Place};
use crate::children::Children;
use crate::error::PagerError;
use crate::forks::{self, Ending};
use crate::group::Group;
use crate::region::Region;
use crate::service::Service;
use crate::sys::PAGE;
use crate::sys::heap::{self, TABLE_SPAN};
use crate::sys::uffd::Span;
use crate::withheld::Withholding;

/// Holds a heap: addresses set aside, parts of which are mapped.
pub struct Heap {
    service: Service,
    children: Arc<Children>,
    thread: Option<JoinHandle<()>>,
    region: Mutex<Region>,
    /// Addresses at which the kernel has mapped something else.
    foreign: Mutex<Region>,
    /// Dropped last: the heap is unmapped by then.
    ending: Option<Ending>,
}

impl Group {
    /// Creates a heap of up to `reserve` bytes of address space, none of it mapped yet.
    ///
    /// Functions given to `pthread_atfork` before the first heap was made must not touch heaps.
    ///
    /// # Errors
    /// The kernel has no `UFFDIO_MOVE` (Linux 6.8) or
    /// reports no forks (CAP_SYS_PTRACE), or there is no room.
    pub fn heap(&self, reserve: usize, fork: ForkPolicy) -> Result<Heap, PagerError> {
        forks::prepare();
        let (children, thread) = Children::start(fork)?;
        let reserve = reserve.next_multiple_of(TABLE_SPAN);
        let service = self.serve(reserve, 0, Backing::Heap(children.clone()), Place::anywhere());
        let service = service.inspect_err(|_| children.stop())?;
        let start = service.arena().view().as_ptr() as usize;
        let region = Mutex::new(Region::new(start..start + reserve));
        let foreign = Mutex::new(Region::empty());
        Ok(Heap { service, children, thread: Some(thread), region, foreign, ending: None })
    }
}

impl Heap {
    fn arena(&self) -> &Arena {
        self.service.arena()
    }

    /// Maps `len` bytes, readable and writable, zeros; at `hint` if that is free. `None`: the
    /// reserve is full, or the kernel refuses.
    pub fn map(&self, len: usize, hint: Option<usize>) -> Option<*mut u8> {
        let len = len.checked_next_multiple_of(PAGE).filter(|&len| len > 0)?;
        let range = self.take(len, hint)?;
        // SAFETY: the range was free until now, and its future user does not have it yet.
        #[allow(unsafe_code)]
        match unsafe { self.open(&range) } {
            Ok(()) => Some(range.start as *mut u8),
            Err(_) => {
                self.region().give(range);
                None
            }
        }
    }

    /// Maps as [`Self::map`] does, at this address and nowhere else.
    pub fn map_at(&self, range: Range<usize>) -> bool {
        let free = self.covers(&range) && range.start % PAGE == 0 && !range.is_empty();
        free && self.region().take_at(range.clone()) && {
            // SAFETY: the range was free until now, and the caller does not have it yet.
            #[allow(unsafe_code)]
            let opened = unsafe { self.open(&range) }.is_ok();
            if !opened {
                self.region().give(range);
            }
            opened
        }
    }

    /// Maps as [`Self::map`] does, at a range of the heap that belongs to the caller, whatever is
    /// there. False: it is not the heap's, or the kernel refuses.
    ///
    /// # Safety
    /// Nobody uses what is there.
    #[allow(unsafe_code)]
    pub unsafe fn map_over(&self, range: Range<usize>) -> bool {
        let range = range.start..range.end.next_multiple_of(PAGE);
        if !self.covers(&range) || range.is_empty() || range.start % PAGE != 0 {
            return false;
        }
        self.region().claim(range.clone());
        // SAFETY: nobody uses what is there, as the caller promises, and it is of this heap.
        unsafe { self.open(&range) }.is_ok()
    }

    fn take(&self, len: usize, hint: Option<usize>) -> Option<Range<usize>> {
        let mut region = self.region();
        let hinted = hint.filter(|at| at % PAGE == 0).and_then(|at| Some(at..at.checked_add(len)?));
        if let Some(range) = hinted.filter(|range| self.covers(range)) {
            if region.take_at(range.clone()) {
                return Some(range);
            }
        }
        // Large ranges by whole page tables: allocators want theirs aligned, and what is dropped
        // together is then scanned together.
        let align = if len >= TABLE_SPAN { TABLE_SPAN } else { PAGE };
        region.take(len, align)
    }

    /// Lets a range be used: zeros, whose faults are served.
    ///
    /// # Safety
    /// It is of this heap, and nobody uses what is there.
    #[allow(unsafe_code)]
    unsafe fn open(&self, range: &Range<usize>) -> io::Result<()> {
        // SAFETY: the heap reserved the range, and nobody uses it, as the caller promises.
        unsafe { heap::open(span(range)) }?;
        self.is_new(range);
        self.arena().view().register(self.arena().uffd(), span(range))
    }

    /// Forgets advice on a range that is mapped anew.
    fn is_new(&self, range: &Range<usize>) {
        let _alone = self.region();
        self.children.withheld.forget(range);
        self.foreign().claim(range.clone());
    }

    fn foreign(&self) -> MutexGuard<'_, Region> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a range from children of forks, or no longer. The kernel knows already.
    pub fn withhold(&self, range: &Range<usize>, how: Withholding, withheld: bool) {
        let _alone = self.region();
        self.children.withheld.set(range, how, withheld);
    }

    /// Finds the parts of a range that are kept from children of forks, and how.
    pub fn withheld(&self, range: &Range<usize>) -> Vec<(Range<usize>, Withholding)> {
        self.children.withheld.now().within(range)
    }

    /// Leaves a range to the kernel, which has mapped something else there, until it is unmapped.
    pub fn leave_to_kernel(&self, range: Range<usize>) {
        self.is_new(&range);
        self.foreign().give(range.clone());
        self.region().claim(range);
    }

    /// Finds the parts of a range that are mapped, in order.
    pub fn mapped(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        self.region().taken_in(range)
    }

    /// Finds the parts of a range that may hold anything but zeros.
    pub fn content(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let (arena, start) = (self.arena(), self.reserve().start);
        let page = |at: usize| ((at - start) / PAGE) as u32;
        let filled = arena.filled_pages(page(range.start)..page(range.end));
        let held: Vec<u32> = filled.filter(|&page| !arena.pages().is_blank(page)).collect();
        let addresses = |run: &[u32]| start + run[0] as usize * PAGE..start + end_of(run) * PAGE;
        let foreign = self.foreign();
        held.chunk_by(|a, b| a + 1 == *b).map(addresses).chain(foreign.free_in(range)).collect()
    }

    /// Unmaps whole pages of the heap.
    ///
    /// # Errors
    /// The range is not of this heap, or the kernel refuses.
    ///
    /// # Safety
    /// Nobody uses the range any more.
    #[allow(unsafe_code)]
    pub unsafe fn unmap(&self, range: Range<usize>) -> io::Result<()> {
        if !self.covers(&range) || range.start % PAGE != 0 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let range = range.start..range.end.next_multiple_of(PAGE);
        // SAFETY: the range is of this heap, and nobody uses it, as the caller promises.
        unsafe { heap::close(span(&range)) }?;
        self.region().give(range);
        Ok(())
    }

    /// Makes a mapping longer where it is. False: what follows is not free.
    pub fn extend(&self, range: Range<usize>, len: usize) -> bool {
        self.map_at(range.end..range.start.saturating_add(len).next_multiple_of(PAGE))
    }

    /// Returns the addresses set aside for it.
    pub fn reserve(&self) -> Range<usize> {
        let Span { start, len } = self.arena().view().span();
        start as usize..(start + len) as usize
    }

    /// Tells whether all of the range is in this heap's reserve.
    pub fn covers(&self, range: &Range<usize>) -> bool {
        let all = self.reserve();
        range.start <= range.end && range.start >= all.start && range.end <= all.end
    }

    /// Gives children of forks all that they still need of this process, which is about to end.
    pub fn finish_children(&self) {
        self.children.finish();
    }

    /// Counts its faults.
    pub fn stat(&self) -> FaultStat {
        self.arena().counters().now()
    }

    fn region(&self) -> MutexGuard<'_, Region> {
        self.region.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.ending = Some(forks::ending());
        self.children.keep_shared();
        self.service.end();
        // Until then a handler may have learnt of one more.
        self.finish_children();
        self.children.stop();
        // A thread that panicked has said so.
        self.thread.take().map(JoinHandle::join);
        // A child that lives on holds the descriptor, and unmapping would wait to be heard of.
        let _ = self.arena().uffd().unregister(self.arena().view().span());
    }
}

/// The page after a run of them.
fn end_of(run: &[u32]) -> usize {
    run[0] as usize + run.len()
}

fn span(range: &Range<usize>) -> Span {
    Span { start: range.start as u64, len: range.len() as u64 }
}
