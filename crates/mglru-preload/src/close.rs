//! Closing and replacing descriptors. Numbers of the pager's are none of the program's: to the
//! program they are not open, so that one that closes everything keeps its memory.

use libc::{c_int, c_uint};
use mglru_pager::{held, threads};

use crate::calls::set_errno;
use crate::descriptors;
use crate::next::next;

type Close = unsafe extern "C" fn(c_int) -> c_int;
type CloseRange = unsafe extern "C" fn(c_uint, c_uint, c_int) -> c_int;
type Dup2 = unsafe extern "C" fn(c_int, c_int) -> c_int;
type Dup3 = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;

/// Answers as the kernel does for a number that is not open.
pub fn not_open() -> c_int {
    set_errno(libc::EBADF);
    -1
}

/// Tells whether the program asks for a number of the pager's.
fn is_pagers(fd: c_int) -> bool {
    !threads::is_pager() && held::is_held(fd)
}

/// Stands in for close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if is_pagers(fd) {
        return not_open();
    }
    if threads::is_pager() && !held::release(fd) {
        return 0;
    }
    descriptors::before_read(fd, Some(0), usize::MAX);
    next!(close(fd) as Close)
}

/// Stands in for dup2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    if is_pagers(from) || is_pagers(to) {
        return not_open();
    }
    next!(dup2(from, to) as Dup2)
}

/// Stands in for dup3(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    if is_pagers(from) || is_pagers(to) {
        return not_open();
    }
    next!(dup3(from, to, flags) as Dup3)
}

/// Stands in for close_range(2): closes what is between the pager's numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // The kernel refuses an empty range, and marks the pager's as they are marked anyway.
    if first > last || flags as c_uint & libc::CLOSE_RANGE_CLOEXEC != 0 {
        return next!(close_range(first, last, flags) as CloseRange);
    }
    let (mut from, mut failed) = (first, 0);
    let mut close = |from: c_uint, to: c_uint| {
        failed = failed.min(next!(close_range(from, to, flags) as CloseRange));
    };
    held::each_within(first, last, |held| {
        if from < held {
            close(from, held - 1);
        }
        from = held + 1;
    });
    if from <= last {
        close(from, last);
    }
    failed
}

/// Stands in for closefrom(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the caller's own argument.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}
