//! Answers madvise and mincore for managed memory.

use std::ops::Range;

use libc::{c_int, c_long, c_uchar, c_void, size_t};
use mglru_pager::{Advice, Heap, Withholding};

use crate::calls::{addresses, at, errno, refused, status};
use crate::heap;
use crate::managed::Managed;

const PAGE: usize = 4096;
/// Accesses to a range fail, and it holds nothing (Linux 6.13).
const MADV_GUARD_INSTALL: c_int = 102;

/// The kernel's answer to what the caller said, or to less.
fn kernel(range: &Range<usize>, advice: c_int) -> c_int {
    // SAFETY: the caller's own arguments, or less.
    unsafe { libc::syscall(libc::SYS_madvise, range.start, range.len(), advice) as c_int }
}

/// Stands in for madvise(3). A managed file's pages are not dropped on request, but for what a
/// private mapping has of its own: they cost only what the budget gives them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, len: size_t, advice: c_int) -> c_int {
    let range = addresses(address, len);
    if address as usize % PAGE != 0 || range.is_empty() {
        // SAFETY: the caller's own arguments, which concern no memory.
        return unsafe { libc::syscall(libc::SYS_madvise, address, len, advice) as c_int };
    }
    if let Some(heap) = heap::at(address) {
        return of_heap(heap, &range, advice);
    }
    let done = at(address, |managed| of_file(managed, &range, advice));
    done.unwrap_or_else(|| {
        if withholding(advice).is_some() {
            heap::bring(&range);
        }
        kernel(&range, advice)
    })
}

/// Each part that is mapped is advised on; parts that are not are an error all the same.
fn of_heap(heap: &Heap, range: &Range<usize>, advice: c_int) -> c_int {
    let parts = heap.mapped(range);
    if let Some(failed) = parts.iter().map(|part| of_part(heap, part, advice)).find(|&n| n != 0) {
        return failed;
    }
    if parts.as_slice() == std::slice::from_ref(range) { 0 } else { refused(libc::ENOMEM) }
}

fn of_part(heap: &Heap, part: &Range<usize>, advice: c_int) -> c_int {
    let done = means(advice).map_or(0, |advice| kernel(part, advice));
    if let (0, Some((how, withheld))) = (done, withholding(advice)) {
        heap.withhold(part, how, withheld);
    }
    if done == 0 && advice == MADV_GUARD_INSTALL {
        // The kernel does not say that content is gone, of which some may be in swap.
        return kernel(part, libc::MADV_DONTNEED);
    }
    done
}

/// Keeps a range from children of forks, of a heap or of the kernel's.
pub fn withhold(heap: &Heap, range: &Range<usize>, how: Withholding) {
    let advice = match how {
        Withholding::Wiped => libc::MADV_WIPEONFORK,
        Withholding::Absent => libc::MADV_DONTFORK,
    };
    if kernel(range, advice) == 0 && heap.covers(range) {
        heap.withhold(range, how, true);
    }
}

/// Translates advice for a heap. Only dropping content and what concerns children mean anything:
/// the budget decides what stays. Lazily freed memory would escape it, and is dropped now.
fn means(advice: c_int) -> Option<c_int> {
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE => Some(libc::MADV_DONTNEED),
        libc::MADV_NORMAL
        | libc::MADV_RANDOM
        | libc::MADV_SEQUENTIAL
        | libc::MADV_WILLNEED
        | libc::MADV_COLD
        | libc::MADV_PAGEOUT
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | libc::MADV_MERGEABLE => None,
        other => Some(other),
    }
}

/// Tells whether advice keeps memory from children.
fn withholding(advice: c_int) -> Option<(Withholding, bool)> {
    match advice {
        libc::MADV_WIPEONFORK => Some((Withholding::Wiped, true)),
        libc::MADV_KEEPONFORK => Some((Withholding::Wiped, false)),
        libc::MADV_DONTFORK => Some((Withholding::Absent, true)),
        libc::MADV_DOFORK => Some((Withholding::Absent, false)),
        _ => None,
    }
}

fn of_file(managed: &mut Managed, range: &Range<usize>, advice: c_int) -> c_int {
    let offsets = managed.offsets(range.clone());
    let advice = match advice {
        libc::MADV_DONTNEED => return status(managed.forget(offsets)),
        libc::MADV_REMOVE => return managed.punch(offsets),
        libc::MADV_DONTFORK | libc::MADV_DOFORK => {
            managed.withhold(range, advice == libc::MADV_DONTFORK);
            return 0;
        }
        libc::MADV_NORMAL => Advice::Normal,
        libc::MADV_RANDOM => Advice::Random,
        libc::MADV_SEQUENTIAL => Advice::Sequential,
        libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => Advice::PopulateRead,
        libc::MADV_COLD => Advice::Cold,
        libc::MADV_PAGEOUT => Advice::PageOut,
        libc::MADV_WILLNEED
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | libc::MADV_MERGEABLE
        | libc::MADV_UNMERGEABLE
        | libc::MADV_DODUMP
        | libc::MADV_DONTDUMP => return 0,
        _ => return refused(libc::EINVAL),
    };
    status(managed.map.advise_range(advice, offsets))
}

/// Stands in for posix_madvise(3), whose advice has the same numbers but answers with an errno.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_madvise(address: *mut c_void, len: size_t, advice: c_int) -> c_int {
    if advice == libc::POSIX_MADV_DONTNEED {
        return 0;
    }
    // SAFETY: the caller's own arguments.
    let failed = unsafe { madvise(address, len, advice) } == -1;
    if failed { errno() } else { 0 }
}

/// Stands in for mincore(2): what is reserved and not mapped is not reported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mincore(address: *mut c_void, len: size_t, out: *mut c_uchar) -> c_int {
    if heap::has_hole(&addresses(address, len)) {
        return refused(libc::ENOMEM);
    }
    // SAFETY: the caller's own arguments.
    unsafe { libc::syscall(libc::SYS_mincore, address, len, out) as c_long as c_int }
}
