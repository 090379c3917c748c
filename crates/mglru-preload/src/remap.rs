//! mremap: memory of a heap moves by being copied, and keeps what mprotect said of it.

use std::ops::Range;

use libc::{c_int, c_void, size_t};
use mglru_pager::{Heap, threads::as_pager};

use crate::calls::{addresses, at, errno, pages};
use crate::maps::{self, Part};
use crate::table::{self, any_at};
use crate::{advice, calls, heap, limits, locks, unmanaged};

const PAGE: usize = 4096;
const RW: c_int = libc::PROT_READ | libc::PROT_WRITE;
const KNOWN: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;

/// The arguments of a call of mremap.
#[derive(Clone, Debug)]
struct Ask {
    old: Range<usize>,
    /// Its new length.
    len: usize,
    flags: c_int,
    /// Where it is to be, if the caller says so.
    to: Option<usize>,
}

impl Ask {
    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    /// Tells whether the kernel would take it, whatever is mapped.
    fn is_valid(&self) -> bool {
        let may_move = self.has(libc::MREMAP_MAYMOVE);
        let moves = self.has(libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP);
        let same = !self.has(libc::MREMAP_DONTUNMAP) || self.old.len() == self.len;
        let known = self.flags & !KNOWN == 0 && (may_move || !moves) && same;
        let aligned = self.old.start % PAGE == 0 && self.to.is_none_or(|to| to % PAGE == 0);
        let fits = (1..=calls::MOST).contains(&self.len);
        known && aligned && !self.old.is_empty() && fits && !self.overlaps()
    }

    /// Tells where a part of the old range is once all of it is at `to`; `None`: it is cut off.
    /// Moves a part; memory that is new at the end belongs to the last part.
    fn moved(&self, part: &Range<usize>, to: usize) -> Option<Range<usize>> {
        let is_last = part.end == self.old.end;
        let end = if is_last { self.len } else { (part.end - self.old.start).min(self.len) };
        let start = part.start - self.old.start;
        (start < end).then(|| to + start..to + end)
    }

    fn overlaps(&self) -> bool {
        let to = self.to.map_or(0..0, |to| to..to.saturating_add(self.len));
        to.start < self.old.end && self.old.start < to.end
    }
}

/// Stands in for mremap(3), whose last argument is there for some flags only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    old: size_t,
    new: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let fixed = flags & libc::MREMAP_FIXED != 0;
    let to_there = fixed.then_some(to as usize);
    let ask = Ask { old: addresses(address, old), len: pages(new), flags, to: to_there };
    let moved = match heap::at(address) {
        Some(heap) => Some(of_heap(heap, &ask)),
        None if any_at(&ask.old) => of_file(&ask),
        None => None,
    };
    match moved {
        Some(Ok(start)) => start as *mut c_void,
        Some(Err(errno)) => calls::not_mapped(errno),
        // SAFETY: the caller's own arguments.
        None => unsafe {
            by_kernel(&ask, || libc::syscall(libc::SYS_mremap, address, old, new, flags, to))
        },
    }
}

/// Has the kernel move memory that is not managed. The target may be managed memory.
unsafe fn by_kernel(ask: &Ask, remap: impl FnOnce() -> libc::c_long) -> *mut c_void {
    let target = ask.to.map(|to| to..to.saturating_add(ask.len));
    heap::bring(&ask.old);
    if let Some(target) = target.as_ref().filter(|target| any_at(target)) {
        as_pager(|| table::map_over(target));
    }
    let start = remap() as *mut c_void;
    if start != libc::MAP_FAILED {
        target.iter().for_each(heap::note_kernel_mapping);
        unmanaged::moved(&ask.old, start, ask.len);
    }
    start
}

fn of_heap(heap: &Heap, ask: &Ask) -> Result<usize, c_int> {
    if !ask.is_valid() {
        return Err(libc::EINVAL);
    }
    if heap.mapped(&ask.old).as_slice() != std::slice::from_ref(&ask.old) {
        return Err(libc::EFAULT);
    }
    if ask.len > ask.old.len() && limits::is_over(ask.len - ask.old.len(), true) {
        return Err(libc::ENOMEM);
    }
    let stays = !ask.has(libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP);
    if stays && shrink(heap, ask)? {
        return Ok(ask.old.start);
    }
    if stays && heap.extend(ask.old.clone(), ask.len) {
        withhold(heap, ask, ask.old.start);
        let last = ask.old.end - PAGE..ask.old.end;
        if !locks::within(&last).is_empty() {
            locks::lock_moved(&(ask.old.end..ask.old.start + ask.len));
        }
        return Ok(ask.old.start);
    }
    if !ask.has(libc::MREMAP_MAYMOVE) {
        return Err(libc::ENOMEM);
    }
    move_heap(heap, ask)
}

fn shrink(heap: &Heap, ask: &Ask) -> Result<bool, c_int> {
    let end = ask.old.start + ask.len;
    if end < ask.old.end {
        // SAFETY: the program gives the tail up.
        unsafe { heap.unmap(end..ask.old.end) }.map_err(|_| libc::ENOMEM)?;
    }
    Ok(end <= ask.old.end)
}

