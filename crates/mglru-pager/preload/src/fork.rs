//! A forked child has the memory of its parent but not its pager. Managed files appear in it as
//! they were at the fork, read-only: a store is SIGSEGV rather than lost. Its heap is its own, as
//! it was at the fork; what was not in memory then its parent brings it.

use std::cell::RefCell;
use std::os::fd::AsRawFd;
use std::sync::Once;

use crate::managed::{Locked, table};
use crate::{heap, memory};

thread_local! {
    /// The table, locked from before the fork until after it.
    static HELD: RefCell<Option<Locked>> = const { RefCell::new(None) };
}

/// Has forks and the end of the process handled, from the first call on.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions live as long as the process.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

extern "C" fn before() {
    let table = table();
    table.write_back();
    HELD.with(|held| *held.borrow_mut() = Some(table));
    memory::hold();
}

extern "C" fn in_parent() {
    memory::release();
    HELD.with(|held| held.borrow_mut().take());
}

extern "C" fn in_child() {
    memory::release_in_child();
    heap::abandon();
    let Some(mut table) = HELD.with(|held| held.borrow_mut().take()) else { return };
    for managed in table.files() {
        let (start, fd) = (managed.span().start, managed.file.as_raw_fd());
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        for range in managed.ranges() {
            let (len, offset) = (range.len(), range.start - start);
            // SAFETY: the range was the parent's view of this file, which the child did not
            // inherit.
            unsafe {
                let read = libc::PROT_READ;
                libc::syscall(libc::SYS_mmap, range.start, len, read, flags, fd, offset)
            };
        }
    }
    table.abandon();
}

extern "C" fn at_exit() {
    heap::finish();
    table().finish();
}
