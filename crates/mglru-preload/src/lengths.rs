//! Files that are managed and change their length, or lose parts of their content. Loads beyond the
//! end of a file are SIGBUS, as with any mapping.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_char, c_int, off_t};

use crate::managed::Managed;
use crate::next::next;
use crate::table::{any, table};

type OfDescriptor = unsafe extern "C" fn(c_int, off_t) -> c_int;
type OfPath = unsafe extern "C" fn(*const c_char, off_t) -> c_int;
type Allocate = unsafe extern "C" fn(c_int, c_int, off_t, off_t) -> c_int;
type PosixAllocate = unsafe extern "C" fn(c_int, off_t, off_t) -> c_int;

/// Changes a file from an offset on: writes stores back before, and lets loads see it after.
fn around(managed: &mut Managed, from: off_t, change: impl FnOnce() -> c_int) -> c_int {
    let len = managed.map.len();
    let from = (from.max(0) as usize).min(managed.store.len() as usize).min(len);
    managed.change(from..len, || (change(), from..len))
}

fn of_descriptor(fd: c_int, from: off_t, change: impl FnOnce() -> c_int) -> c_int {
    if !any() {
        return change();
    }
    let mut table = table();
    match table.of(fd) {
        Some(managed) => around(managed, from, change),
        None => {
            drop(table);
            change()
        }
    }
}

fn of_path(path: *const c_char, from: off_t, change: impl FnOnce() -> c_int) -> c_int {
    if !any() || path.is_null() {
        return change();
    }
    // SAFETY: the caller's path ends with a zero byte.
    let path = Path::new(std::ffi::OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let mut table = table();
    match table.of_path(path) {
        Some(managed) => around(managed, from, change),
        None => {
            drop(table);
            change()
        }
    }
}

/// The first byte that may change. To allocate changes what is beyond the end, at most.
fn first_changed(mode: c_int, offset: off_t) -> off_t {
    let allocates = mode & !libc::FALLOC_FL_KEEP_SIZE == 0;
    if allocates { off_t::MAX } else { offset }
}

macro_rules! truncations {
    ($($name:ident($what:ident: $of:ty) as $type:ty, $by:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($what: $of, len: off_t) -> c_int {
            $by($what, len, || next!($name($what, len) as $type))
        }
    )*};
}

truncations! {
    ftruncate(fd: c_int) as OfDescriptor, of_descriptor;
    ftruncate64(fd: c_int) as OfDescriptor, of_descriptor;
    truncate(path: *const c_char) as OfPath, of_path;
    truncate64(path: *const c_char) as OfPath, of_path;
}

macro_rules! allocations {
    ($($all:ident, $posix:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $all(fd: c_int, mode: c_int, at: off_t, len: off_t) -> c_int {
            let change = || next!($all(fd, mode, at, len) as Allocate);
            of_descriptor(fd, first_changed(mode, at), change)
        }

        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $posix(fd: c_int, at: off_t, len: off_t) -> c_int {
            let change = || next!($posix(fd, at, len) as PosixAllocate);
            match of_descriptor(fd, off_t::MAX, change) {
                // This one says the error itself.
                -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
                done => done,
            }
        }
    )*};
}

allocations! {
    fallocate, posix_fallocate;
    fallocate64, posix_fallocate64;
}