fn move_heap(heap: &Heap, ask: &Ask) -> Result<usize, c_int> {
    let parts = as_pager(|| maps::parts(&ask.old)).ok_or(libc::ENOMEM)?;
    if parts.iter().any(|part| part.shared) {
        // The kernel mapped it there, over a part of the heap.
        return Err(libc::ENOMEM);
    }
    let to = place(heap, ask)?;
    let shown = |part: &Part| part.prot & libc::PROT_READ != 0;
    parts.iter().filter(|part| !shown(part)).for_each(|part| protect(&part.range, RW));
    let kept = ask.old.start..ask.old.start + ask.len.min(ask.old.len());
    for run in heap.content(&kept) {
        let into = to + (run.start - ask.old.start);
        // SAFETY: the old mapping is the program's and can be read by now, the new one is as long.
        unsafe {
            std::ptr::copy_nonoverlapping(run.start as *const u8, into as *mut u8, run.len())
        };
    }
    for part in parts.iter().filter(|part| part.prot != RW) {
        if let Some(range) = ask.moved(&part.range, to) {
            protect(&range, part.prot);
        }
    }
    withhold(heap, ask, to);
    let locked = locks::within(&ask.old);
    leave(heap, ask, &parts)?;
    lock(ask, &locked, to);
    Ok(to)
}

/// Keeps from children what was kept from them at the old place.
fn withhold(heap: &Heap, ask: &Ask, to: usize) {
    for (part, how) in heap.withheld(&ask.old) {
        if let Some(range) = ask.moved(&part, to) {
            advice::withhold(heap, &range, how);
        }
    }
}

/// Locks at the new place what was locked at the old one.
fn lock(ask: &Ask, locked: &[Range<usize>], to: usize) {
    locked.iter().filter_map(|part| ask.moved(part, to)).for_each(|part| locks::lock_moved(&part));
}

/// Gives the old place up, or makes it read as zeros.
fn leave(heap: &Heap, ask: &Ask, parts: &[Part]) -> Result<(), c_int> {
    if !ask.has(libc::MREMAP_DONTUNMAP) {
        // SAFETY: the program gives it up.
        return unsafe { heap.unmap(ask.old.clone()) }.map_err(|_| libc::ENOMEM);
    }
    let (start, len) = (ask.old.start, ask.old.len());
    // SAFETY: the program says that it holds nothing any more.
    unsafe { libc::syscall(libc::SYS_madvise, start, len, libc::MADV_DONTNEED) };
    parts.iter().for_each(|part| protect(&part.range, part.prot));
    Ok(())
}

fn protect(range: &Range<usize>, prot: c_int) {
    // SAFETY: a mapping of the program's, with what it said of it.
    unsafe { libc::syscall(libc::SYS_mprotect, range.start, range.len(), prot) };
}

/// Maps zeros to be read and written where the caller says, or where there is room.
fn place(heap: &Heap, ask: &Ask) -> Result<usize, c_int> {
    let Some(to) = ask.to else {
        let within = heap.map(ask.len, None).map(|start| start as usize);
        return within.map_or_else(|| anywhere(None, ask.len), Ok);
    };
    let target = to..to.checked_add(ask.len).ok_or(libc::EINVAL)?;
    // SAFETY: a caller that moves memory to a place gives up what is there.
    if unsafe { heap.map_over(target.clone()) } {
        return Ok(to);
    }
    if any_at(&target) {
        as_pager(|| table::map_over(&target));
    }
    anywhere(Some(to), ask.len)
}

/// Has the kernel map zeros.
fn anywhere(to: Option<usize>, len: usize) -> Result<usize, c_int> {
    let fixed = to.map_or(0, |_| libc::MAP_FIXED);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
    let at = to.unwrap_or(0);
    // SAFETY: a caller that moves memory to a place gives up what is there.
    let got = unsafe { libc::syscall(libc::SYS_mmap, at, len, RW, flags, -1, 0usize) };
    if got == -1 { Err(errno()) } else { Ok(got as usize) }
}

/// Makes a managed file longer or shorter where it is; a private mapping can also be moved.
fn of_file(ask: &Ask) -> Option<Result<usize, c_int>> {
    let (stays, start) = (!ask.has(libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP), ask.old.start);
    let resized = at(start as *mut c_void, |managed| {
        let resized = stays && ask.len > 0 && managed.resize(&ask.old, ask.len);
        (resized, managed.copies_from().is_some())
    });
    match resized? {
        (true, _) => Some(Ok(start)),
        (false, true) if !ask.is_valid() => Some(Err(libc::EINVAL)),
        (false, true) if ask.has(libc::MREMAP_MAYMOVE) => Some(move_copy(ask)),
        _ => Some(Err(libc::ENOMEM)),
    }
}

fn move_copy(ask: &Ask) -> Result<usize, c_int> {
    let start = ask.old.start as *mut c_void;
    let moved = at(start, |managed| managed.move_to(&ask.old, ask.len, ask.to));
    let to = moved.unwrap_or(Err(libc::EFAULT))?;
    if ask.has(libc::MREMAP_DONTUNMAP) {
        at(start, |managed| managed.forget(managed.offsets(ask.old.clone())));
    } else {
        as_pager(|| table::unmap(&ask.old));
    }
    Ok(to)
}
