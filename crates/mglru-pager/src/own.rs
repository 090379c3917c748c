//! Which threads are the pager's own. Under `mglru exec` the C library's functions are those of
//! the preload library; called from here they must not ask the pager again.

use std::cell::Cell;

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Is the calling thread at work for a pager?
pub fn is_own() -> bool {
    OWN.get()
}

/// Does something as a pager would.
pub fn as_own<T>(what: impl FnOnce() -> T) -> T {
    let before = OWN.replace(true);
    let done = what();
    OWN.set(before);
    done
}
