//! Reads and writes of several buffers, for files that are managed: as `calls` has them for one.

use libc::{c_int, iovec, off_t, size_t, ssize_t};
use mglru_pager::Advice;

use crate::descriptors::{around_write, before_read};
use crate::lent::{lent_several, ranges};
use crate::next::next;

type Vector = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
type VectorAt = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;

/// Bytes of all buffers.
fn total(buffers: *const iovec, n: c_int) -> size_t {
    ranges(buffers, n.max(0) as usize).map(|range| range.len()).fold(0, usize::saturating_add)
}

macro_rules! reads {
    ($($name:ident($($at:ident)?) as $type:ty;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, to: *const iovec, n: c_int $(, $at: off_t)?
        ) -> ssize_t {
            let at = None::<off_t>$(.or(Some($at)))?;
            before_read(fd, at, total(to, n));
            lent_several(to, n, Advice::PopulateWrite, |to, n| {
                next!($name(fd, to, n $(, $at)?) as $type)
            })
        }
    )*};
}

macro_rules! writes {
    ($($name:ident($($at:ident)?) as $type:ty;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, from: *const iovec, n: c_int $(, $at: off_t)?
        ) -> ssize_t {
            let at = None::<off_t>$(.or(Some($at)))?;
            lent_several(from, n, Advice::PopulateRead, |from, n| {
                let write = || next!($name(fd, from, n $(, $at)?) as $type);
                around_write(fd, at, total(from, n), write)
            })
        }
    )*};
}

reads! {
    readv() as Vector;
    preadv(at) as VectorAt;
    preadv64(at) as VectorAt;
}

writes! {
    writev() as Vector;
    pwritev(at) as VectorAt;
    pwritev64(at) as VectorAt;
}
