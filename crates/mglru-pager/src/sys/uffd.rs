//! userfaultfd: features probed, faults read, pages installed and write-protected.
//!
//! Every call that installs or protects may be refused with EAGAIN while the address space
//! changes, or be done in part; the wrappers go on until it is done. A heap's userfaultfd hears
//! of such changes, and they end only when that was read: there EAGAIN is `WouldBlock`, for the
//! caller to read first.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::uffd_abi::*;
use super::{PAGE, checked, held, raw};

/// Both kinds of write protection of shared memory, and what a fault was for.
const FEATURES: u64 = FEATURE_WP | FEATURE_MISSING_SHMEM | FEATURE_WP_SHMEM;
const FEATURE_WP: u64 = 1 << 0;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_WP_SHMEM: u64 = 1 << 12;
/// Reports failed reads to the thread that touches the page.
pub const FEATURE_POISON: u64 = 1 << 14;
/// Lets pages of private memory be moved.
pub const FEATURE_MOVE: u64 = 1 << 16;
/// Sends SIGBUS to the thread that faults, and no message.
pub const FEATURE_SIGBUS: u64 = 1 << 7;
/// Reports children of a fork.
pub const FEATURE_EVENT_FORK: u64 = 1 << 1;
/// Memory that is dropped or unmapped is reported.
const FEATURE_EVENTS_GONE: u64 = 1 << 3 | 1 << 6;
/// Names the features that a heap needs.
pub const FEATURES_HEAP: u64 = FEATURE_WP | FEATURE_MOVE | FEATURE_EVENT_FORK | FEATURE_EVENTS_GONE;
/// Keeps accessed bits, of both kinds of access and without messages.
pub const FEATURES_RWP: u64 = 1 << 17 | 1 << 18;

/// Describes a range of addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Holds the first byte.
    pub start: u64,
    /// Counts the bytes.
    pub len: u64,
}

impl Span {
    /// Returns the first address after it.
    pub fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// Holds a message of the kernel, as it is read.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Message {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    thread: u64,
}

/// Describes a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Holds the address of the page.
    pub address: u64,
    /// Says that a store was tried.
    pub write: bool,
    /// Says that the page is there, protected.
    pub protected: bool,
}

/// Holds the content of a message.
#[derive(Debug)]
pub enum Notice {
    /// Reports a page that is missing, or protected.
    Fault(Fault),
    /// Reports that a child was forked; its faults arrive here.
    Fork(Uffd),
    /// Reports that the program dropped or unmapped a range.
    Gone(Span),
}

impl Message {
    /// Returns the fault it reports, if it reports one.
    pub fn fault(&self) -> Option<Fault> {
        let page = !(PAGE as u64 - 1);
        let fault = Fault {
            address: self.address & page,
            write: self.flags & FLAG_WRITE != 0,
            protected: self.flags & FLAG_WP != 0,
        };
        (self.event == EVENT_PAGEFAULT).then_some(fault)
    }

    /// Decodes it. Ask once: a child's descriptor is handed over.
    pub fn notice(&self) -> Option<Notice> {
        match self.event {
            EVENT_FORK => Some(Notice::Fork(Uffd::of_child(self.flags as libc::c_int))),
            // The fields of these two are the first and the last address.
            EVENT_REMOVE | EVENT_UNMAP => {
                let (start, end) = (self.flags, self.address);
                Some(Notice::Gone(Span { start, len: end - start }))
            }
            _ => self.fault().map(Notice::Fault),
        }
    }
}

/// Holds an open userfaultfd.
#[derive(Debug)]
pub struct Uffd {
    fd: OwnedFd,
    features: u64,
    kernel_faults: bool,
    /// EAGAIN lasts until its events are read.
    reports: bool,
}

impl Uffd {
    /// Opens one with what the pager needs, and whatever of [`FEATURE_POISON`] there is.
    ///
    /// # Errors
    /// The kernel has no userfaultfd, does not let us, or lacks a feature (`Unsupported`).
    pub fn open() -> io::Result<Self> {
        Self::open_with(0)
    }

