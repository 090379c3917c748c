//! Knows the pager's own threads, and reports the memory that it maps for itself. Under
//! `mglru exec` the C library's functions are those of the preload library; called by a thread of
//! the pager they must not ask the pager again.

use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether the calling thread is at work for a pager.
pub fn is_pager() -> bool {
    OWN.get()
}

/// Runs `what` while the calling thread counts as one of the pager's.
pub fn as_pager<T>(what: impl FnOnce() -> T) -> T {
    let before = OWN.replace(true);
    let done = what();
    OWN.set(before);
    done
}

/// Makes the calling thread one of the program's from now on.
pub fn leave() {
    OWN.set(false);
}

/// Receives the ranges of private memory that the pager maps for itself (true) or unmaps (false).
pub type OnMap = fn(Range<usize>, bool);

static ON_MAP: OnceLock<OnMap> = OnceLock::new();

/// Has `callback` called whenever the pager maps or unmaps private memory, so that it can be
/// distinguished from the program's. Only the first call counts.
pub fn on_map(callback: OnMap) {
    let _ = ON_MAP.set(callback);
}

/// Reports a range that was just mapped (true), or is about to be unmapped.
pub fn report_mapping(range: Range<usize>, mapped: bool) {
    if let Some(callback) = ON_MAP.get() {
        callback(range, mapped);
    }
}
