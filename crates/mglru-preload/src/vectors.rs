//! Reads and writes of several buffers: as `descriptors` has them for one. One call transfers at
//! most [`MOST`] bytes of managed memory whose faults are signals.

use std::ops::Range;

use libc::{c_int, iovec, off_t, ssize_t};

use crate::bounce::{BounceBuffer, MOST, concerns, concerns_stores, ranges, total};
use crate::descriptors::{around_write, before_read};
use crate::next::next;

type Vector = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
type VectorAt = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
type VectorAtWith = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t, c_int) -> ssize_t;

/// The buffers' addresses.
fn all(buffers: *const iovec, n: c_int) -> impl Iterator<Item = Range<usize>> + Clone {
    ranges(buffers, n.max(0) as usize)
}

/// Maps a bounce buffer in place of the buffers; `None`: they need none.
fn bounce_buffer(concerned: bool, buffers: *const iovec, n: c_int) -> Option<BounceBuffer> {
    concerned.then(|| BounceBuffer::new(total(all(buffers, n)).min(MOST)))?
}

macro_rules! reads {
    ($($name:ident($($at:ident $($flags:ident)?)?) as $type:ty;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, to: *const iovec, n: c_int $(, $at: off_t $(, $flags: c_int)?)?
        ) -> ssize_t {
            // -1: at the descriptor's own place.
            let at = None::<off_t>$(.or(Some($at).filter(|&at| at != -1)))?;
            before_read(fd, at, total(all(to, n)));
            let some = |to, n| next!($name(fd, to, n $(, $at $(, $flags)?)?) as $type);
            let concerned = concerns_stores(all(to, n));
            let Some(bounce) = bounce_buffer(concerned, to, n) else { return some(to, n) };
            let done = some(&bounce.buffer(), 1);
            bounce.store(all(to, n), done.max(0) as usize);
            done
        }
    )*};
}

macro_rules! writes {
    ($($name:ident($($at:ident $($flags:ident)?)?) as $type:ty;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, from: *const iovec, n: c_int $(, $at: off_t $(, $flags: c_int)?)?
        ) -> ssize_t {
            let at = None::<off_t>$(.or(Some($at).filter(|&at| at != -1)))?;
            let some = |from, n| {
                let write = || next!($name(fd, from, n $(, $at $(, $flags)?)?) as $type);
                around_write(fd, at, total(all(from, n)), write)
            };
            let concerned = concerns(all(from, n));
            let Some(bounce) = bounce_buffer(concerned, from, n) else { return some(from, n) };
            bounce.load(all(from, n));
            some(&bounce.buffer(), 1)
        }
    )*};
}

reads! {
    readv() as Vector;
    preadv(at) as VectorAt;
    preadv64(at) as VectorAt;
    preadv2(at flags) as VectorAtWith;
    preadv64v2(at flags) as VectorAtWith;
}

writes! {
    writev() as Vector;
    pwritev(at) as VectorAt;
    pwritev64(at) as VectorAt;
    pwritev2(at flags) as VectorAtWith;
    pwritev64v2(at flags) as VectorAtWith;
}
