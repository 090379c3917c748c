//! Buffered input and output (stdio) from and to managed memory, where faults are signals: what is
//! large goes past the stream's buffer, by system calls that only the C library sees.

use std::iter::{Once, once};
use std::ops::Range;

use libc::{FILE, c_void, size_t};

use crate::bounce::{BounceBuffer, PART, concerns, concerns_stores, range};
use crate::next::next;

type Write = unsafe extern "C" fn(*const c_void, size_t, size_t, *mut FILE) -> size_t;
type Read = unsafe extern "C" fn(*mut c_void, size_t, size_t, *mut FILE) -> size_t;
type ReadChecked = unsafe extern "C" fn(*mut c_void, size_t, size_t, size_t, *mut FILE) -> size_t;

unsafe extern "C" {
    fn flockfile(stream: *mut FILE);
    fn funlockfile(stream: *mut FILE);
}

/// Transfers `n` items in parts, by way of a bounce buffer, if `concerned` says that the memory
/// needs one: `some` transfers one part and returns its bytes.
fn items(
    start: *const c_void,
    size: size_t,
    n: size_t,
    stream: *mut FILE,
    concerned: fn(Once<Range<usize>>) -> bool,
    some: impl Fn(&BounceBuffer, Range<usize>) -> usize,
) -> Option<size_t> {
    let all = range(start, size.checked_mul(n)?);
    let bounce =
        concerned(once(all.clone())).then(|| BounceBuffer::new(PART.min(all.len()))).flatten()?;
    let mut at = all.start;
    // SAFETY: the caller's stream, which no other thread comes upon between two parts.
    unsafe { flockfile(stream) };
    while at < all.end {
        let part = at..all.end.min(at + PART);
        let done = some(&bounce, part.clone());
        at += done;
        if done < part.len() {
            break;
        }
    }
    // SAFETY: this thread has locked it.
    unsafe { funlockfile(stream) };
    Some((at - all.start) / size)
}

macro_rules! writes {
    ($($name:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            from: *const c_void,
            size: size_t,
            n: size_t,
            stream: *mut FILE,
        ) -> size_t {
            let some = |from, size, n| next!($name(from, size, n, stream) as Write);
            items(from, size, n, stream, concerns, |bounce, part| {
                bounce.load(once(part.clone()));
                some(bounce.start(), 1, part.len())
            })
            .unwrap_or_else(|| some(from, size, n))
        }
    )*};
}

macro_rules! reads {
    ($($name:ident, $checked:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            to: *mut c_void,
            size: size_t,
            n: size_t,
            stream: *mut FILE,
        ) -> size_t {
            let some = |to, size, n| next!($name(to, size, n, stream) as Read);
            items(to, size, n, stream, concerns_stores, |bounce, part| {
                let done = some(bounce.start(), 1, part.len());
                bounce.store(once(part), done);
                done
            })
            .unwrap_or_else(|| some(to, size, n))
        }

        /// Stands in for what that is where the compiler knows how large the buffer is.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $checked(
            to: *mut c_void,
            room: size_t,
            size: size_t,
            n: size_t,
            stream: *mut FILE,
        ) -> size_t {
            if size.checked_mul(n).is_none_or(|len| len > room) {
                return next!($checked(to, room, size, n, stream) as ReadChecked);
            }
            // SAFETY: the caller's own arguments, which are found to be in order.
            unsafe { $name(to, size, n, stream) }
        }
    )*};
}

writes! {
    fwrite;
    fwrite_unlocked;
}

reads! {
    fread, __fread_chk;
    fread_unlocked, __fread_unlocked_chk;
}
