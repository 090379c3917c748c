//! Page-aligned buffers, and files opened past the page cache.

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::{checked, raw};

/// Holds zeroed, page-aligned memory that takes room only where it was written to.
#[derive(Debug)]
pub struct Buffer {
    start: *mut u8,
    len: usize,
}

// SAFETY: a buffer owns its memory.
unsafe impl Send for Buffer {}
// SAFETY: shared it is only read: what writes takes it mutably.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps `len` bytes, a multiple of the page size.
    pub fn new(len: usize) -> io::Result<Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = raw::map(len, prot, flags, None)?;
        // SAFETY: the range is the mapping just made. Small buffers must not grow to huge pages;
        // a kernel that has none refuses, which is as good.
        let _ = unsafe { raw::advise(start, len, libc::MADV_NOHUGEPAGE) };
        Ok(Self { start, len })
    }

    /// Maps a buffer as [`Self::new`] does, for transfers past the page cache: a fork that found
    /// one under way could leave the memory it goes to with the child (open(2), notes on
    /// `O_DIRECT`). Children of a fork do not inherit it.
    pub fn for_transfers(len: usize) -> io::Result<Self> {
        let buffer = Self::new(len)?;
        // SAFETY: the range is the mapping just made, and what it holds does not change.
        unsafe { raw::advise(buffer.start, len, libc::MADV_DONTFORK) }?;
        Ok(buffer)
    }

    /// Gives back what a range of whole pages holds; it reads as zeros again.
    pub fn release(&mut self, range: std::ops::Range<usize>) {
        let pages = &mut self[range];
        // SAFETY: the range lies in the mapping, which is ours and borrowed mutably.
        let released = unsafe { raw::advise(pages.as_mut_ptr(), pages.len(), libc::MADV_DONTNEED) };
        released.expect("private memory can be released");
    }

    /// Returns a pointer to its first byte, for the kernel to read or write.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is `len` bytes, initialized, and ours.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `len` bytes, initialized, ours, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and borrowed by nobody.
        unsafe { raw::unmap(self.start, self.len) };
    }
}

/// Makes an empty file in `folder` that has no name, and that no other process can open.
pub fn unnamed(folder: &Path) -> io::Result<File> {
    let opened = private().custom_flags(libc::O_TMPFILE).open(folder);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => unlinked(folder),
        opened => opened,
    }?;
    // The umask may have taken from its owner too.
    file.set_permissions(Permissions::from_mode(0o600)).map(|()| file)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// As [`unnamed`], where a file system has none without a name (FUSE, NFS): it has one for a
/// moment.
fn unlinked(folder: &Path) -> io::Result<File> {
    loop {
        // Nobody can take the name first. A name that is a link is taken too.
        let path = folder.join(format!(".mglru-{:016x}", RandomState::new().hash_one(0)));
        match private().create_new(true).custom_flags(libc::O_NOFOLLOW).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => {
                let file = opened?;
                return std::fs::remove_file(&path).map(|()| file);
            }
        }
    }
}

/// Opens the same file again, past the page cache if its file system can; as it is if not.
pub fn reopen(file: &File, writable: bool) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let open =
        |flags| OpenOptions::new().read(true).write(writable).custom_flags(flags).open(&path);
    open(libc::O_DIRECT).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => open(0),
        _ => Err(error),
    })
}

/// Opens the same file again, through the page cache: what is not whole pages cannot go past it.
pub fn buffered(file: &File, writable: bool) -> io::Result<File> {
    // SAFETY: takes numbers only.
    let flags = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })?;
    if flags & libc::O_DIRECT == 0 {
        return file.try_clone();
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(writable).open(path)
}

/// Drops what the page cache holds of the file, so that reads see what is on the device and the
/// pages are not held twice.
pub fn forget_cached(file: &File) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Keeps every later allocation of `len` bytes at `file`'s start from failing for want of space.
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len as libc::off_t) }).map(drop)
}

/// Counts the bytes for which a file's file system has room.
pub fn room(file: &File) -> io::Result<u64> {
    // SAFETY: a structure of numbers, filled in before it is used.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        checked(libc::fstatvfs(file.as_raw_fd(), &mut stat))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::PAGE;
    use super::*;

    /// Tells whether smaps shows `dc`: not copied at a fork.
    pub fn is_kept_from_children(buffer: &Buffer) -> bool {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut holds = false;
        for line in smaps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let address = |hex| usize::from_str_radix(hex, 16);
            if let Some((Ok(start), Ok(end))) = range.map(|(a, b)| (address(a), address(b))) {
                holds = (start..end).contains(&(buffer.start as usize));
            } else if let (true, Some(flags)) = (holds, line.strip_prefix("VmFlags:")) {
                return flags.split(' ').any(|flag| flag == "dc");
            }
        }
        panic!("the buffer is mapped")
    }

    #[test]
    fn a_fork_leaves_alone_what_transfers_go_to() {
        let [plain, transfers] = [Buffer::new(PAGE), Buffer::for_transfers(PAGE)];
        assert!(is_kept_from_children(&transfers.unwrap()));
        assert!(!is_kept_from_children(&plain.unwrap()));
    }

    #[test]
    fn a_file_that_had_a_name_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let files = [unlinked(folder.path()), unlinked(folder.path()), unnamed(folder.path())];
        assert!(files.iter().all(Result::is_ok));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
