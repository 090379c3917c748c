//! Calls that go to the kernel and nowhere else. Under `mglru exec` the C library's functions of
//! these names are those of the preload library, which ask the pager: it must not ask itself.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::uffd::Span;
use super::{held, own};

/// The kernel's answer.
fn answer(result: libc::c_long) -> io::Result<usize> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Creates a mapping at an address of the kernel's choice.
pub fn map(
    len: usize,
    prot: libc::c_int,
    flags: libc::c_int,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<*mut u8> {
    let fd = fd.map_or(-1, |fd| fd.as_raw_fd());
    let none = std::ptr::null_mut::<u8>();
    assert!(flags & libc::MAP_FIXED == 0, "what is mapped stays");
    // SAFETY: without MAP_FIXED nothing that is mapped changes.
    let got = unsafe { libc::syscall(libc::SYS_mmap, none, len, prot, flags, fd, 0usize) };
    let start = answer(got)?;
    if flags & libc::MAP_ANONYMOUS != 0 {
        own::report_mapping(start..start + len, true);
    }
    Ok(start as *mut u8)
}

/// Makes a new mapping in place of what is there.
///
/// # Safety
/// Nobody uses what is there.
pub unsafe fn map_over(
    start: *mut u8,
    len: usize,
    prot: libc::c_int,
    flags: libc::c_int,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let (flags, fd) = (flags | libc::MAP_FIXED, fd.map_or(-1, |fd| fd.as_raw_fd()));
    // SAFETY: nobody uses what is there, as the caller promises.
    let got = unsafe { libc::syscall(libc::SYS_mmap, start, len, prot, flags, fd, 0usize) };
    answer(got).map(drop)
}

/// Takes a mapping away.
///
/// # Safety
/// The range is a mapping of the caller's, and nobody borrows from it.
pub unsafe fn unmap(start: *mut u8, len: usize) {
    own::report_mapping(start as usize..start as usize + len, false);
    // SAFETY: the mapping is the caller's and not borrowed from, as it promises. Ranges that were
    // mapped can be unmapped.
    unsafe { libc::syscall(libc::SYS_munmap, start, len) };
}

/// Advises the kernel on a range.
///
/// # Safety
/// The advice does not change what borrowers of the range see.
pub unsafe fn advise(start: *mut u8, len: usize, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: the advice changes nothing that is borrowed, as the caller promises.
    answer(unsafe { libc::syscall(libc::SYS_madvise, start, len, advice) }).map(drop)
}

/// Moves pages to another mapping's place, which they replace; where they were stays mapped, and
/// what is touched there is missing. Unlike a move by userfaultfd it asks for no right to store.
///
/// # Safety
/// Nobody uses what is at `to`.
pub unsafe fn move_over(from: u64, len: usize, to: *mut u8) -> io::Result<()> {
    let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: nobody uses what is replaced, as the caller promises.
    answer(unsafe { libc::syscall(libc::SYS_mremap, from, len, len, how, to) }).map(drop)
}

/// Sets what may be done with a range.
///
/// # Safety
/// No borrower of the range does what is forbidden from now on.
pub unsafe fn protect(start: *mut u8, len: usize, prot: libc::c_int) -> io::Result<()> {
    // SAFETY: nobody does what is forbidden from now on, as the caller promises.
    answer(unsafe { libc::syscall(libc::SYS_mprotect, start, len, prot) }).map(drop)
}

/// Tells whether the program locked some of these pages. The kernel refuses advice on those alone.
pub fn is_locked(start: u64, len: usize) -> bool {
    // SAFETY: the advice changes no content.
    let advised = unsafe { advise(start as *mut u8, len, libc::MADV_COLD) };
    advised.is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
}

/// Is this page of private memory there? Not, if nothing is mapped.
pub fn is_here(page: u64) -> bool {
    let mut here = 0u8;
    // SAFETY: the kernel writes one byte, for one page.
    let known = unsafe { libc::syscall(libc::SYS_mincore, page, super::PAGE, &raw mut here) } == 0;
    known && here & 1 == 1
}

/// Advises the kernel on several ranges: in one call where it takes that (Linux 6.15), so that
/// other processors are interrupted once.
///
/// # Safety
/// As [`advise`].
pub unsafe fn advise_all(spans: &[Span], advice: libc::c_int) -> io::Result<()> {
    /// This process, to calls that take a descriptor for one.
    const SELF: libc::c_int = -10_000;
    const MOST: usize = 1024;
    for some in spans.chunks(MOST) {
        let vector = |span: &Span| libc::iovec {
            iov_base: span.start as *mut libc::c_void,
            iov_len: span.len as usize,
        };
        let vectors: Vec<libc::iovec> = some.iter().map(vector).collect();
        let (start, n) = (vectors.as_ptr(), vectors.len());
        // SAFETY: the vectors outlive the call; the advice changes nothing that is borrowed, as
        // the caller promises.
        let got =
            unsafe { libc::syscall(libc::SYS_process_madvise, SELF, start, n, advice, 0usize) };
        if got as u64 == some.iter().map(|span| span.len).sum::<u64>() {
            continue;
        }
        for span in some {
            // SAFETY: the same advice on one of the spans, as the caller promises.
            unsafe { advise(span.start as *mut u8, span.len as usize, advice) }?;
        }
    }
    Ok(())
}

/// Reads at an offset; less than asked for at the end.
pub fn read_at(fd: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> io::Result<usize> {
    held::check(fd);
    let (start, len) = (out.as_mut_ptr(), out.len());
    // SAFETY: the buffer is `len` long.
    answer(unsafe { libc::syscall(libc::SYS_pread64, fd.as_raw_fd(), start, len, offset) })
}

/// Reads what there is.
pub fn read(fd: BorrowedFd<'_>, out: &mut [u8]) -> io::Result<usize> {
    held::check(fd);
    // SAFETY: the buffer is as long as it says.
    answer(unsafe { libc::syscall(libc::SYS_read, fd.as_raw_fd(), out.as_mut_ptr(), out.len()) })
}

/// Writes what goes in at once.
pub fn write(fd: BorrowedFd<'_>, content: &[u8]) -> io::Result<usize> {
    held::check(fd);
    let (start, len) = (content.as_ptr(), content.len());
    // SAFETY: the buffer is as long as it says.
    answer(unsafe { libc::syscall(libc::SYS_write, fd.as_raw_fd(), start, len) })
}

/// Lists the names in an open folder.
pub fn entries(folder: BorrowedFd<'_>, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    /// Head of an entry: its number, the next one's place, its length and type.
    const HEAD: usize = 19;
    let mut buffer = [0u8; 4096];
    loop {
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the buffer is `len` long.
        let got = unsafe { libc::syscall(libc::SYS_getdents64, folder.as_raw_fd(), start, len) };
        let mut rest = &buffer[..answer(got)?];
        if rest.is_empty() {
            return Ok(());
        }
        while rest.len() > HEAD {
            let len = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            let name = rest[HEAD..len].split(|&byte| byte == 0).next();
            each(name.unwrap_or_default());
            rest = &rest[len..];
        }
    }
}

/// Says something to the person who runs the program.
pub fn say(text: &str) {
    say_line(&format!("mglru-pager: {text}\n"));
}

/// Says a line as it is, unless the program put another file in the place of standard error.
pub fn say_line(line: &str) {
    if held::is_stderr() {
        // Nobody may listen.
        let _ = write(io::stderr().as_fd(), line.as_bytes());
    }
}

/// Fills the buffer from an offset on; what lies beyond the end is zeros.
pub fn read_all(fd: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < out.len() {
        match read_at(fd, &mut out[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out[done..].fill(0);
    Ok(())
}

/// Writes all of it at an offset.
pub fn write_all(fd: BorrowedFd<'_>, content: &[u8], offset: u64) -> io::Result<()> {
    held::check(fd);
    let mut done = 0;
    while done < content.len() {
        let (rest, at) = (&content[done..], offset + done as u64);
        let (start, len) = (rest.as_ptr(), rest.len());
        // SAFETY: the buffer is `len` long.
        let wrote = unsafe { libc::syscall(libc::SYS_pwrite64, fd.as_raw_fd(), start, len, at) };
        match answer(wrote) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns when what was written is durable.
pub fn sync_data(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a number.
    answer(unsafe { libc::syscall(libc::SYS_fdatasync, fd.as_raw_fd()) }).map(drop)
}

/// Reads a limit of a process (0: this one) and sets it if it is to change, past the functions
/// that the preload library stands in for.
pub fn limit(pid: i32, of: u32, change: Option<&libc::rlimit>) -> io::Result<libc::rlimit> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = change.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both structures are of the kind that the call takes.
    answer(unsafe { libc::syscall(libc::SYS_prlimit64, pid, of, new, &raw mut now) })?;
    Ok(now)
}

/// Tells how long this process may make a file, bytes.
pub fn longest_file() -> u64 {
    limit(0, libc::RLIMIT_FSIZE, None).map_or(u64::MAX, |limit| limit.rlim_cur)
}
