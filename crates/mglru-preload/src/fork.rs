//! A forked child has the memory of its parent but not its pager. Managed files appear in it as
//! they were at the fork, read-only: a store is SIGSEGV rather than lost. Private mappings and its
//! heap are its own, as they were at the fork; what was not in memory of the heap then its parent
//! brings it.

use std::cell::RefCell;
use std::os::fd::AsRawFd;
use std::sync::Once;

use mglru_pager::held;

use crate::managed::Managed;
use crate::table::{Locked, table};
use crate::{ends, fatal, heap, last, locks, memory, trace_events, unmanaged};

unsafe extern "C" {
    fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
}

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
            libc::atexit(ends::at_exit);
            at_quick_exit(ends::at_exit);
        }
    });
}

extern "C" fn before() {
    let mut table = table();
    table.write_back();
    table.files().iter_mut().for_each(Managed::keep_for_child);
    HELD.with(|held| *held.borrow_mut() = Some(table));
    held::before_fork();
    memory::hold();
}

extern "C" fn in_parent() {
    memory::release();
    held::after_fork();
    let table = HELD.with(|held| held.borrow_mut().take());
    table.into_iter().for_each(|mut table| table.files().iter_mut().for_each(Managed::drop_kept));
}

extern "C" fn in_child() {
    memory::release_in_child();
    held::after_fork();
    fatal::abandon();
    trace_events::forget();
    ends::note_process();
    unmanaged::in_child();
    heap::abandon();
    locks::forget();
    last::first_begins();
    let Some(mut table) = HELD.with(|held| held.borrow_mut().take()) else { return };
    table.files().iter().for_each(map_files);
    table.files().iter_mut().for_each(Managed::drop_kept);
    table.abandon();
}

/// Maps a file where its parent's view of it was, which the child did not inherit.
fn map_files(managed: &Managed) {
    let (start, fd) = (managed.span().start, managed.file.as_raw_fd());
    let (base, prot, kind) = match managed.copies_from() {
        None => (0, libc::PROT_READ, libc::MAP_SHARED),
        Some(from) => (from, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE),
    };
    for range in managed.inherited() {
        let (len, offset, flags) = (range.len(), range.start - start, kind | libc::MAP_FIXED);
        // SAFETY: nothing is there.
        unsafe { libc::syscall(libc::SYS_mmap, range.start, len, prot, flags, fd, base + offset) };
    }
    managed.restore_kept();
}
