//! Handles advice on a managed mapping that concerns more than its pages.

use std::ops::Range;
use std::os::fd::AsRawFd;

use libc::c_int;

use super::{Kind, Managed, without};
use crate::calls::{errno, set_errno};
use crate::snapshot::Snapshot;
use crate::{heap, maps};

impl Managed {
    /// Takes content out of the file, which reads as zeros there: of a private mapping that is not
    /// allowed.
    pub fn punch(&mut self, offsets: Range<usize>) -> c_int {
        if self.copies_from().is_some() || !self.writable {
            set_errno(libc::EACCES);
            return -1;
        }
        let fd = self.file.as_raw_fd();
        let (at, len) = (offsets.start as libc::off_t, offsets.len() as libc::off_t);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: takes numbers.
        let call = || unsafe { libc::syscall(libc::SYS_fallocate, fd, mode, at, len) as c_int };
        self.change(offsets.clone(), || (call(), offsets.clone()))
    }

    /// Keeps addresses from children of forks, or no longer.
    pub fn withhold(&mut self, range: &Range<usize>, withheld: bool) {
        let before = std::mem::take(&mut self.withheld);
        self.withheld = before.iter().flat_map(|other| without(other, range)).collect();
        if withheld {
            self.withheld.push(range.clone());
        }
    }

    /// Lists the addresses that a child is to have.
    pub fn inherited(&self) -> Vec<Range<usize>> {
        let mut parts = self.ranges.clone();
        for range in &self.withheld {
            parts = parts.iter().flat_map(|part| without(part, range)).collect();
        }
        parts
    }

    /// Makes a mapping of the kernel's that is as a part of this one, which stays.
    pub fn move_to(
        &self,
        old: &Range<usize>,
        len: usize,
        to: Option<usize>,
    ) -> Result<usize, c_int> {
        let Kind::Private(from) = self.kind else { return Err(libc::ENOMEM) };
        let prot = maps::parts(old).and_then(|parts| Some(parts.first()?.prot));
        let prot = prot.ok_or(libc::EFAULT)?;
        protect(self.span(), prot | libc::PROT_READ);
        let kept = Snapshot::take(&self.map).map_err(|error| error.errno())?;
        let offsets = self.offsets(old.clone());
        let fixed = to.map_or(0, |_| libc::MAP_FIXED);
        let (at, flags) = (to.unwrap_or(0), libc::MAP_PRIVATE | fixed);
        let (both, fd) = (libc::PROT_READ | libc::PROT_WRITE, self.file.as_raw_fd());
        let offset = from + offsets.start;
        // SAFETY: a caller that moves memory to a place gives up what is there.
        let got = unsafe { libc::syscall(libc::SYS_mmap, at, len, both, flags, fd, offset) };
        if got == -1 {
            return Err(errno());
        }
        let start = got as usize;
        heap::note_kernel_mapping(&(start..start + len));
        let part = offsets.start..offsets.end.min(offsets.start + len);
        // SAFETY: the mapping is new, and where its file's first byte would be is this.
        unsafe { kept.restore((start as *mut u8).wrapping_sub(offsets.start), &[part]) };
        protect(start..start + len, prot);
        Ok(start)
    }
}

fn protect(range: Range<usize>, prot: c_int) {
    // SAFETY: a mapping of the program's, with what it said of it, or more.
    unsafe { libc::syscall(libc::SYS_mprotect, range.start, range.len(), prot) };
}
