//! The program's private anonymous memory: what it maps itself, and what its malloc does.
//!
//! Whatever runs here may run inside of malloc: it allocates with this library's own allocator
//! and calls nothing of the C library that allocates.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, c_void};
use mglru_pager::{ForkPolicy, Heap, Pager, threads};

use crate::limits;
use crate::managed::without;
use crate::maps::{self, Part};

/// The heap while this process has one; a forked child has not.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(std::ptr::null_mut());
/// Where it is, or where the parent's was.
static RESERVE: OnceLock<Range<usize>> = OnceLock::new();

/// Address space for a heap, bytes: what a program maps and drops goes back, so it bounds what is
/// mapped at once. Tables for what is not used take no memory.
const RESERVE_BYTES: usize = 64 << 30;

/// Ranges that the pager mapped for itself before the program began.
static SET_ASIDE: OnceLock<Vec<Range<usize>>> = OnceLock::new();

/// Starts a pager, and notes what it sets aside for itself.
pub fn start<E>(pager: impl FnOnce() -> Result<Pager, E>, fork: ForkPolicy) -> Result<(), String>
where
    E: std::fmt::Display,
{
    let ranges = || maps::parts(&(0..usize::MAX)).unwrap_or_default().into_iter().map(|p| p.range);
    let before: Vec<_> = ranges().collect();
    let pager = pager().map_err(|error| error.to_string())?;
    start_heap(&pager, fork)?;
    let reserve = RESERVE.get().cloned().unwrap_or_default();
    let own = before.iter().chain([&reserve]).fold(ranges().collect(), |all: Vec<_>, other| {
        all.iter().flat_map(|range| without(range, other)).collect()
    });
    let _ = SET_ASIDE.set(own);
    Ok(())
}

/// Makes a heap of the pager's; it stays for as long as the process.
fn start_heap(pager: &Pager, fork: ForkPolicy) -> Result<(), String> {
    let heap = pager.root().heap(RESERVE_BYTES, fork).map_err(|error| error.to_string())?;
    let _ = RESERVE.set(heap.reserve());
    // The threads that serve it have started, and have all they need, before it is used.
    pager.check().map_err(|error| error.to_string())?;
    HEAP.store(Box::into_raw(Box::new(heap)), Ordering::Release);
    Ok(())
}

fn heap() -> Option<&'static Heap> {
    managed().filter(|_| !threads::is_pager())
}

/// Returns the heap, to any thread.
fn managed() -> Option<&'static Heap> {
    // SAFETY: it is never dropped.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// Returns the heap, if a range starts in it.
pub fn at(address: *mut c_void) -> Option<&'static Heap> {
    let start = address as usize;
    heap().filter(|heap| heap.covers(&(start..start)))
}

/// Tells any thread whether there is a heap.
pub fn exists() -> bool {
    !HEAP.load(Ordering::Acquire).is_null()
}

/// Tells whether this process has a heap that is managed.
pub fn is_managed() -> bool {
    heap().is_some()
}

/// Gives up the heap in a child, which has its parent's memory, and nothing to serve more with.
pub fn abandon() {
    if !HEAP.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
        // Staging, which is as long.
        limits::lack(RESERVE.get().map_or(0, Range::len));
    }
}

/// Counts what is mapped of the heap, bytes.
pub fn mapped_bytes() -> usize {
    let mapped = managed().map(|heap| heap.mapped(&heap.reserve()));
    mapped.unwrap_or_default().iter().map(Range::len).sum()
}

/// Gives children of forks what they need, before the process ends or becomes another program.
pub fn finish() {
    if let Some(heap) = heap() {
        heap.finish_children();
    }
}

/// Finishes children as [`finish`] does, called by a thread of the pager's.
pub fn finish_children() {
    // SAFETY: it is never dropped.
    if let Some(heap) = unsafe { HEAP.load(Ordering::Acquire).as_ref() } {
        heap.finish_children();
    }
}

