//! Transfers from descriptor to descriptor within the kernel: what they read of a managed file must
//! be in it, what they write to one is seen by loads.

use libc::{c_int, c_uint, off_t, size_t, ssize_t};

use crate::calls::{around_write, before_read};
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

macro_rules! between {
    ($($name:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            from: c_int,
            at: *mut off_t,
            to: c_int,
            there: *mut off_t,
            len: size_t,
            flags: c_uint,
        ) -> ssize_t {
            before_read(from, place(at), len);
            around_write(to, place(there), len, || {
                next!($name(from, at, to, there, len, flags) as Between)
            })
        }
    )*};
}

to_a_socket! {
    sendfile;
    sendfile64;
}

between! {
    copy_file_range;
    splice;
}
