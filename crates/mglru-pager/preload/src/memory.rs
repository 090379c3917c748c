//! This library's own allocator. The program's malloc may lie in memory that the pager takes
//! away; the pager itself must never wait for that memory.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use dlmalloc::{Allocator, Dlmalloc};

/// Memory straight from the kernel.
struct Kernel;

// SAFETY: every region is a new private mapping of the length it says.
unsafe impl Allocator for Kernel {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let (prot, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut::<u8>());
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED nothing that is mapped changes.
        let got = unsafe { libc::syscall(libc::SYS_mmap, none, size, prot, flags, -1, 0usize) };
        if got == -1 { (std::ptr::null_mut(), 0, 0) } else { (got as *mut u8, size, 0) }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, start: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: the tail of a region, which the allocator no longer uses.
        unsafe { libc::syscall(libc::SYS_munmap, start.add(new), old - new) == 0 }
    }

    fn free(&self, start: *mut u8, size: usize) -> bool {
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

/// One heap under one lock, which a fork can hold: the child finds it free and consistent.
struct Own {
    locked: AtomicBool,
    heap: UnsafeCell<Dlmalloc<Kernel>>,
}

// SAFETY: the heap is used by who holds the lock.
unsafe impl Sync for Own {}

#[global_allocator]
static OWN: Own = Own {
    locked: AtomicBool::new(false),
    heap: UnsafeCell::new(Dlmalloc::new_with_allocator(Kernel)),
};

/// Waits for the allocator and keeps everybody else from it.
pub fn hold() {
    while OWN.locked.swap(true, Ordering::Acquire) {
        // SAFETY: gives the processor away.
        unsafe { libc::sched_yield() };
    }
}

/// Lets others allocate again.
pub fn release() {
    OWN.locked.store(false, Ordering::Release);
}

fn with<T>(what: impl FnOnce(&mut Dlmalloc<Kernel>) -> T) -> T {
    hold();
    // SAFETY: the lock is held.
    let done = what(unsafe { &mut *OWN.heap.get() });
    release();
    done
}

// SAFETY: the calls are dlmalloc's, each under the lock.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's own promise.
        with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's own promise.
        with(|heap| unsafe { heap.free(start, layout.size(), layout.align()) });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's own promise.
        with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's own promise.
        with(|heap| unsafe { heap.realloc(start, layout.size(), layout.align(), size) })
    }
}
