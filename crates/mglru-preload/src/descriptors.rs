//! Reads and writes through descriptors, of files that are managed and with memory that is.

use std::ops::Range;

use libc::{c_int, c_void, off_t, size_t, ssize_t};

use crate::bounce::{loads, stores};
use crate::next::next;
use crate::table::{any, table};

type Read = unsafe extern "C" fn(c_int, *mut c_void, size_t) -> ssize_t;
type ReadAt = unsafe extern "C" fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
type ReadChecked = unsafe extern "C" fn(c_int, *mut c_void, size_t, size_t) -> ssize_t;
type ReadAtChecked = unsafe extern "C" fn(c_int, *mut c_void, size_t, off_t, size_t) -> ssize_t;
type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type WriteAt = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;

/// The range that a transfer of `len` bytes at `offset` (or at the descriptor's own) covers.
fn covered(fd: c_int, offset: Option<off_t>, len: size_t) -> Range<usize> {
    // SAFETY: takes numbers.
    let at = offset.unwrap_or_else(|| unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) });
    let start = at.max(0) as usize;
    start..start.saturating_add(len)
}

/// Brings stores into a file that is about to be read through a descriptor.
pub fn before_read(fd: c_int, offset: Option<off_t>, len: size_t) {
    if !any() {
        return;
    }
    if let Some(managed) = table().of(fd) {
        let all = covered(fd, offset, len);
        let range = all.start.min(managed.map.len())..all.end.min(managed.map.len());
        // The pages stay dirty; fsync and msync report it.
        let _ = managed.map.write_back_range(range);
    }
}

/// Writes a file through a descriptor: stores before it are in the file, and loads after it see it.
pub fn around_write(
    fd: c_int,
    offset: Option<off_t>,
    len: size_t,
    write: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if !any() {
        return write();
    }
    let mut table = table();
    let Some(managed) = table.of(fd) else {
        drop(table);
        return write();
    };
    let all = if appends(fd) { managed.end(len) } else { covered(fd, offset, len) };
    // Written beyond its end, the file has zeros from there on.
    let start = all.start.min(managed.store.len() as usize);
    let at = all.start;
    managed.change(start..all.end, || {
        let wrote = write();
        (wrote, start..at.saturating_add(wrote.max(0) as usize))
    })
}

/// Does it write at the end, wherever the descriptor is?
fn appends(fd: c_int) -> bool {
    // SAFETY: takes numbers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags != -1 && flags & libc::O_APPEND != 0
}

/// Stands in for read(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t {
    before_read(fd, None, len);
    stores(fd, 0, to, len, |to, _, len| next!(read(fd, to, len) as Read))
}

/// Stands in for what read(3) is where the compiler knows how large the buffer is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
) -> ssize_t {
    before_read(fd, None, len);
    stores(fd, 0, to, len, |to, done, len| {
        next!(__read_chk(fd, to, len, room.saturating_sub(done)) as ReadChecked)
    })
}

/// Stands in for write(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t {
    loads(fd, 0, from, len, |from, _, len| {
        around_write(fd, None, len, || next!(write(fd, from, len) as Write))
    })
}

macro_rules! reads_at {
    ($($name:ident, $checked:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int,
            to: *mut c_void,
            len: size_t,
            at: off_t,
        ) -> ssize_t {
            before_read(fd, Some(at), len);
            stores(fd, 0, to, len, |to, done, len| {
                next!($name(fd, to, len, at.wrapping_add(done as off_t)) as ReadAt)
            })
        }

        /// Stands in for what that is where the compiler knows how large the buffer is.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $checked(
            fd: c_int,
            to: *mut c_void,
            len: size_t,
            at: off_t,
            room: size_t,
        ) -> ssize_t {
            before_read(fd, Some(at), len);
            stores(fd, 0, to, len, |to, done, len| {
                let (at, room) = (at.wrapping_add(done as off_t), room.saturating_sub(done));
                next!($checked(fd, to, len, at, room) as ReadAtChecked)
            })
        }
    )*};
}

macro_rules! writes_at {
    ($($name:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int,
            from: *const c_void,
            len: size_t,
            at: off_t,
        ) -> ssize_t {
            loads(fd, 0, from, len, |from, done, len| {
                let at = at.wrapping_add(done as off_t);
                around_write(fd, Some(at), len, || next!($name(fd, from, len, at) as WriteAt))
            })
        }
    )*};
}

reads_at! {
    pread, __pread_chk;
    pread64, __pread64_chk;
}

writes_at! {
    pwrite;
    pwrite64;
}
