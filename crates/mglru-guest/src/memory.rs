//! Mapped memory, and nearly all unsafe code: a mapping's pages are touched through a raw pointer.
//!
//! Every access is atomic, so that tasks which share a region may touch a page at the same time; a
//! page number is checked against the mapping's length; a mapping lives as long as its [`Mapping`].

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use mglru_workload::op::{Advice, Content, MemoryAdvice, RegionSpec};
use rustix::mm::{self, MapFlags, MprotectFlags, ProtFlags};

/// Gives the size of a page in bytes.
pub const PAGE: usize = 4096;
/// Pages whose protection is changed to flush them out of the TLB.
const FLUSHED: usize = 64;
/// Bytes of a page that compresses to a third, as the machine's zram assumes.
const COMPRESSIBLE_NOISE: usize = PAGE / 3;

/// Holds a mapped region.
pub struct Mapping {
    start: NonNull<u8>,
    pages: usize,
    /// Content of pages that are not of a file.
    content: Option<Content>,
    /// Pages that have their content.
    filled: Vec<AtomicBool>,
}

// SAFETY: the pointer is to a mapping that only `drop` takes away, and accesses are atomic.
unsafe impl Send for Mapping {}
// SAFETY: what threads share of it are atomic accesses to that mapping.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file from a page on.
    pub fn of_file(file: &File, first_page: u64, spec: &RegionSpec) -> Result<Self, String> {
        let (len, flags) = (spec.pages as usize * PAGE, MapFlags::SHARED);
        let offset = first_page * PAGE as u64;
        // SAFETY: the kernel chooses a free place.
        let start = unsafe { mm::mmap(null_mut(), len, protection(spec), flags, file, offset) };
        Self::new(start, None, spec)
    }

    /// Maps memory of nobody's, private or shared.
    pub fn of_memory(shared: bool, spec: &RegionSpec) -> Result<Self, String> {
        let len = spec.pages as usize * PAGE;
        let sharing = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
        let flags = sharing | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses a free place.
        let start = unsafe { mm::mmap_anonymous(null_mut(), len, protection(spec), flags) };
        Self::new(start, Some(spec.content), spec)
    }

    fn new(
        start: rustix::io::Result<*mut core::ffi::c_void>,
        content: Option<Content>,
        spec: &RegionSpec,
    ) -> Result<Self, String> {
        let start = start.map_err(|e| format!("mapping {} pages: {e}", spec.pages))?;
        let start = NonNull::new(start.cast()).ok_or("a mapping at address 0")?;
        let pages = spec.pages as usize;
        let fresh = if content.is_some() { pages } else { 0 };
        let filled = (0..fresh).map(|_| AtomicBool::new(false)).collect();
        let mapping = Self { start, pages, content, filled };
        mapping.advise(spec)?;
        Ok(mapping)
    }

    fn advise(&self, spec: &RegionSpec) -> Result<(), String> {
        let advice = match spec.advice {
            Advice::Normal => mm::Advice::Normal,
            Advice::Random => mm::Advice::Random,
            Advice::Sequential => mm::Advice::Sequential,
        };
        let (start, len) = (self.start.as_ptr().cast(), self.pages * PAGE);
        // SAFETY: the range is this mapping's; advice changes no content.
        unsafe { mm::madvise(start, len, advice) }.map_err(|e| format!("madvise: {e}"))?;
        if spec.locked {
            // SAFETY: the range is this mapping's; a lock changes no content.
            unsafe { mm::mlock(start, len) }.map_err(|e| format!("mlock: {e}"))?;
        }
        Ok(())
    }

    /// Loads from a page, or stores to it; the first store gives a page of memory its content.
    pub fn touch(&self, page: u32, write: bool) {
        let at = self.page(page);
        if write {
            self.fill(page as usize, at);
            // SAFETY: `page` checked the range, a page's start is aligned.
            unsafe { AtomicU64::from_ptr(at.cast()) }.store(self.stored(page), Ordering::Relaxed);
        } else {
            // SAFETY: `page` checked the range; a byte needs no alignment.
            unsafe { AtomicU8::from_ptr(at) }.load(Ordering::Relaxed);
        }
    }

    /// Returns the bytes that a store leaves: an all-zero page stays one.
    fn stored(&self, page: u32) -> u64 {
        match self.content {
            Some(Content::Zero) => 0,
            _ => u64::from(page) + 1,
        }
    }

    fn fill(&self, page: usize, at: *mut u8) {
        let Some(content) = self.content else { return };
        if self.filled[page].swap(true, Ordering::Relaxed) {
            return;
        }
        let noise = match content {
            Content::Zero => 0,
            Content::Compressible => COMPRESSIBLE_NOISE,
            Content::Mixed { per_mille } => PAGE * usize::from(per_mille) / 1000,
        };
        let mut x = page as u64 ^ 0x9e37_79b9_7f4a_7c15;
        for word in 0..noise / 8 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // SAFETY: `word` is inside the page, which is inside the mapping.
            unsafe { AtomicU64::from_ptr(at.cast::<u64>().add(word)) }.store(x, Ordering::Relaxed);
        }
    }

    /// Locks all of it in memory, or takes that back.
    pub fn lock(&self, locked: bool) -> Result<(), String> {
        let (start, len) = (self.start.as_ptr().cast(), self.pages * PAGE);
        // SAFETY: the range is this mapping's; locking changes no content.
        let done = unsafe { if locked { mm::mlock(start, len) } else { mm::munlock(start, len) } };
        done.map_err(|e| format!("{}: {e}", if locked { "mlock" } else { "munlock" }))
    }

    /// Says what is to become of pages.
    pub fn advise_pages(&self, page: u32, nr: u32, advice: MemoryAdvice) -> Result<(), String> {
        let nr = (nr as usize).min(self.pages - page as usize);
        let at = self.page(page).cast();
        let kernel = match advice {
            MemoryAdvice::Cold => mm::Advice::LinuxCold,
            MemoryAdvice::PageOut => mm::Advice::LinuxPageOut,
            MemoryAdvice::PopulateRead => mm::Advice::LinuxPopulateRead,
            MemoryAdvice::PopulateWrite => mm::Advice::LinuxPopulateWrite,
        };
        // SAFETY: the range is this mapping's; none of these changes what is in it.
        unsafe { mm::madvise(at, nr * PAGE, kernel) }
            .map_err(|e| format!("madvise {advice:?}: {e}"))
    }

    /// Gives pages back but keeps the mapping.
    pub fn free(&self, page: u32, nr: u32) -> Result<(), String> {
        let nr = (nr as usize).min(self.pages - page as usize);
        let at = self.page(page).cast();
        // SAFETY: the range is this mapping's, and nobody relies on what is in it.
        unsafe { mm::madvise(at, nr * PAGE, mm::Advice::LinuxDontNeed) }
            .map_err(|e| format!("madvise: {e}"))?;
        let freed = self.filled.iter().skip(page as usize).take(nr);
        freed.for_each(|filled| filled.store(false, Ordering::Relaxed));
        Ok(())
    }

    /// Flushes translations of the mapping by changing the protection of some pages, and back.
    pub fn flush_tlb(&self) {
        let (start, len) = (self.start.as_ptr().cast(), self.pages.min(FLUSHED) * PAGE);
        for flags in [MprotectFlags::READ, MprotectFlags::READ | MprotectFlags::WRITE] {
            // SAFETY: the range is this mapping's; a failure changes nothing.
            let _ = unsafe { mm::mprotect(start, len, flags) };
        }
    }

    fn page(&self, page: u32) -> *mut u8 {
        assert!((page as usize) < self.pages, "page {page} of {}", self.pages);
        // SAFETY: inside the mapping.
        unsafe { self.start.as_ptr().add(page as usize * PAGE) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nobody can reach it any more.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.pages * PAGE) };
    }
}

