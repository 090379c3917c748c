//! Pipelined reads and writes: an io_uring with buffers of its own.
//!
//! A buffer belongs either to the caller, who fills or reads it, or to a transfer under way; its
//! number names both. Nothing is freed while the kernel may still touch it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};

use io_uring::{IoUring, opcode, types};

use super::direct::Buffer;
use super::held;

/// Stands for the registered descriptor where the kernel registers none: it is asked once.
const REFUSED: RawFd = -1;

/// Names a buffer, and the transfer that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferId(u16);

impl BufferId {
    /// Returns it as an array index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Describes a transfer that ended.
#[derive(Debug)]
pub struct Finished {
    /// Names the buffer.
    pub buffer: BufferId,
    /// Counts the bytes transferred.
    pub result: io::Result<usize>,
}

/// Holds an io_uring and its buffers, which take memory as they are used; the first may from the
/// start.
pub struct Ring {
    ring: IoUring,
    buffers: Vec<Buffer>,
    /// Bytes that each buffer may hold so far.
    granted: Vec<usize>,
    free: Vec<u16>,
    in_flight: usize,
    queued: usize,
    /// The descriptor whose file is registered with the ring; none is [`REFUSED`].
    registered: Option<RawFd>,
}

impl Ring {
    /// Opens a ring for `depth` transfers of up to `bytes` each.
    pub fn new(depth: u16, bytes: usize) -> io::Result<Self> {
        // Its thread looks often enough: it need not be interrupted when a transfer ends.
        let made = IoUring::builder().setup_coop_taskrun().build(u32::from(depth))?;
        let ring = kept(made)?;
        let buffers =
            (0..depth).map(|_| Buffer::for_transfers(bytes)).collect::<io::Result<_>>()?;
        let mut granted = vec![0; usize::from(depth)];
        granted[0] = bytes;
        let free = (0..depth).rev().collect();
        Ok(Self { ring, buffers, granted, free, in_flight: 0, queued: 0, registered: None })
    }

    /// Registers the file that most transfers are for: from then on they reach this file even if
    /// the program puts another at its number, between the comparison and the transfer too. If the
    /// kernel refuses, transfers go by number.
    pub fn register(&mut self, fd: BorrowedFd<'_>) {
        let number = fd.as_raw_fd();
        if self.registered.is_some() || !held::is_active() {
            return;
        }
        held::check(fd);
        let registered = self.ring.submitter().register_files(&[number]).is_ok();
        // What was registered is the pager's only if the number still is.
        held::check(fd);
        self.registered = Some(if registered { number } else { REFUSED });
    }

    /// Counts the bytes granted to buffers beyond the first.
    pub fn grown(&self) -> u64 {
        self.granted[1..].iter().sum::<usize>() as u64
    }

    /// Counts the transfers under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Takes a free buffer for `len` bytes. If it takes more memory than one did so far, `grant` is
    /// asked for that.
    pub fn take(&mut self, len: usize, grant: impl FnOnce(u64) -> bool) -> Option<BufferId> {
        let granted = |&buffer: &u16| self.granted[usize::from(buffer)];
        let at = match self.free.iter().rposition(|buffer| granted(buffer) >= len) {
            Some(at) => at,
            None => {
                let last = *self.free.last()?;
                if !grant((len - granted(&last)) as u64) {
                    return None;
                }
                self.granted[usize::from(last)] = len;
                self.free.len() - 1
            }
        };
        Some(BufferId(self.free.remove(at)))
    }

    /// Gives a buffer back.
    pub fn give_back(&mut self, buffer: BufferId) {
        self.free.push(buffer.0);
    }

    /// Returns the content of a taken buffer.
    pub fn bytes(&mut self, buffer: BufferId) -> &mut [u8] {
        &mut self.buffers[buffer.index()]
    }

    /// Queues a read of `len` bytes at `offset` into the buffer.
    pub fn read(&mut self, fd: BorrowedFd<'_>, buffer: BufferId, len: usize, offset: u64) {
        held::check(fd);
        let start = self.start_of(buffer, len);
        let entry = opcode::Read::new(types::Fd(fd.as_raw_fd()), start, len as u32).offset(offset);
        self.push(&entry.build().user_data(buffer.0.into()));
    }

