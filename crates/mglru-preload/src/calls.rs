//! The functions of the C library that this library stands in for.
//!
//! Each asks first whether anything is managed at all; a call that does not concern a managed
//! file goes on to the C library (mappings: to the kernel) as it came.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_void, off_t, size_t};
use mglru_pager::launch::LEFT;
use mglru_pager::threads::{self, as_pager};

use crate::candidate::is_zeros;
use crate::managed::Managed;
use crate::next::next;
use crate::table::{self, Mapped, any, any_at, say, table};
use crate::{fork, heap, limits, locks, places, settings, unmanaged};

/// Bounds the bytes of a call: more is in no address space, and the kernel says so.
pub const MOST: usize = 1 << 47;

/// Sets the calling thread's `errno`.
pub fn set_errno(errno: c_int) {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// Returns the calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// Decides whether the pager manages a mapping: a long enough one of a file, for data, at any
/// address. Processors that can store can load. Others are reported once, but for program code.
fn concerns(address: *mut c_void, len: size_t, prot: c_int, flags: c_int, fd: c_int) -> bool {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let of_file = flags & (libc::MAP_ANONYMOUS | libc::MAP_SYNC) == 0 && fd >= 0;
    if !of_file
        || threads::is_pager()
        || locks::is_future()
        || !(settings::least()..MOST).contains(&len)
    {
        return false;
    }
    if !is_private(flags) && !settings::manages_shared_files() {
        return false;
    }
    let data = libc::PROT_READ | libc::PROT_WRITE;
    let plain = prot & data != 0 && prot & !data == 0;
    let anywhere = address.is_null() && flags & libc::MAP_FIXED == 0;
    let other = !(plain && anywhere);
    if other && (plain || !is_private(flags)) && !REPORTED.swap(true, Ordering::Relaxed) {
        as_pager(|| say(LEFT, &"it is executable, without access, or at an address of its choice"));
    }
    !other
}

/// Notes a mapping that the kernel made: it may lie in the heap's addresses, and mlockall may lock
/// it.
fn mapped_by_kernel(start: usize, len: size_t, flags: c_int) {
    let range = start..start + pages(len);
    if flags & libc::MAP_FIXED != 0 {
        heap::note_kernel_mapping(&range);
    }
    if !threads::is_pager() {
        locks::lock_new(&range);
    }
}

fn is_private(flags: c_int) -> bool {
    flags & libc::MAP_TYPE == libc::MAP_PRIVATE
}

const ANON: c_int = libc::MAP_ANONYMOUS;

/// Privately of /dev/zero: anonymous memory by another name.
fn is_of_zeros(len: usize, flags: c_int, fd: c_int) -> bool {
    let of_file = flags & ANON == 0 && fd >= 0 && len >= settings::least();
    // SAFETY: the descriptor is open while the caller's call lasts.
    of_file && is_private(flags) && is_zeros(&unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Stands in for mmap(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    len: size_t,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    if concerns(address, len, prot, flags, fd) && offset % 4096 == 0 && offset >= 0 {
        fork::prepare();
        let range = offset as usize..offset as usize + len;
        let mapped = as_pager(|| table::map(fd, range, prot, is_private(flags)));
        match mapped {
            Mapped::At(start) => return start.cast(),
            Mapped::No => {}
            Mapped::Refused(errno) => return not_mapped(errno),
        }
    }
    let is_data = prot & libc::PROT_WRITE != 0 && is_private(flags);
    let is_new = flags & libc::MAP_FIXED == 0 && !threads::is_pager();
    if is_new && limits::is_over(pages(len), is_data) {
        return not_mapped(libc::ENOMEM);
    }
    let zeros = !threads::is_pager() && is_of_zeros(len, flags, fd);
    if let Some(start) = heap::map(address, len, prot, flags | if zeros { ANON } else { 0 }) {
        return start;
    }
    if flags & libc::MAP_FIXED != 0 && any_at(&addresses(address, len)) {
        as_pager(|| table::map_over(&addresses(address, len)));
    }
    // SAFETY: the caller's own arguments.
    let start = unsafe { libc::syscall(libc::SYS_mmap, address, len, prot, flags, fd, offset) };
    if start != -1 {
        mapped_by_kernel(start as usize, len, flags);
    }
    unmanaged::left(start as usize, addresses(address, len), prot, flags, fd);
    start as *mut c_void
}

/// Refuses to map.
pub fn not_mapped(errno: c_int) -> *mut c_void {
    set_errno(errno);
    libc::MAP_FAILED
}

/// Refuses a call.
pub fn refused(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

/// Stands in for mmap64(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: size_t,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's own arguments.
    unsafe { mmap(address, len, prot, flags, fd, offset) }
}

/// Returns the addresses of the pages of a range.
pub fn addresses(address: *mut c_void, len: size_t) -> Range<usize> {
    let start = address as usize;
    start..start.saturating_add(pages(len))
}

/// Rounds a length up to whole pages, bytes.
pub fn pages(len: size_t) -> usize {
    len.checked_next_multiple_of(4096).unwrap_or(usize::MAX)
}

/// Stands in for munmap(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, len: size_t) -> c_int {
    if let Some(heap) = heap::at(address) {
        // SAFETY: the caller is done with the range.
        if unsafe { heap.unmap(addresses(address, len)) }.is_ok() {
            return 0;
        }
    }
    let range = addresses(address, len);
    if any_at(&range) && as_pager(|| table::unmap(&range)) {
        return 0;
    }
    unmanaged::gone(&range);
    // SAFETY: the caller's own arguments.
    unsafe { libc::syscall(libc::SYS_munmap, address, len) as c_int }
}

/// Does something to a managed file at an address; `None`: there is none.
pub fn at<T>(address: *mut c_void, then: impl FnOnce(&mut Managed) -> T) -> Option<T> {
    if !any_at(&addresses(address, 1)) {
        return None;
    }
    as_pager(|| table().at(address as usize).map(then))
}

/// Returns the C library's answer to an outcome.
pub fn status(result: Result<(), mglru_pager::PagerError>) -> c_int {
    let Err(error) = result else { return 0 };
    set_errno(error.errno());
    -1
}

/// Stands in for msync(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(address: *mut c_void, len: size_t, flags: c_int) -> c_int {
    if heap::has_hole(&addresses(address, len)) {
        return refused(libc::ENOMEM);
    }
    let done = at(address, |managed| {
        let range = managed.offsets(addresses(address, len));
        // The kernel writes what it was handed, even after the process has ended.
        let written = match flags & libc::MS_SYNC {
            0 => managed.map.write_back_range(range),
            _ => managed.map.flush_range(range),
        };
        status(written)
    });
    // SAFETY: the caller's own arguments.
    done.unwrap_or_else(|| unsafe { libc::syscall(libc::SYS_msync, address, len, flags) as c_int })
}

/// Stands in for mprotect(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, len: size_t, prot: c_int) -> c_int {
    if heap::has_hole(&addresses(address, len)) {
        return refused(libc::ENOMEM);
    }
    // SAFETY: the caller's own arguments.
    let done = unsafe { libc::syscall(libc::SYS_mprotect, address, len, prot) as c_int };
    if done == 0 && prot & libc::PROT_WRITE != 0 {
        places::allow_stores(&addresses(address, len));
    }
    done
}

type OnFd = unsafe extern "C" fn(c_int) -> c_int;

/// Stands in for fsync(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    if let Some(failed) = flushed(fd) {
        return failed;
    }
    next!(fsync(fd) as OnFd)
}

/// Stands in for fdatasync(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    if let Some(failed) = flushed(fd) {
        return failed;
    }
    next!(fdatasync(fd) as OnFd)
}

/// Makes stores to a managed file durable; the answer, if that failed.
fn flushed(fd: c_int) -> Option<c_int> {
    if !any() {
        return None;
    }
    let done = table().of(fd).map(|managed| status(managed.map.flush()));
    done.filter(|&status| status != 0)
}
