//! This library's own allocator. The program's malloc may lie in memory that the pager takes
//! away; the pager itself must never wait for that memory.
//!
//! There are two heaps, because of forks. A child must find a heap that nobody was at work on, so
//! the program's threads are kept from theirs while one forks; but a fork ends only when the
//! pager's threads have answered, and these must be able to allocate meanwhile. They have a heap
//! of their own, which a child leaves alone, and never wait for the other: what they give up of it
//! is put aside until one of the program's threads comes by.

mod heap;

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use mglru_pager::threads;

pub use self::heap::map;
use self::heap::{Heap, Kernel, Reserve};

static PROGRAM: Heap<Kernel> = Heap::new(Kernel);
static PAGER: Heap<Reserve> = Heap::new(Reserve);
/// Blocks of the program's heap that the pager's threads gave up, the last one first.
static PUT_ASIDE: AtomicPtr<Aside> = AtomicPtr::new(null_mut());
/// This process was forked: nobody answers for the pager's heap.
static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Waits for the program's heap and keeps everybody else from it.
pub fn hold() {
    PROGRAM.lock();
}

/// Lets others allocate again.
pub fn release() {
    PROGRAM.unlock();
}

/// Releases as [`release`] does, in the child of a fork.
pub fn release_in_child() {
    IN_CHILD.store(true, Ordering::Release);
    PROGRAM.unlock();
}

struct Own;

#[global_allocator]
static OWN: Own = Own;

/// Header of a block that is put aside; it fits into the smallest block.
struct Aside {
    next: *mut Aside,
    size: usize,
}

/// Says whether this process was forked from one with a pager.
pub fn in_child() -> bool {
    IN_CHILD.load(Ordering::Acquire)
}

/// The pager's heap is the one to use.
fn is_pagers_thread() -> bool {
    threads::is_pager() && !in_child()
}

/// Something with the program's heap, after what was put aside is freed.
fn with_program<T>(what: impl FnOnce(&Heap<Kernel>) -> T) -> T {
    hold();
    let mut aside = PUT_ASIDE.swap(null_mut(), Ordering::Acquire);
    while !aside.is_null() {
        // SAFETY: the thread that put the block aside wrote this into it, and no thread uses it any
        // more.
        unsafe {
            let Aside { next, size } = aside.read();
            PROGRAM.free(aside.cast(), size);
            aside = next;
        }
    }
    let done = what(&PROGRAM);
    release();
    done
}

fn with_pagers<T>(what: impl FnOnce(&Heap<Reserve>) -> T) -> T {
    PAGER.lock();
    let done = what(&PAGER);
    PAGER.unlock();
    done
}

/// Leaves a block of the program's heap to the next of its threads.
///
/// # Safety
/// As for freeing it.
unsafe fn put_aside(start: *mut u8, size: usize) {
    let block = start.cast::<Aside>();
    let mut next = PUT_ASIDE.load(Ordering::Relaxed);
    loop {
        // SAFETY: the block is the caller's, aligned and large enough for two words.
        unsafe { block.write(Aside { next, size }) };
        match PUT_ASIDE.compare_exchange_weak(next, block, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}

// SAFETY: a block belongs to the heap whose range it is in, and goes back to that one or nowhere.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_pagers_thread() {
            // SAFETY: the heap is locked.
            true => with_pagers(|heap| unsafe { heap.alloc(layout) }),
            // SAFETY: the program's heap is locked as well.
            false => with_program(|heap| unsafe { heap.alloc(layout) }),
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        let size = layout.size();
        match (heap::is_reserved(start), is_pagers_thread()) {
            (true, _) if in_child() => {}
            // SAFETY: the block is of this heap, which is locked.
            (true, _) => with_pagers(|heap| unsafe { heap.free(start, size) }),
            // SAFETY: the block is of the program's heap, and the caller's no more.
            (false, true) => unsafe { put_aside(start, size) },
            // SAFETY: the block is of this heap, which is locked.
            (false, false) => with_program(|heap| unsafe { heap.free(start, size) }),
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (heap::is_reserved(start), is_pagers_thread()) {
            // SAFETY: the block is of this heap, which is locked.
            (true, true) => with_pagers(|heap| unsafe { heap.resize(start, layout, size) }),
            // SAFETY: the block is of the program's heap, which is locked.
            (false, false) => with_program(|heap| unsafe { heap.resize(start, layout, size) }),
            // SAFETY: the caller's own promise.
            _ => unsafe { self.change_heap(start, layout, size) },
        }
    }
}

impl Own {
    /// Copies a block to the heap that the caller uses.
    ///
    /// # Safety
    /// As for reallocating it.
    unsafe fn change_heap(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's own promise; both blocks have room for what is copied.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(start, layout.size().min(size));
                self.dealloc(start, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_change_heaps_as_they_change_threads() {
        let of_program = vec![1_u8; 1000];
        assert!(!heap::is_reserved(of_program.as_ptr()));
        let of_pager = threads::as_pager(|| {
            let mut moved = of_program;
            moved.resize(100_000, 2);
            assert!(heap::is_reserved(moved.as_ptr()));
            moved
        });
        assert!(
            of_pager[..1000].iter().all(|&b| b == 1) && of_pager[1000..].iter().all(|&b| b == 2)
        );
        let mut back = of_pager;
        back.reserve_exact(1 << 20);
        assert!(!heap::is_reserved(back.as_ptr()));
        assert_eq!((back.len(), back[999], back[1000]), (100_000, 1, 2));
    }

    #[test]
    fn a_pagers_thread_allocates_while_the_program_is_held() {
        let given = vec![7_u64; 64];
        hold();
        let worker = || {
            threads::as_pager(|| {
                drop(given);
                (0..1000).map(|n| vec![n; n]).map(|v| v.len()).sum::<usize>()
            })
        };
        // A thread's own start allocates: it is the pager's already.
        let sum =
            threads::as_pager(|| std::thread::scope(|scope| scope.spawn(worker).join().unwrap()));
        release();
        assert_eq!(sum, 499_500);
    }
}
