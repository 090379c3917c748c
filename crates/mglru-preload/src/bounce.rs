//! Bounce buffers for system calls on managed memory, where faults are signals: the kernel cannot
//! raise them and would answer EFAULT for an absent page. The call gets a bounce buffer, and plain
//! loads and stores copy between it and the program's memory.

use std::iter::once;
use std::ops::Range;
use std::ptr::copy_nonoverlapping;

use libc::{c_int, c_void, iovec, size_t, ssize_t};
use mglru_pager::FaultEngine;

use crate::table::any;
use crate::{memory, places, settings};

/// Bounds the bounce buffer of a transfer that is made in parts, bytes; no budget counts it.
pub const PART: usize = 1 << 20;
/// Bounds the bounce buffer of a message or of several buffers, bytes.
pub const MOST: usize = 16 << 20;
/// The kernel takes no more buffers.
const MOST_BUFFERS: usize = 1024;

/// Holds memory that a system call uses in place of the program's.
pub struct BounceBuffer {
    start: *mut c_void,
    len: usize,
}

impl BounceBuffer {
    /// Maps a buffer of a length; `None`: there is no memory.
    pub fn new(len: usize) -> Option<Self> {
        let start = memory::map(len, libc::PROT_READ | libc::PROT_WRITE)?.cast();
        Some(Self { start, len })
    }

    /// Returns the buffer's address.
    pub fn start(&self) -> *mut c_void {
        self.start
    }

    /// Describes the buffer as a call's only one.
    pub fn buffer(&self) -> iovec {
        iovec { iov_base: self.start, iov_len: self.len }
    }

    /// Fills the buffer from pieces of the program's memory, in order, as far as there is room.
    pub fn load(&self, memory: impl Iterator<Item = Range<usize>>) {
        self.each(memory, self.len, |bounce, program, len| {
            // SAFETY: the memory is what the caller of the program's call says it is.
            unsafe { copy_nonoverlapping(program as *const u8, bounce, len) };
        });
    }

    /// Copies the first `len` bytes of the buffer to pieces of the program's memory.
    pub fn store(&self, memory: impl Iterator<Item = Range<usize>>, len: usize) {
        self.each(memory, len, |bounce, program, len| {
            // SAFETY: the program's call may write there, and `each` ends with either side.
            unsafe { copy_nonoverlapping(bounce, program as *mut u8, len) };
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

/// Tells whether a load may touch managed memory whose faults are signals. Iterates `memory` only
/// if the process has such memory.
pub fn concerns(mut memory: impl Iterator<Item = Range<usize>>) -> bool {
    let may = settings::faults() == FaultEngine::Sigbus && any();
    may && memory.any(|piece| !piece.is_empty() && places::meet(&piece))
}

/// Does what [`concerns`] does, for stores. The kernel itself refuses memory that cannot be stored
/// to.
pub fn concerns_stores(mut memory: impl Iterator<Item = Range<usize>> + Clone) -> bool {
    concerns(memory.clone()) && !memory.any(|piece| places::refuse(&piece))
}

/// Returns the addresses of a piece of memory.
pub fn range(start: *const c_void, len: size_t) -> Range<usize> {
    start as usize..(start as usize).saturating_add(len)
}

/// Returns the addresses of several buffers; none if there are more than a call may get.
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

/// Makes a call that loads from memory: `call` gets the address, the bytes done before and the
/// bytes to do.
pub fn loads(
    fd: c_int,
    flags: c_int,
    from: *const c_void,
    len: size_t,
    call: impl Fn(*const c_void, usize, usize) -> ssize_t,
) -> ssize_t {
    let concerned = concerns(once(range(from, len)));
    let Some((bounce, way)) = bounce_buffer(concerned, fd, flags, len, true) else {
        return call(from, 0, len);
    };
    way.go(len, |done, some| {
        bounce.load(once(range(from.wrapping_byte_add(done), some)));
        call(bounce.start, done, some)
    })
}

/// Does what [`loads`] does, for a call that stores to memory.
pub fn stores(
    fd: c_int,
    flags: c_int,
    to: *mut c_void,
    len: size_t,
    call: impl Fn(*mut c_void, usize, usize) -> ssize_t,
) -> ssize_t {
    let concerned = concerns_stores(once(range(to, len)));
    let Some((bounce, way)) = bounce_buffer(concerned, fd, flags, len, false) else {
        return call(to, 0, len);
    };
    way.go(len, |done, some| {
        let n = call(bounce.start, done, some);
        bounce.store(once(range(to.wrapping_byte_add(done), some)), n.max(0) as usize);
        n
    })
}

/// Maps a bounce buffer for a transfer and returns how to make it; `None`: call without one.
fn bounce_buffer(
    concerned: bool,
    fd: c_int,
    flags: c_int,
    len: usize,
    loads: bool,
) -> Option<(BounceBuffer, Way)> {
    let way = concerned.then(|| Way::of(fd, flags, len, loads))??;
    Some((BounceBuffer::new(way.part)?, way))
}

/// Says how a transfer is made.
struct Way {
    /// Bytes of a part.
    part: usize,
    /// Makes the next part if the last one was whole.
    goes_on: bool,
}

impl Way {
    /// `None`: a transfer that must be made in one piece and is too large, or one from memory that
    /// the kernel reads after the call.
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
        assert_eq!(
            way(false).go(2, |_, _| 7),
            7,
            "a message was longer, and its length is returned"
        );
        assert_eq!(way(true).go(0, |_, len| len as ssize_t), 0);
    }

    #[test]
    fn several_pieces_are_copied_as_one() {
        let (one, mut two, mut three) = ([1_u8, 2], [0_u8; 2], [0_u8; 4]);
        let at = |bytes: &[u8]| range(bytes.as_ptr().cast(), bytes.len());
        let bounce = BounceBuffer::new(4).unwrap();
        bounce.load([at(&one), at(&one), at(&one)].into_iter());
        let pieces = [range(two.as_mut_ptr().cast(), 2), range(three.as_mut_ptr().cast(), 4)];
        bounce.store(pieces.into_iter(), 3);
        assert_eq!((two, three), ([1, 2], [1, 0, 0, 0]));
    }
}
