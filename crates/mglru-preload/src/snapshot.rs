//! Keeps what a private mapping holds of its own for the child of a fork, because the parent goes
//! on changing the memory itself.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use mglru_pager::{MappingMut, PagerError};

/// Bytes copied at once.
const CHUNK: usize = 64 << 10;

/// Holds the ranges where a mapping differed from its file, and their content, one after the other.
pub struct Snapshot {
    changed: Vec<Range<usize>>,
    content: File,
}

impl Snapshot {
    /// Takes one.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn take(map: &MappingMut) -> Result<Self, PagerError> {
        let changed = map.changed_ranges()?;
        // SAFETY: the name is a C string; the descriptor is new and nobody else's.
        let content = unsafe {
            let fd = libc::memfd_create(c"fork".as_ptr(), libc::MFD_CLOEXEC);
            if fd == -1 {
                return Err(io::Error::last_os_error().into());
            }
            File::from_raw_fd(fd)
        };
        let (mut at, mut buffer) = (0, Vec::with_capacity(CHUNK));
        for part in changed.iter().flat_map(|range| map[range.clone()].chunks(CHUNK)) {
            // A system call would not bring pages in whose faults are signals.
            buffer.clear();
            buffer.extend_from_slice(part);
            content.write_all_at(&buffer, at)?;
            at += buffer.len() as u64;
        }
        Ok(Self { changed, content })
    }

    /// Puts it in place: in the child, over the file's content, where that is mapped.
    ///
    /// # Safety
    /// `start` is where the mapping was, and what of `mapped`, as offsets, can be written is new.
    pub unsafe fn restore(&self, start: *mut u8, mapped: &[Range<usize>]) {
        let mut at = 0;
        for range in &self.changed {
            for part in mapped.iter().map(|m| m.start.max(range.start)..m.end.min(range.end)) {
                if !part.is_empty() {
                    let from = at + (part.start - range.start);
                    // SAFETY: as the caller promises.
                    unsafe { self.read(start.wrapping_add(part.start), part.len(), from) };
                }
            }
            at += range.len();
        }
    }

    unsafe fn read(&self, to: *mut u8, len: usize, at: usize) {
        let (fd, mut done) = (self.content.as_raw_fd(), 0);
        while done < len {
            let to = to.wrapping_add(done);
            // SAFETY: as the caller promises.
            let n = unsafe { libc::syscall(libc::SYS_pread64, fd, to, len - done, at + done) };
            assert!(n > 0, "cannot read the copy of a private mapping: {n}");
            done += n as usize;
        }
    }
}
