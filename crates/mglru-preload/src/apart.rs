//! Threads of this library that use no descriptors of the program's.

use std::io;

/// Gives the calling thread a table of descriptors of its own, which is empty: the program may
/// close any number, or count on the least that is free, and nothing that is opened here shows.
pub fn leave_descriptors() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: what is closed are this thread's own copies.
    let left = unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, flags) };
    if left == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
