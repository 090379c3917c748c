//! Calls that hand what was stored to the kernel: what a kernel keeps from there on must be in the
//! file, whatever ends the process next.

use libc::{c_int, c_uint, off64_t};

use crate::descriptors::before_read;
use crate::next::next;
use crate::table::{any, table};

type Sync = unsafe extern "C" fn();
type OnFd = unsafe extern "C" fn(c_int) -> c_int;
type Part = unsafe extern "C" fn(c_int, off64_t, off64_t, c_uint) -> c_int;

fn write_back_all() {
    if any() {
        table().write_back();
    }
}

/// Stands in for sync(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sync() {
    write_back_all();
    next!(sync() as Sync)
}

/// Stands in for syncfs(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syncfs(fd: c_int) -> c_int {
    write_back_all();
    next!(syncfs(fd) as OnFd)
}

/// Stands in for sync_file_range(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sync_file_range(
    fd: c_int,
    at: off64_t,
    len: off64_t,
    flags: c_uint,
) -> c_int {
    before_read(fd, Some(0), usize::MAX);
    next!(sync_file_range(fd, at, len, flags) as Part)
}
