//! PAGEMAP_SCAN: what a mapping holds right now. A page that was zapped and is present again was
//! accessed: this is the accessed bit, where the kernel keeps none.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use super::{PAGE, checked, held};

const IOC_SCAN: libc::c_ulong = 0xC060_6610;
/// Runs returned by one call.
const RUNS: usize = 64;

#[repr(C)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Run {
    start: u64,
    end: u64,
    categories: u64,
}

/// Names the kind of pages that a scan finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Finds pages that are mapped.
    Present = 1 << 3,
    /// Finds pages that were accessed since their bit was cleared (Linux 7.3, what is registered
    /// so).
    Accessed = 1 << 9,
}

/// Holds the open page map of this process.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// Opens it.
    ///
    /// # Errors
    /// No /proc, or a kernel without PAGEMAP_SCAN (before 6.7, `Unsupported`).
    pub fn open() -> io::Result<Self> {
        let map = Self(held::keep(File::open("/proc/self/pagemap")?)?);
        match map.scan(Category::Present, PAGE as u64..PAGE as u64, &mut [Run::default(); 1]) {
            Ok(_) => Ok(map),
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel has no PAGEMAP_SCAN (Linux 6.7 has it)",
            )),
            Err(error) => Err(error),
        }
    }

    /// Calls `found` with each run of such pages between two addresses.
    pub fn find(
        &self,
        category: Category,
        span: Range<u64>,
        mut found: impl FnMut(Range<u64>),
    ) -> io::Result<()> {
        let mut runs = [Run::default(); RUNS];
        let mut at = span.start;
        while at < span.end {
            let (n, walked) = self.scan(category, at..span.end, &mut runs)?;
            runs[..n].iter().for_each(|run| found(run.start..run.end));
            at = walked;
        }
        Ok(())
    }

    /// Runs found, and how far the kernel came.
    fn scan(
        &self,
        category: Category,
        Range { start, end }: Range<u64>,
        runs: &mut [Run],
    ) -> io::Result<(usize, u64)> {
        let mut arg = ScanArg {
            size: size_of::<ScanArg>() as u64,
            flags: 0,
            start,
            end,
            walk_end: end,
            vec: runs.as_mut_ptr() as u64,
            vec_len: runs.len() as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: category as u64,
            category_anyof_mask: 0,
            return_mask: category as u64,
        };
        // SAFETY: the structure is the kernel's, and `vec` points to `vec_len` runs.
        let n = checked(unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_SCAN, &mut arg) })?;
        Ok((n as usize, arg.walk_end))
    }
}
