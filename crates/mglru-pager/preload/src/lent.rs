//! Memory of managed files that calls are given, where faults are signals: the kernel gets none,
//! and says EFAULT of what is not there. It is brought before the call, and again if it was taken
//! in between.

use std::iter::once;
use std::ops::Range;

use libc::{c_int, c_void, iovec, size_t, ssize_t};
use mglru_pager::own::as_own;
use mglru_pager::{Advice, FaultEngine};

use crate::calls::errno;
use crate::settings;
use crate::table::{any_at, table};

/// Bytes at once: what is brought first stays until all is there.
pub const PART: usize = 128 << 10;
/// How often a call is made: a budget so short that what is brought goes at once is EFAULT.
pub const TRIES: usize = 64;

/// What a descriptor is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Where a short transfer is rare: parts follow each other.
    File,
    /// Where reads may be short: only what is written is in several parts.
    Stream,
    /// What one call sends is one message.
    Messages,
}

/// Makes a call that is given memory to load from ([`Advice::PopulateRead`]) or to store to
/// ([`Advice::PopulateWrite`]), in parts. `call` is told how much is done, and how much it is to
/// do.
pub fn lent(
    fd: c_int,
    start: *const c_void,
    len: size_t,
    advice: Advice,
    call: impl Fn(usize, usize) -> ssize_t,
) -> ssize_t {
    if !concerns(&range(start, len)) {
        return call(0, len);
    }
    let kind = kind(fd);
    let part = if kind == Kind::Messages { len } else { PART };
    let mut done = 0;
    loop {
        let some = part.min(len - done);
        let n =
            given(once(range(start.wrapping_byte_add(done), some)), advice, || call(done, some));
        done += n.max(0) as usize;
        let is_short = n < some as ssize_t;
        let goes_on = match kind {
            Kind::File => n > 0,
            Kind::Stream => !is_short && advice == Advice::PopulateRead,
            Kind::Messages => false,
        };
        if done == len || !goes_on {
            return if done == 0 { n } else { done as ssize_t };
        }
    }
}

/// As [`lent`], of several buffers: `call` is given as many as one part holds, if more than that
/// are managed.
pub fn lent_several(
    buffers: *const iovec,
    n: c_int,
    advice: Advice,
    call: impl Fn(*const iovec, c_int) -> ssize_t,
) -> ssize_t {
    let all = ranges(buffers, n.max(0) as usize);
    let first = all.clone().next().filter(|_| all.clone().any(|range| concerns(&range)));
    let Some(first) = first else { return call(buffers, n) };
    let ends = all.scan(0_usize, |total, range| {
        *total = total.saturating_add(range.len());
        Some(*total)
    });
    match ends.take_while(|&end| end <= PART).count() {
        0 => {
            let cut = iovec { iov_base: first.start as *mut c_void, iov_len: PART };
            given(ranges(&cut, 1), advice, || call(&cut, 1))
        }
        fit => given(ranges(buffers, fit), advice, || call(buffers, fit as c_int)),
    }
}

/// Makes a call that is given several pieces of memory.
pub fn given(
    memory: impl Iterator<Item = Range<usize>> + Clone,
    advice: Advice,
    call: impl Fn() -> ssize_t,
) -> ssize_t {
    let managed = memory.filter(concerns);
    let tries = if managed.clone().next().is_some() { TRIES } else { 0 };
    for _ in 0..tries {
        managed.clone().for_each(|range| bring(&range, advice));
        let n = call();
        if n != -1 || errno() != libc::EFAULT {
            return n;
        }
    }
    call()
}

/// The addresses of several buffers.
pub fn ranges(buffers: *const iovec, n: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    // SAFETY: the caller of the function that is stood in for says that there are `n`.
    let buffers = (0..n).map(move |nth| unsafe { *buffers.add(nth) });
    buffers.map(|buffer| range(buffer.iov_base, buffer.iov_len))
}

/// The addresses of a piece of memory.
pub fn range(start: *const c_void, len: size_t) -> Range<usize> {
    start as usize..(start as usize).saturating_add(len)
}

/// Are the faults of some of it signals?
pub fn concerns(memory: &Range<usize>) -> bool {
    settings::faults() == FaultEngine::Sigbus && any_at(memory)
}

/// Brings what can be had; the rest the call meets.
pub fn bring(memory: &Range<usize>, advice: Advice) {
    as_own(|| {
        for managed in table().files() {
            let offsets = managed.offsets(memory.clone());
            if !offsets.is_empty() {
                let _ = managed.map.advise_range(advice, offsets);
            }
        }
    });
}

fn kind(fd: c_int) -> Kind {
    // SAFETY: the structure is plain numbers, and the call fills it.
    let mode = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut stat);
        stat.st_mode & libc::S_IFMT
    };
    match mode {
        libc::S_IFREG => Kind::File,
        libc::S_IFSOCK if is_stream(fd) => Kind::Stream,
        libc::S_IFIFO => Kind::Stream,
        _ => Kind::Messages,
    }
}

fn is_stream(socket: c_int) -> bool {
    let (mut kind, mut len) = (0_i32, 4);
    let to = (&raw mut kind).cast();
    // SAFETY: a number is asked for, and there is room for it.
    unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_TYPE, to, &mut len) };
    kind == libc::SOCK_STREAM
}
