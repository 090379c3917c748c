//! A heap under a lock, and where heaps get memory from.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dlmalloc::{Allocator, Dlmalloc};

use crate::{limits, unmanaged};

/// Addresses set aside for the pager's heap, bytes: they distinguish its blocks from others.
const RESERVED: usize = 64 << 30;
/// Alignment that dlmalloc gives anyway.
const ALIGN: usize = 16;

/// Where the reserved range starts; 0 before it is needed.
static START: AtomicUsize = AtomicUsize::new(0);
/// How much of it was given out.
static USED: AtomicUsize = AtomicUsize::new(0);

/// How long it is: less where address space is limited.
static LEN: AtomicUsize = AtomicUsize::new(0);
/// It is never shorter, bytes.
const LEAST: usize = 16 << 20;

/// Tells whether this is a block of the pager's heap.
pub fn is_reserved(block: *const u8) -> bool {
    let start = START.load(Ordering::Acquire);
    start != 0 && (start..start + LEN.load(Ordering::Acquire)).contains(&(block as usize))
}

/// Allocates blocks of memory, for one caller at a time.
pub struct Heap<S> {
    locked: AtomicBool,
    blocks: UnsafeCell<Dlmalloc<S>>,
}

// SAFETY: only the thread that holds the lock uses the blocks.
unsafe impl<S> Sync for Heap<S> {}

impl<S> Heap<S> {
    /// Makes an empty heap that takes its memory from a source.
    pub const fn new(source: S) -> Self {
        let blocks = UnsafeCell::new(Dlmalloc::new_with_allocator(source));
        Self { locked: AtomicBool::new(false), blocks }
    }

    /// Waits for the lock and takes it, so that no other thread uses the blocks.
    pub fn lock(&self) {
        while self.locked.swap(true, Ordering::Acquire) {
            // SAFETY: gives the processor away.
            unsafe { libc::sched_yield() };
        }
    }

    /// Releases the lock, which the caller holds.
    pub fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

impl<S: Allocator> Heap<S> {
    /// Allocates a block of a layout; null where there is no memory.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the lock is held.
        unsafe { (*self.blocks.get()).malloc(layout.size(), layout.align()) }
    }

    /// Frees a block, given the size that it was allocated with.
    ///
    /// # Safety
    /// The caller holds the lock; the block is of this heap and no longer used.
    pub unsafe fn free(&self, start: *mut u8, size: usize) {
        // SAFETY: as the caller promises; the alignment plays no part.
        unsafe { (*self.blocks.get()).free(start, size, ALIGN) };
    }

    /// Resizes a block, whose bytes stay as far as the new size goes.
    ///
    /// # Safety
    /// The caller holds the lock; the block is of this heap.
    pub unsafe fn resize(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { (*self.blocks.get()).realloc(start, layout.size(), layout.align(), size) }
    }
}

/// Maps new memory from the kernel, past the functions that this library stands in for.
pub fn map(size: usize, prot: libc::c_int) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED nothing that is mapped changes.
    let got =
        unsafe { libc::syscall(libc::SYS_mmap, null_mut::<u8>(), size, prot, flags, -1, 0usize) };
    let start = (got != -1).then_some(got as *mut u8)?;
    unmanaged::note_own(&(start as usize..start as usize + size));
    Some(start)
}

/// Takes memory straight from the kernel.
pub struct Kernel;

// SAFETY: every region is a new private mapping of the length it says.
unsafe impl Allocator for Kernel {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        map(size, libc::PROT_READ | libc::PROT_WRITE)
            .map_or((null_mut(), 0, 0), |start| (start, size, 0))
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, start: *mut u8, old: usize, new: usize) -> bool {
        unmanaged::gone(&(start as usize + new..start as usize + old));
        // SAFETY: the tail of a region, which the allocator no longer uses.
        unsafe { libc::syscall(libc::SYS_munmap, start.add(new), old - new) == 0 }
    }

    fn free(&self, start: *mut u8, size: usize) -> bool {
        unmanaged::gone(&(start as usize..start as usize + size));
        // SAFETY: a region that the allocator no longer uses.
        unsafe { libc::syscall(libc::SYS_munmap, start, size) == 0 }
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

/// Takes memory of the reserved range, in the order of its addresses; it is never given back.
pub struct Reserve;

impl Reserve {
    fn start() -> Option<usize> {
        match START.load(Ordering::Acquire) {
            0 => {
                let lens = std::iter::successors(Some(RESERVED), |len| Some(len / 4));
                let most = limits::of_address_space() / 16;
                let mut tries = lens.take_while(|&len| len >= LEAST).filter(|&len| len <= most);
                let (start, len) = tries.find_map(|len| Some((map(len, libc::PROT_NONE)?, len)))?;
                LEN.store(len, Ordering::Release);
                START.store(start as usize, Ordering::Release);
                Some(start as usize)
            }
            start => Some(start),
        }
    }

    fn open(size: usize) -> Option<*mut u8> {
        let start = Self::start()?;
        let used = USED.load(Ordering::Relaxed);
        let free = used.checked_add(size).filter(|&end| end <= LEN.load(Ordering::Acquire))?;
        let region = (start + used) as *mut u8;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is reserved and not in use.
        let opened = unsafe { libc::syscall(libc::SYS_mprotect, region, size, prot) };
        (opened == 0).then(|| {
            USED.store(free, Ordering::Relaxed);
            region
        })
    }
}

// SAFETY: every region is a part of the reserved range that nobody had, under the heap's lock.
unsafe impl Allocator for Reserve {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        Self::open(size).map_or((null_mut(), 0, 0), |start| (start, size, 0))
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}