/// Brings all of an inherited range to this child before its addresses change.
pub fn bring(range: &Range<usize>) {
    if is_within(range) && HEAP.load(Ordering::Acquire).is_null() {
        let inherited = threads::as_pager(|| maps::parts(range)).unwrap_or_default();
        for Part { range, prot, .. } in inherited {
            let (start, len) = (range.start, range.len());
            // SAFETY: the caller is about to move this mapping of its own.
            unsafe {
                libc::syscall(libc::SYS_mprotect, start, len, prot | libc::PROT_READ);
                libc::syscall(libc::SYS_madvise, start, len, libc::MADV_POPULATE_READ);
                libc::syscall(libc::SYS_mprotect, start, len, prot);
            }
        }
    }
}

/// Tells whether this process has a heap, or its parent had one.
pub fn was_managed() -> bool {
    RESERVE.get().is_some()
}

/// Tells whether a range starts where the heap is, or where the parent's was.
pub fn is_within(range: &Range<usize>) -> bool {
    RESERVE.get().is_some_and(|all| all.contains(&range.start))
}

/// Leaves out of a range what the pager mapped for itself at the start.
pub fn beside_set_aside(range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = vec![range];
    for own in SET_ASIDE.get().into_iter().flatten() {
        parts = parts.iter().flat_map(|part| without(part, own)).collect();
    }
    parts
}

/// Tells whether some of a range that starts in the heap is not mapped: the kernel takes the free
/// addresses, which are reserved, for a mapping.
pub fn has_hole(range: &Range<usize>) -> bool {
    let heap = at(range.start as *mut c_void).filter(|_| range.start % 4096 == 0);
    heap.is_some_and(|heap| {
        !range.is_empty() && heap.mapped(range).as_slice() != std::slice::from_ref(range)
    })
}

/// Notes that the kernel mapped something at a range, which may lie in the heap.
pub fn note_kernel_mapping(range: &Range<usize>) {
    if let Some(heap) = managed().filter(|heap| heap.covers(range)) {
        heap.leave_to_kernel(range.start..range.end.next_multiple_of(4096));
    }
}

/// Reservations are longer than what is in use: the heap takes none that is longer, bytes.
const LONGEST: usize = RESERVE_BYTES / 8;
const RW: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// Creates a mapping like malloc's: private, of nothing, to be read and written, at once or when
/// the program opens it; where there is room, or over a part of the heap.
pub fn map(address: *mut c_void, len: usize, prot: c_int, flags: c_int) -> Option<*mut c_void> {
    const SPECIAL: c_int = libc::MAP_GROWSDOWN
        | libc::MAP_STACK
        | libc::MAP_HUGETLB
        | libc::MAP_32BIT
        | libc::MAP_LOCKED;
    let private = flags & libc::MAP_TYPE == libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS != 0;
    let plain = prot == RW || prot == libc::PROT_NONE && len <= LONGEST;
    if !private || !plain || flags & SPECIAL != 0 || crate::locks::is_future() {
        return None;
    }
    let start = match flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) {
        0 => place(address, len)?,
        libc::MAP_FIXED => over(address, len)?,
        _ => where_free(address, len)?,
    };
    if prot != RW {
        // SAFETY: a new mapping of the caller's.
        unsafe { libc::syscall(libc::SYS_mprotect, start, len, prot) };
    }
    Some(start)
}

fn place(address: *mut c_void, len: usize) -> Option<*mut c_void> {
    let hint = Some(address as usize).filter(|&hint| hint != 0);
    // A hint elsewhere is the kernel's to follow.
    let heap = heap().filter(|heap| hint.is_none_or(|hint| heap.covers(&(hint..hint))))?;
    if len < crate::settings::least() {
        return None;
    }
    heap.map(len, hint).map(|start| start.cast())
}

/// Maps at an address if the heap is free there: the kernel would take its reserve for a mapping.
fn where_free(address: *mut c_void, len: usize) -> Option<*mut c_void> {
    let end = (address as usize).checked_add(crate::calls::pages(len))?;
    at(address)?.map_at(address as usize..end).then_some(address)
}

/// Maps over a part of the heap: so a program opens what it reserved, or gives up what it keeps.
fn over(address: *mut c_void, len: usize) -> Option<*mut c_void> {
    let heap = at(address)?;
    // SAFETY: a caller that maps over a range gives up what is there.
    let mapped = unsafe { heap.map_over(address as usize..(address as usize).checked_add(len)?) };
    mapped.then_some(address)
}