    /// Opens a userfaultfd whose faults are signalled.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_sigbus() -> io::Result<Self> {
        Self::open_with(FEATURE_SIGBUS)
    }

    fn open_with(more: u64) -> io::Result<Self> {
        let needed = FEATURES | more;
        let offered = features()?;
        if offered & needed != needed {
            let missing = needed & !offered;
            let text = format!("userfaultfd lacks features {missing:#x} (Linux 5.19 has them)");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let (fd, kernel_faults) = open_fd()?;
        let features = needed | offered & FEATURE_POISON;
        handshake(&fd, features)?;
        Ok(Self { fd, features, kernel_faults, reports: false })
    }

    /// Opens one for a heap: it also reports forks and what the program gives up. `keeps`: it keeps
    /// accessed bits, if the kernel can.
    ///
    /// # Errors
    /// As [`Self::open`]; fork events need CAP_SYS_PTRACE.
    pub fn open_heap(keeps: bool) -> io::Result<Self> {
        let offered = features()?;
        let keeps = keeps && offered & FEATURES_RWP == FEATURES_RWP;
        let kept = if keeps { FEATURES_RWP } else { 0 };
        let features = FEATURES_HEAP | offered & FEATURE_POISON | kept;
        let (fd, kernel_faults) = open_fd()?;
        handshake(&fd, features)?;
        Ok(Self { fd, features, kernel_faults, reports: true })
    }

    /// Opens a userfaultfd to which pages can be moved.
    ///
    /// # Errors
    /// As [`Self::open`]; it needs Linux 6.8.
    pub fn open_staging() -> io::Result<Self> {
        let (fd, kernel_faults) = open_fd()?;
        handshake(&fd, FEATURE_MOVE)?;
        Ok(Self { fd, features: FEATURE_MOVE, kernel_faults, reports: false })
    }

    fn of_child(fd: libc::c_int) -> Self {
        // SAFETY: the kernel made the descriptor for the reader of the message.
        let fd = held::keep_or_leave(unsafe { OwnedFd::from_raw_fd(fd) });
        Self { fd, features: FEATURES_HEAP | FEATURE_POISON, kernel_faults: true, reports: true }
    }

    /// Tells whether faults of the kernel on behalf of the program (`read(2)` into a page) are
    /// served too.
    pub fn serves_kernel_faults(&self) -> bool {
        self.kernel_faults
    }

    /// Tells whether the kernel keeps accessed bits of what is registered. Then no store can be
    /// protected from: the two exclude each other.
    pub fn keeps_accessed(&self) -> bool {
        self.features & FEATURES_RWP == FEATURES_RWP
    }

    /// Asks for events of missing pages, and of stores to protected ones unless accessed bits are
    /// kept. All other calls act on what was registered, but for where [`Self::take`] takes from.
    ///
    /// # Safety
    /// Users of the span expect its missing pages to become what this userfaultfd installs.
    pub(super) unsafe fn register(&self, span: Span) -> io::Result<()> {
        let more = match self.keeps_accessed() {
            true => REGISTER_RWP,
            false if self.features & FEATURE_WP != 0 => REGISTER_WP,
            false => 0,
        };
        let mut arg = RegisterArg { span, mode: REGISTER_MISSING | more, ioctls: 0 };
        self.call(IOC_REGISTER, &mut arg)
    }

    /// Asks for no events any more.
    pub fn unregister(&self, mut span: Span) -> io::Result<()> {
        self.call(IOC_UNREGISTER, &mut span)
    }

    /// Lets threads that faulted there try again.
    pub fn wake(&self, mut span: Span) -> io::Result<()> {
        self.call(IOC_WAKE, &mut span)
    }

    /// Installs pages with this content at `dst` and wakes the threads that wait for them.
    /// `protect`: the first store to each is a fault.
    pub fn copy(&self, dst: u64, content: &[u8], protect: bool) -> io::Result<()> {
        let from = Span { start: content.as_ptr() as u64, len: content.len() as u64 };
        // SAFETY: the slice is readable for its length.
        unsafe { self.copy_from(dst, from, protect) }
    }

    /// Installs pages as [`Self::copy`] does, from memory to which no reference can be held.
    ///
    /// # Safety
    /// The bytes at `from` may be read and shown at `dst`.
    pub(super) unsafe fn copy_from(&self, dst: u64, from: Span, protect: bool) -> io::Result<()> {
        let mut done = 0;
        while done < from.len {
            let mut arg = CopyArg {
                dst: dst + done,
                src: from.start + done,
                len: from.len - done,
                mode: if protect { COPY_WP } else { 0 },
                copied: 0,
            };
            match self.call(IOC_COPY, &mut arg) {
                Ok(()) => done = from.len,
                Err(error) if is_again(&error) && !self.reports => {
                    done += arg.copied.max(0) as u64;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves pages of private memory to where this is registered; stores to them end with it.
    /// How many bytes were moved, and why no more: EBUSY, somebody holds the next page, a child
    /// or a device; EINVAL, it is locked or may not be stored to; ENOENT, there is none.
    ///
    /// Linux 6.18, if it comes upon a page that is being migrated, moves it when it can, and
    /// the pages behind it, but does not count them: it finds them at `to` next and says
    /// EEXIST. What is no longer where it was has been moved.
    ///
    /// # Safety
    /// Users of `from` expect its pages to leave, and no reference to them is held.
    pub(super) unsafe fn take(&self, to: u64, from: Span) -> (u64, io::Result<()>) {
        let mut done = 0;
        while done < from.len {
            let (dst, src, len) = (to + done, from.start + done, from.len - done);
            let mut arg = MoveArg { dst, src, len, mode: 0, moved: 0 };
            match self.call(IOC_MOVE, &mut arg) {
                Ok(()) => done = from.len,
                Err(error) if is_again(&error) && (arg.moved > 0 || !self.reports) => {
                    done += arg.moved.max(0) as u64;
                }
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) && !raw::is_here(src) => {
                    done += PAGE as u64;
                }
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// Makes the first store to each page of the span a fault. Returns after the TLBs know.
    pub fn protect(&self, span: Span) -> io::Result<()> {
        self.set_protection(span, PROTECT)
    }

    /// Lets stores happen again, and wakes the threads that wait for that.
    pub fn unprotect(&self, span: Span) -> io::Result<()> {
        self.set_protection(span, 0)
    }

    /// Clears the accessed bits of pages: of none if some of the span is mapped and not registered.
    pub fn clear_accessed(&self, span: Span) -> io::Result<()> {
        let mut arg = ProtectArg { span, mode: PROTECT };
        self.retry(IOC_RWPROTECT, &mut arg)
    }

    fn set_protection(&self, span: Span, mode: u64) -> io::Result<()> {
        let mut arg = ProtectArg { span, mode };
        self.retry(IOC_WRITEPROTECT, &mut arg)
    }

    /// Makes any access to a missing page fail with SIGBUS (or EFAULT), if the kernel can. A
    /// marker of protection would be in the way.
    pub fn poison(&self, span: Span) -> io::Result<()> {
        if self.features & FEATURE_POISON == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if !self.reports {
            self.set_protection(span, UNPROTECT_DONT_WAKE)?;
        }
        let mut arg = PoisonArg { span, mode: 0, updated: 0 };
        self.retry(IOC_POISON, &mut arg)
    }

    /// Reads what has come; 0 when there is nothing.
    pub fn read(&self, messages: &mut [Message]) -> io::Result<usize> {
        let (start, len) = (messages.as_mut_ptr().cast::<u8>(), size_of_val(messages));
        // SAFETY: the same memory as bytes; any bit pattern is a `Message`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, len) };
        match raw::read(self.fd.as_fd(), bytes) {
            Ok(got) => Ok(got / size_of::<Message>()),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            },
        }
    }

    fn call<T>(&self, request: libc::c_ulong, arg: &mut T) -> io::Result<()> {
        // SAFETY: each request is paired with the structure the kernel defines for it. The kernel
        // refuses spans that are not registered, and the caller that registered one promised that
        // what is installed and protected there is expected; what `take` and `copy_from` read from,
        // their callers promised.
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), request, arg) }).map(drop)
    }

    fn retry<T>(&self, request: libc::c_ulong, arg: &mut T) -> io::Result<()> {
        loop {
            match self.call(request, arg) {
                Err(error) if is_again(&error) && !self.reports => {}
                done => return done,
            }
        }
    }
}

impl AsFd for Uffd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Tells whether to call again: the address space is changing, or the call was done in part.
pub fn is_again(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}

/// Returns the features this kernel offers.
///
/// # Errors
/// There is no userfaultfd here, or it is not for us.
pub fn features() -> io::Result<u64> {
    let (fd, _) = open_fd()?;
    handshake(&fd, 0)
}

fn handshake(fd: &OwnedFd, features: u64) -> io::Result<u64> {
    let mut arg = ApiArg { api: API, features, ioctls: 0 };
    // SAFETY: UFFDIO_API fills the structure it defines.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), IOC_API, &mut arg) })?;
    Ok(arg.features)
}

/// The most capable userfaultfd we may open; `true`: it serves the kernel's faults too.
fn open_fd() -> io::Result<(OwnedFd, bool)> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    by_syscall(flags)
        .map(|fd| (fd, true))
        .or_else(|_| by_device(flags).map(|fd| (fd, true)))
        .or_else(|_| by_syscall(flags | USER_MODE_ONLY).map(|fd| (fd, false)))
        .and_then(|(fd, kernel_faults)| held::keep(fd).map(|fd| (fd, kernel_faults)))
}

fn by_syscall(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes flags and returns a new descriptor.
    let fd = checked(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as libc::c_int)?;
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn by_device(flags: libc::c_int) -> io::Result<OwnedFd> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/userfaultfd")?;
    // SAFETY: the request takes flags and returns a new descriptor.
    let fd = checked(unsafe { libc::ioctl(device.as_raw_fd(), IOC_NEW, flags) })?;
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
