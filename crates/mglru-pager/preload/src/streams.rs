//! Buffered input and output (stdio) from and to managed memory, where faults are signals: what is
//! large goes past the stream's buffer, by system calls that only the C library sees.

use libc::{FILE, c_void, size_t};
use mglru_pager::Advice;

use crate::calls::{errno, set_errno};
use crate::lent::{PART, TRIES, bring, concerns, range};
use crate::next::next;

type Write = unsafe extern "C" fn(*const c_void, size_t, size_t, *mut FILE) -> size_t;
type Read = unsafe extern "C" fn(*mut c_void, size_t, size_t, *mut FILE) -> size_t;
type ReadChecked = unsafe extern "C" fn(*mut c_void, size_t, size_t, size_t, *mut FILE) -> size_t;

/// Transfers `n` items, if their memory is managed: `call` transfers some bytes, after so many.
fn items(
    start: *const c_void,
    size: size_t,
    n: size_t,
    stream: *mut FILE,
    advice: Advice,
    call: impl Fn(usize, usize) -> usize,
) -> Option<size_t> {
    let all = range(start, size.checked_mul(n)?);
    if !concerns(&all) {
        return None;
    }
    let (mut done, mut tries) = (0, 0);
    while done < all.len() {
        let len = PART.min(all.len() - done);
        bring(&(all.start + done..all.start + done + len), advice);
        set_errno(0);
        let moved = call(done, len);
        done += moved;
        if moved < len {
            if errno() != libc::EFAULT || tries == TRIES {
                break;
            }
            tries += 1;
            // SAFETY: the caller's stream. That memory was taken meanwhile is no error of it.
            unsafe { clearerr(stream) };
        }
    }
    Some(done / size)
}

unsafe extern "C" {
    fn clearerr(stream: *mut FILE);
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
            items(from, size, n, stream, Advice::PopulateRead, |done, len| {
                some(from.wrapping_byte_add(done), 1, len)
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
            items(to, size, n, stream, Advice::PopulateWrite, |done, len| {
                some(to.wrapping_byte_add(done), 1, len)
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
            let some =
                |to, room, size, n| next!($checked(to, room, size, n, stream) as ReadChecked);
            items(to, size, n, stream, Advice::PopulateWrite, |done, len| {
                some(to.wrapping_byte_add(done), room.saturating_sub(done), 1, len)
            })
            .unwrap_or_else(|| some(to, room, size, n))
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
