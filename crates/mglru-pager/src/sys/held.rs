//! Descriptors that the pager holds in a program that does not know of them.
//!
//! A program under `mglru exec` may close, or put a file of its own at, any number. So the pager
//! moves its descriptors far above the numbers that programs use, where the preload library keeps
//! `close` and `dup2` away from them, and compares what is at a number with what it put there
//! before it reads, writes or closes: a system call of the program's own is not stopped by any
//! library. Without [`start`] descriptors stay where the kernel put them and nothing is compared.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, forget};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{checked, raw};

/// The pager's numbers begin here, or lower: the kernel's table of descriptors is as long as the
/// highest number in use.
const HIGH: libc::rlim_t = 1 << 15;
/// Numbers from the first one on that the pager may have.
const ROOM: libc::rlim_t = 4096;
/// All of its numbers are lower.
const MOST: usize = (HIGH + ROOM) as usize;

/// The first number that the pager takes, if it may; 0: numbers do not matter here.
static BASE: AtomicI32 = AtomicI32::new(0);
static HELD: [Slot; MOST] = [const { Slot::new() }; MOST];
/// The limit on numbers is raised for a moment by one thread at a time.
static RAISED: Mutex<()> = Mutex::new(());
thread_local! {
    /// Held by a thread that forks: the child of a fork would keep the raised limit.
    static FORKING: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}
/// Standard error as the program was given it.
static STDERR: Slot = Slot::new();

/// Names the open file at a number; an inode of 0: none of the pager's.
struct Slot {
    device: AtomicU64,
    inode: AtomicU64,
}

type Identity = (u64, u64);

impl Slot {
    const fn new() -> Self {
        Self { device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    fn set(&self, (device, inode): Identity) {
        self.device.store(device, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Release);
    }

    fn get(&self) -> Option<Identity> {
        let inode = self.inode.load(Ordering::Acquire);
        (inode != 0).then(|| (self.device.load(Ordering::Relaxed), inode))
    }
}

/// Reads which file is at a number; `None`: it is closed.
fn identity(fd: RawFd) -> Option<Identity> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call fills the structure if it returns 0.
    unsafe {
        (libc::fstat(fd, stat.as_mut_ptr()) == 0).then(|| {
            let stat = stat.assume_init_ref();
            (stat.st_dev, stat.st_ino)
        })
    }
}

/// Begins to keep descriptors apart from the program's, before it runs.
pub fn start() {
    identity(2).into_iter().for_each(|stderr| STDERR.set(stderr));
    BASE.store(base(limit(None).unwrap_or_default()), Ordering::Release);
}

/// Chooses the first number: the program's limit, if that can be exceeded for a moment, else the
/// upper half below it.
fn base(now: libc::rlimit) -> RawFd {
    let first = now.rlim_cur.min(HIGH);
    let raised = raised(now, first);
    let can_rise = limit(Some(&raised)).and_then(|_| limit(Some(&now))).is_ok();
    let first = if can_rise { first } else { half(now) };
    first as RawFd
}

/// A limit that has room for the pager's numbers from the first one on.
fn raised(now: libc::rlimit, first: libc::rlim_t) -> libc::rlimit {
    let most = first + ROOM;
    libc::rlimit { rlim_cur: now.rlim_cur.max(most), rlim_max: now.rlim_max.max(most) }
}

/// The first number of the upper half of those that a process may use.
fn half(now: libc::rlimit) -> libc::rlim_t {
    (now.rlim_cur / 2).min(HIGH)
}

/// Reads the limit on numbers, and sets it if it is to change.
fn limit(change: Option<&libc::rlimit>) -> io::Result<libc::rlimit> {
    raw::limit(0, libc::RLIMIT_NOFILE, change)
}

/// Tells whether descriptors are kept apart.
pub fn is_active() -> bool {
    BASE.load(Ordering::Acquire) != 0
}

fn slot(fd: RawFd) -> Option<&'static Slot> {
    let fd = usize::try_from(fd).ok().filter(|_| is_active())?;
    HELD.get(fd)
}

