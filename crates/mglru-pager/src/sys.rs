//! The kernel interfaces the pager uses, each wrapped once. All of the crate's `unsafe` is here
//! and where mapped memory is lent to callers (`mapping`).

pub mod clock;
pub mod direct;
pub mod heap;
pub mod held;
pub mod idle;
pub mod memory;
pub mod pagemap;
pub mod raw;
pub mod ring;
pub mod signal;
pub mod socket;
pub mod table;
pub mod tasks;
pub mod thread;
pub mod uffd;
mod uffd_abi;
pub mod wake;

use std::io;

/// Gives the size of a page, bytes.
pub const PAGE: usize = 4096;

/// Closes a descriptor that nobody uses any more.
pub fn close(fd: std::os::fd::RawFd) {
    // SAFETY: takes a number; the caller owns it.
    crate::threads::as_pager(|| unsafe { libc::close(fd) });
}

/// The result of a call that returns -1 on failure.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
