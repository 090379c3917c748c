//! Transfers from descriptor to descriptor within the kernel: what they read of a managed file must
//! be in it, what they write to one is seen by loads.

use std::io;

use libc::{c_int, c_short, c_uint, off_t, size_t, ssize_t};

use crate::descriptors::{around_write, before_read};
use crate::next::next;

type SendFile = unsafe extern "C" fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
type Between =
    unsafe extern "C" fn(c_int, *mut off_t, c_int, *mut off_t, size_t, c_uint) -> ssize_t;

/// Where a transfer begins, if not at the descriptor's own place.
fn place(offset: *const off_t) -> Option<off_t> {
    // SAFETY: null, or the caller's offset.
    unsafe { offset.as_ref() }.copied()
}

macro_rules! to_a_socket {
    ($($name:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            out: c_int,
            from: c_int,
            offset: *mut off_t,
            len: size_t,
        ) -> ssize_t {
            before_read(from, place(offset), len);
            around_write(out, None, len, || next!($name(out, from, offset, len) as SendFile))
        }
    )*};
}

/// Stands in for copy_file_range(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    at: *mut off_t,
    to: c_int,
    there: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    before_read(from, place(at), len);
    around_write(to, place(there), len, || {
        next!(copy_file_range(from, at, to, there, len, flags) as Between)
    })
}

/// Stands in for splice(2). It waits before the managed file is held, not while it is: the
/// writer of the pipe may need the file too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    at: *mut off_t,
    to: c_int,
    there: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    let waits = flags & libc::SPLICE_F_NONBLOCK == 0;
    let at_once = flags | libc::SPLICE_F_NONBLOCK;
    loop {
        if waits && !(is_ready(from, libc::POLLIN) && is_ready(to, libc::POLLOUT)) {
            return -1;
        }
        before_read(from, place(at), len);
        let moved = around_write(to, place(there), len, || {
            next!(splice(from, at, to, there, len, at_once) as Between)
        });
        let again = moved == -1 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
        if !(waits && again) {
            return moved;
        }
    }
}

/// Waits; false: a signal came, or the descriptor is none.
fn is_ready(fd: c_int, what: c_short) -> bool {
    let mut fd = libc::pollfd { fd, events: what, revents: 0 };
    // SAFETY: one descriptor.
    unsafe { libc::poll(&mut fd, 1, -1) == 1 }
}

to_a_socket! {
    sendfile;
    sendfile64;
}