/// Tells whether a number is the pager's.
pub fn is_held(fd: RawFd) -> bool {
    slot(fd).is_some_and(|slot| slot.get().is_some())
}

/// Moves a new descriptor to a number of the pager's.
///
/// # Errors
/// There is no free number that this process may use.
pub fn keep<T: Into<OwnedFd> + From<OwnedFd>>(new: T) -> io::Result<T> {
    if !is_active() {
        return Ok(new);
    }
    let low: OwnedFd = new.into();
    let high = duplicate(low.as_raw_fd())?;
    let known = identity(high.as_raw_fd());
    match (slot(high.as_raw_fd()), known) {
        (Some(slot), Some(known)) => slot.set(known),
        _ => return Err(io::Error::from_raw_os_error(libc::EMFILE)),
    }
    if identity(low.as_raw_fd()) != known {
        // The program put a file of its own there meanwhile.
        forget(low);
    }
    Ok(high.into())
}

/// Keeps a descriptor as [`keep`] does; what cannot be moved stays where it is.
pub fn keep_or_leave(new: OwnedFd) -> OwnedFd {
    match new.try_clone().and_then(keep) {
        Ok(kept) => kept,
        Err(_) => new,
    }
}

/// Clones the descriptor of a file and keeps the clone as [`keep`] does.
pub fn clone(file: &File) -> io::Result<File> {
    file.try_clone().and_then(keep)
}

/// Waits until no thread has raised the limit on numbers, and keeps it from being raised until
/// [`after_fork`]: a child that is forked meanwhile would keep it.
pub fn before_fork() {
    let alone = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    FORKING.with(|forking| *forking.borrow_mut() = Some(alone));
}

/// Lets the limit be raised again, in the parent and in the child.
pub fn after_fork() {
    FORKING.with(|forking| drop(forking.borrow_mut().take()));
}

fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    let base = BASE.load(Ordering::Acquire);
    copy(fd, base).or_else(|full| {
        let _alone = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        let now = limit(None)?;
        if limit(Some(&raised(now, base as libc::rlim_t))).is_err() {
            // The program lowered its limit since.
            return if now.rlim_cur > base as libc::rlim_t {
                Err(full)
            } else {
                copy(fd, half(now) as RawFd)
            };
        }
        let copied = copy(fd, base);
        limit(Some(&now))?;
        copied
    })
}

/// Duplicates a descriptor at the first free number from one on.
fn copy(fd: RawFd, from: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers; the new descriptor is ours.
    unsafe {
        checked(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, from)).map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// Releases a number that the pager is about to close. False: it is the program's by now, and must
/// stay open.
pub fn release(fd: RawFd) -> bool {
    let Some(slot) = slot(fd) else { return true };
    let Some(known) = slot.get() else { return true };
    slot.inode.store(0, Ordering::Release);
    identity(fd) == Some(known)
}

/// Ends the process if a number of the pager's holds another file by now: what it would read or
/// write there is the program's.
pub fn check(fd: BorrowedFd<'_>) {
    let fd = fd.as_raw_fd();
    let held = slot(fd).and_then(Slot::get);
    if held.is_some_and(|held| identity(fd) != Some(held)) {
        raw::say(&format!(
            "descriptor {fd}, which serves this program's memory, was closed or replaced by a \
             system call of its own: the memory is lost"
        ));
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// Calls `each` with the numbers of the pager's between two, in order, without allocating.
pub fn each_within(first: u32, last: u32, each: impl FnMut(u32)) {
    let last = last.min(MOST as u32 - 1);
    (first..=last).filter(|&fd| HELD[fd as usize].get().is_some()).for_each(each);
}

/// Tells whether standard error is what the program was started with: a file that the program put
/// there later gets no messages.
pub fn is_stderr() -> bool {
    !is_active() || STDERR.get() == identity(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_numbers_is_not_raised_while_a_thread_forks() {
        let is_free = || std::thread::spawn(|| RAISED.try_lock().is_ok()).join().unwrap();
        before_fork();
        assert!(!is_free());
        after_fork();
        assert!(is_free());
    }
}
