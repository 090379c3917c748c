//! Memory of managed files that calls are given, where faults are signals: the kernel gets none,
//! and says EFAULT of what is not there. It is brought before the call, and again if it was taken
//! in between.

use std::iter::once;
use std::ops::Range;

use libc::{c_int, c_void, size_t, ssize_t};
use mglru_pager::own::as_own;
use mglru_pager::{Advice, FaultEngine};

use crate::calls::errno;
use crate::settings;
use crate::table::{any_at, table};

/// Bytes for files at once, so that what is brought first stays until all is there.
pub const PART: usize = 128 << 10;
/// How often a call is made: a budget so short that what is brought goes at once is EFAULT.
pub const TRIES: usize = 64;

/// Makes a call that is given memory to load from ([`Advice::PopulateRead`]) or to store to
/// ([`Advice::PopulateWrite`]); for files in parts. `call` is told how much is done, and how much
/// it is to do.
pub fn lent(
    fd: c_int,
    start: *const c_void,
    len: size_t,
    advice: Advice,
    call: impl Fn(usize, usize) -> ssize_t,
) -> ssize_t {
    let all = range(start, len);
    if !concerns(&all) {
        return call(0, len);
    }
    let part = if is_file(fd) { PART } else { len };
    let mut done = 0;
    loop {
        let some = part.min(len - done);
        let now = range(start.wrapping_byte_add(done), some);
        match given(once(now), advice, || call(done, some)) {
            n if n > 0 => done += n as usize,
            n if done == 0 => return n,
            _ => return done as ssize_t,
        }
        if done == len || part == len {
            return done as ssize_t;
        }
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

fn is_file(fd: c_int) -> bool {
    // SAFETY: the structure is plain numbers, and the call fills it.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFREG
    }
}