    /// Queues a write of the first `len` bytes of the buffer to `offset`.
    pub fn write(&mut self, fd: BorrowedFd<'_>, buffer: BufferId, len: usize, offset: u64) {
        held::check(fd);
        let start = self.start_of(buffer, len);
        let (fd, len) = (fd.as_raw_fd(), len as u32);
        let entry = if self.registered == Some(fd) {
            opcode::Write::new(types::Fixed(0), start, len)
        } else {
            opcode::Write::new(types::Fd(fd), start, len)
        };
        self.push(&entry.offset(offset).build().user_data(buffer.0.into()));
    }

    fn start_of(&mut self, buffer: BufferId, len: usize) -> *mut u8 {
        let buffer = &mut self.buffers[buffer.index()];
        assert!(len <= buffer.len(), "the transfer is longer than its buffer");
        buffer.as_mut_ptr()
    }

    fn push(&mut self, entry: &io_uring::squeue::Entry) {
        // SAFETY: the entry's buffer is ours and stays until its completion was seen; there are
        // as many entries as buffers, so the queue is never full.
        unsafe { self.ring.submission().push(entry) }.expect("an entry for each buffer");
        self.in_flight += 1;
        self.queued += 1;
    }

    /// Starts what was queued.
    pub fn submit(&mut self) -> io::Result<()> {
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(n) => self.queued -= n.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// Ends the process if the ring's number holds another file: that is why the call failed.
    fn failed(&self, error: io::Error) -> io::Error {
        held::check(self.as_fd());
        error
    }

    /// Returns a transfer that ended; its buffer is the caller's again.
    pub fn finished(&mut self) -> Option<Finished> {
        let entry = self.ring.completion().next()?;
        self.in_flight -= 1;
        let result = match entry.result() {
            n if n >= 0 => Ok(n as usize),
            error => Err(io::Error::from_raw_os_error(-error)),
        };
        Some(Finished { buffer: BufferId(entry.user_data() as u16), result })
    }

    /// Waits until at least one transfer ended.
    pub fn wait(&mut self) -> io::Result<()> {
        self.submit()?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done.map(drop).map_err(|error| self.failed(error)),
            }
        }
    }
}

/// Makes the ring one whose descriptor is kept apart from the program's.
fn kept(made: IoUring) -> io::Result<IoUring> {
    if !held::is_active() {
        return Ok(made);
    }
    let params = made.params().clone();
    // SAFETY: the descriptor is open, and is duplicated.
    let fd = unsafe { BorrowedFd::borrow_raw(made.as_raw_fd()) }.try_clone_to_owned()?;
    let fd = held::keep(fd)?.into_raw_fd();
    // SAFETY: the descriptor is that ring's, handed over, and these are its parameters.
    unsafe { IoUring::from_fd(fd, params) }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor lives as long as the ring.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.wait().is_err() {
                // The kernel may still write there: memory is the lesser loss.
                std::mem::take(&mut self.buffers).into_iter().for_each(std::mem::forget);
                return;
            }
            while self.finished().is_some() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::direct::tests::is_kept_from_children;
    use super::*;

    #[test]
    fn buffers_take_what_was_granted() {
        let Ok(mut ring) = Ring::new(3, 8192) else { return println!("skipped: no io_uring") };
        assert!(ring.buffers.iter().all(is_kept_from_children));
        let first = ring.take(8192, |_| panic!("the first is paid for")).unwrap();
        assert_eq!(ring.take(4096, |_| false), None);
        let second = ring.take(4096, |bytes| bytes == 4096).unwrap();
        assert_eq!(ring.grown(), 4096);
        ring.give_back(first);
        assert_eq!(ring.take(8192, |_| false), Some(first), "not one that would have to grow");
        ring.give_back(second);
        assert_eq!(ring.take(4096, |_| false), Some(second), "it holds as much already");
        ring.give_back(second);
        assert_eq!(ring.take(8192, |bytes| bytes == 4096), Some(second), "only what it adds");
        assert_eq!(ring.grown(), 8192);
    }
}
