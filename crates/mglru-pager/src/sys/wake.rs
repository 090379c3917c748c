//! Sleeping until a descriptor has something, and being woken by another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{checked, held, idle, raw};

/// Wakes the one thread that sleeps on it.
#[derive(Debug)]
pub struct Wake {
    fd: OwnedFd,
    rung: AtomicBool,
}

impl Wake {
    /// Creates one.
    pub fn new() -> io::Result<Self> {
        let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: takes numbers, returns a new descriptor.
        let fd = checked(unsafe { libc::eventfd(0, flags) })?;
        // SAFETY: the descriptor is new and ours.
        let fd = held::keep(unsafe { OwnedFd::from_raw_fd(fd) })?;
        Ok(Self { fd, rung: AtomicBool::new(false) })
    }

    /// Wakes the sleeper, now or when it next lies down.
    pub fn ring(&self) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        // A full counter has rung already.
        let _ = raw::write(self.fd.as_fd(), &1u64.to_ne_bytes());
    }

    /// Rings as [`Self::ring`] does; somebody waits for what the sleeper does.
    pub fn summon(&self) {
        self.ring();
        idle::hurry();
    }

    /// Forgets that it was rung, and returns whether it was. The sleeper calls this when it gets
    /// up, before it looks for work: a ring that comes between is for work it will see.
    pub fn hush(&self) -> bool {
        let mut count = [0u8; 8];
        // Nothing to read is fine. A ring whose write comes late wakes once in vain.
        let _ = raw::read(self.fd.as_fd(), &mut count);
        self.rung.swap(false, Ordering::AcqRel)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sleeps until one of the descriptors can be read, or `at_most` is over; which of them can.
pub fn sleep<const N: usize>(on: [BorrowedFd<'_>; N], at_most: Option<Duration>) -> [bool; N] {
    let mut polled = on.map(polled);
    sleep_on(&mut polled, at_most);
    polled.map(|polled| polled.revents != 0)
}

/// Sleeps as [`sleep`] does, on any number of descriptors.
pub fn sleep_any<'a>(on: impl Iterator<Item = BorrowedFd<'a>>, at_most: Option<Duration>) {
    sleep_on(&mut on.map(polled).collect::<Vec<_>>(), at_most);
}

/// Is there something to read, or an end to be noticed?
pub fn is_ready(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [polled(fd)];
    sleep_on(&mut polled, Some(Duration::ZERO));
    polled[0].revents != 0
}

fn polled(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

fn sleep_on(fds: &mut [libc::pollfd], at_most: Option<Duration>) {
    let round_up = |d: Duration| d.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
    let timeout = at_most.map_or(-1, round_up);
    // SAFETY: the slice is as long as it says. Waking early is harmless: callers look again.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_ring_before_sleep_is_not_lost() {
        let wake = Arc::new(Wake::new().unwrap());
        wake.ring();
        wake.ring();
        sleep([wake.as_fd()], None);
        assert!(wake.hush() && !wake.hush());
        let other = wake.clone();
        let thread = std::thread::spawn(move || other.ring());
        sleep([wake.as_fd()], None);
        thread.join().unwrap();
        assert!(wake.hush());
        let before = Instant::now();
        sleep([wake.as_fd()], Some(Duration::from_millis(3)));
        assert!(before.elapsed() >= Duration::from_millis(2));
    }
}