fn protection(spec: &RegionSpec) -> ProtFlags {
    let exec = if spec.exec { ProtFlags::EXEC } else { ProtFlags::empty() };
    ProtFlags::READ | ProtFlags::WRITE | exec
}

/// Counts the cached pages of a file; 0 when the kernel does not say.
pub fn resident(path: &str) -> u64 {
    let pages = cached_pages(path).unwrap_or_default();
    pages.iter().filter(|cached| **cached).count() as u64
}

/// Lists a file's cached pages, four to a hexadecimal digit, the first in the digit's lowest bit.
pub fn resident_pages(path: &str) -> String {
    let pages = cached_pages(path).unwrap_or_default();
    let digit = |four: &[bool]| {
        let bits = four.iter().rev().fold(0, |bits, cached| bits << 1 | u32::from(*cached));
        char::from_digit(bits, 16).expect("four bits are a digit")
    };
    pages.chunks(4).map(digit).collect()
}

fn cached_pages(path: &str) -> Option<Vec<bool>> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
    let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let mut pages = vec![0u8; len.div_ceil(PAGE)];
    // SAFETY: the kernel chooses a free place; nothing is read through the mapping.
    let start =
        unsafe { mm::mmap(null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0) };
    let start = start.ok()?;
    // SAFETY: the vector has a byte for every page of the mapping.
    let status = unsafe { libc::mincore(start.cast(), len, pages.as_mut_ptr()) };
    // SAFETY: the mapping was made above.
    let _ = unsafe { mm::munmap(start, len) };
    (status == 0).then(|| pages.iter().map(|byte| byte & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_workload::op::RegionKind;

    #[test]
    fn memory_is_touched_filled_and_freed() {
        let content = Content::Mixed { per_mille: 250 };
        let spec = RegionSpec { content, ..RegionSpec::plain(0, RegionKind::Anon, 3) };
        let mapping = Mapping::of_memory(false, &spec).unwrap();
        mapping.touch(2, true);
        let bytes = |at: usize| {
            // SAFETY: inside the mapping made above.
            unsafe { AtomicU64::from_ptr(mapping.page(2).cast::<u64>().add(at)) }
                .load(Ordering::Relaxed)
        };
        assert_eq!(bytes(0), 3);
        assert!((1..128).all(|at| bytes(at) != 0) && (128..512).all(|at| bytes(at) == 0));
        mapping.free(0, 3).unwrap();
        mapping.touch(2, false);
        assert_eq!(bytes(0), 0);
    }

    #[test]
    #[should_panic(expected = "page 3 of 3")]
    fn a_page_outside_is_a_bug() {
        let spec = RegionSpec::plain(0, RegionKind::Anon, 3);
        Mapping::of_memory(true, &spec).unwrap().touch(3, false);
    }
}
