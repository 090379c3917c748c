//! The kernel interfaces the pager uses, each wrapped once. The crate's `unsafe` is here, where
//! mapped memory is lent to callers (`slices`, `shared`), and where callers promise something of
//! addresses (`group::map`, `heap`).
//!
//! The program's addresses are reached by two types alone, which check that a range is theirs:
//! [`memory::View`], what an arena maps, and [`heap::Staging`], where a heap's pages wait. Neither
//! makes a reference to what lies there.

pub mod clock;
pub mod direct;
pub mod heap;
pub mod held;
pub mod idle;
pub mod memory;
pub mod own;
pub mod pagemap;
pub mod pass;
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
pub mod words;

use std::io;

/// Returns the number of the calling thread, and of the processor it runs on.
pub fn here() -> (u32, u32) {
    // SAFETY: takes nothing.
    let (thread, cpu) = unsafe { (libc::gettid(), libc::sched_getcpu()) };
    (thread as u32, u32::try_from(cpu).unwrap_or(0))
}

/// Gives the size of a page, bytes.
pub const PAGE: usize = 4096;

/// Closes a descriptor.
///
/// # Safety
/// It is the caller's, and nobody uses it any more.
pub unsafe fn close(fd: std::os::fd::RawFd) {
    // SAFETY: takes a number, which is the caller's to close.
    own::as_pager(|| unsafe { libc::close(fd) });
}

/// The result of a call that returns -1 on failure.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
