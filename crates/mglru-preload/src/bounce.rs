//! Memory of managed files that calls are given, where faults are signals: the kernel gets none,
//! and would say EFAULT of what is not there. It is lent other memory, from which and to which the
//! program's is copied by plain loads and stores.

use std::iter::once;
use std::ops::Range;
use std::ptr::copy_nonoverlapping;

use libc::{c_int, c_void, iovec, size_t, ssize_t};
use mglru_pager::FaultEngine;

use crate::table::any;
use crate::{memory, places, settings};

/// Bytes lent at once to what takes them in parts; the budget does not know of them.
pub const PART: usize = 1 << 20;
/// Longest message, or sum of several buffers, that is lent in one piece.
pub const MOST: usize = 16 << 20;
/// The kernel takes no more buffers.
const MOST_BUFFERS: usize = 1024;

/// Memory that is lent.
pub struct BounceBuffer {
    start: *mut c_void,
    len: usize,
}

impl BounceBuffer {
    /// Maps memory of a length; `None`: there is none.
    pub fn new(len: usize) -> Option<Self> {
        let start = memory::map(len, libc::PROT_READ | libc::PROT_WRITE)?.cast();
        Some(Self { start, len })
    }

    /// Where it is.
    pub fn start(&self) -> *mut c_void {
        self.start
    }

    /// It, as a call's only buffer.
    pub fn buffer(&self) -> iovec {
        iovec { iov_base: self.start, iov_len: self.len }
    }

    /// Takes what the program's memory holds, one piece after the other, as far as there is room.
    pub fn load(&self, memory: impl Iterator<Item = Range<usize>>) {
        self.each(memory, self.len, |lent, program, len| {
            // SAFETY: the memory is what the caller of the program's call says it is.
            unsafe { copy_nonoverlapping(program as *const u8, lent, len) };
        });
    }

    /// Puts the first `len` bytes there.
    pub fn store(&self, memory: impl Iterator<Item = Range<usize>>, len: usize) {
        self.each(memory, len, |lent, program, len| {
            // SAFETY: the program's call may write there, and `each` ends with either side.
            unsafe { copy_nonoverlapping(lent, program as *mut u8, len) };
        });
    }

    fn each(
        &self,
        memory: impl Iterator<Item = Range<usize>>,
        len: usize,
        copy: impl Fn(*mut u8, usize, usize),
    ) {
        let (mut done, len) = (0, len.min(self.len));
        for piece in memory {
            let some = piece.len().min(len - done);
            copy(self.start.cast::<u8>().wrapping_add(done), piece.start, some);
            done += some;
        }
    }
}

impl Drop for BounceBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own.
        unsafe { libc::syscall(libc::SYS_munmap, self.start, self.len) };
    }
}

/// May some of what is loaded from be managed memory whose faults are signals? It is looked at
/// only if there is any.
pub fn concerns(mut memory: impl Iterator<Item = Range<usize>>) -> bool {
    let may = settings::faults() == FaultEngine::Sigbus && any();
    may && memory.any(|piece| !piece.is_empty() && places::meet(&piece))
}

/// As [`concerns`], of what is stored to. Where no store is possible the kernel says so.
pub fn concerns_stores(mut memory: impl Iterator<Item = Range<usize>> + Clone) -> bool {
    concerns(memory.clone()) && !memory.any(|piece| places::refuse(&piece))
}

/// Returns the addresses of a piece of memory.
pub fn range(start: *const c_void, len: size_t) -> Range<usize> {
    start as usize..(start as usize).saturating_add(len)
}

/// Those of several, as many as a call may be given.
pub fn ranges(buffers: *const iovec, n: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    let n = if n > MOST_BUFFERS { 0 } else { n };
    // SAFETY: the caller of the program's call says that there are `n`.
    let buffers = (0..n).map(move |nth| unsafe { *buffers.add(nth) });
    buffers.map(|buffer| range(buffer.iov_base, buffer.iov_len))
}

/// Counts the bytes of several pieces.
pub fn total(memory: impl Iterator<Item = Range<usize>>) -> usize {
    memory.map(|piece| piece.len()).fold(0, usize::saturating_add)
}

/// Makes a call that loads from memory: `call` is told from where, how much was done before, and
/// how much it is to do.
pub fn loads(
    fd: c_int,
    flags: c_int,
    from: *const c_void,
    len: size_t,
    call: impl Fn(*const c_void, usize, usize) -> ssize_t,
) -> ssize_t {
    let concerned = concerns(once(range(from, len)));
    let Some((lent, way)) = lent(concerned, fd, flags, len, true) else {
        return call(from, 0, len);
    };
    way.go(len, |done, some| {
        lent.load(once(range(from.wrapping_byte_add(done), some)));
        call(lent.start, done, some)
    })
}

/// As [`loads`], of a call that stores to memory.
pub fn stores(
    fd: c_int,
    flags: c_int,
    to: *mut c_void,
    len: size_t,
    call: impl Fn(*mut c_void, usize, usize) -> ssize_t,
) -> ssize_t {
    let concerned = concerns_stores(once(range(to, len)));
    let Some((lent, way)) = lent(concerned, fd, flags, len, false) else { return call(to, 0, len) };
    way.go(len, |done, some| {
        let n = call(lent.start, done, some);
        lent.store(once(range(to.wrapping_byte_add(done), some)), n.max(0) as usize);
        n
    })
}

/// Lends memory for a transfer and says how to make it; `None`: make it as it came.
fn lent(
    concerned: bool,
    fd: c_int,
    flags: c_int,
    len: usize,
    loads: bool,
) -> Option<(BounceBuffer, Way)> {
    let way = concerned.then(|| Way::of(fd, flags, len, loads))??;
    Some((BounceBuffer::new(way.part)?, way))
}

/// How a transfer is made.
struct Way {
    /// Bytes of a part.
    part: usize,
    /// One follows the other as long as they are whole.
    goes_on: bool,
}

impl Way {
    /// `None`: in one piece, for which it is too much, or from memory that the kernel goes on
    /// loading from.
    fn of(fd: c_int, flags: c_int, len: usize, loads: bool) -> Option<Self> {
        if loads && flags & libc::MSG_ZEROCOPY != 0 {
            return None;
        }
        let is_one =
            flags & (libc::MSG_OOB | libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_FASTOPEN) != 0;
        let fills = loads || flags & libc::MSG_WAITALL != 0;
        let part = PART.min(len);
        match mode(fd) {
            libc::S_IFREG | libc::S_IFBLK => Some(Self { part, goes_on: true }),
            libc::S_IFIFO => Some(Self { part, goes_on: fills }),
            libc::S_IFSOCK if is_stream(fd) && !is_one => Some(Self { part, goes_on: fills }),
            libc::S_IFCHR if len > MOST => Some(Self { part, goes_on: fills }),
            _ => (len <= MOST).then_some(Self { part: len, goes_on: false }),
        }
    }

    fn go(&self, len: usize, some: impl Fn(usize, usize) -> ssize_t) -> ssize_t {
        let mut done = 0;
        loop {
            let now = self.part.min(len - done);
            let n = some(done, now);
            if done == 0 && (n < now as ssize_t || !self.goes_on) {
                return n;
            }
            done += n.max(0) as usize;
            if n < now as ssize_t || done == len {
                return done as ssize_t;
            }
        }
    }
}

fn mode(fd: c_int) -> libc::mode_t {
    // SAFETY: the structure is plain numbers, and the call fills it.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut stat);
        stat.st_mode & libc::S_IFMT
    }
}

fn is_stream(socket: c_int) -> bool {
    let (mut kind, mut len) = (0_i32, 4);
    let to = (&raw mut kind).cast();
    // SAFETY: a number is asked for, and there is room for it.
    unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_TYPE, to, &mut len) };
    kind == libc::SOCK_STREAM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_while_they_are_whole() {
        let way = |goes_on| Way { part: 4, goes_on };
        let short = |at: usize| move |done: usize, len: usize| (at - done).min(len) as ssize_t;
        assert_eq!(way(true).go(10, short(10)), 10);
        assert_eq!(way(true).go(10, short(6)), 6, "the second is not whole");
        assert_eq!(way(true).go(10, short(8)), 8, "the third is nothing");
        assert_eq!(way(false).go(10, short(10)), 4);
        assert_eq!(way(true).go(10, |_, _| -1), -1);
        assert_eq!(way(true).go(10, |done, _| if done == 0 { 4 } else { -1 }), 4);
        assert_eq!(way(false).go(2, |_, _| 7), 7, "a message was longer, and its length is told");
        assert_eq!(way(true).go(0, |_, len| len as ssize_t), 0);
    }

    #[test]
    fn several_pieces_are_lent_as_one() {
        let (one, mut two, mut three) = ([1_u8, 2], [0_u8; 2], [0_u8; 4]);
        let at = |bytes: &[u8]| range(bytes.as_ptr().cast(), bytes.len());
        let lent = BounceBuffer::new(4).unwrap();
        lent.load([at(&one), at(&one), at(&one)].into_iter());
        let pieces = [range(two.as_mut_ptr().cast(), 2), range(three.as_mut_ptr().cast(), 4)];
        lent.store(pieces.into_iter(), 3);
        assert_eq!((two, three), ([1, 2], [1, 0, 0, 0]));
    }
}
