//! Memory that the program locks. Of a heap the kernel keeps it: what is locked does not move. A
//! managed file's pages are pinned instead, and cost the budget.

use libc::{c_int, c_uint, c_void, size_t};

use crate::calls::{addresses, at, set_errno};
use crate::next::next;
use crate::table::any;

type Lock = unsafe extern "C" fn(*const c_void, size_t) -> c_int;
type Lock2 = unsafe extern "C" fn(*const c_void, size_t, c_uint) -> c_int;
type LockAll = unsafe extern "C" fn(c_int) -> c_int;

/// The answer, if the range is of a managed file.
fn set_locked(address: *const c_void, len: size_t, locked: bool) -> Option<c_int> {
    let done = at(address.cast_mut(), |managed| {
        let range = managed.offsets(addresses(address.cast_mut(), len));
        if locked { managed.lock(range) } else { managed.unlock(range) }
    })?;
    if done.is_err() {
        set_errno(libc::ENOMEM);
    }
    Some(if done.is_ok() { 0 } else { -1 })
}

/// Stands in for mlock(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, len: size_t) -> c_int {
    set_locked(address, len, true).unwrap_or_else(|| next!(mlock(address, len) as Lock))
}

/// Stands in for mlock2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(address: *const c_void, len: size_t, flags: c_uint) -> c_int {
    set_locked(address, len, true).unwrap_or_else(|| next!(mlock2(address, len, flags) as Lock2))
}

/// Stands in for munlock(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munlock(address: *const c_void, len: size_t) -> c_int {
    set_locked(address, len, false).unwrap_or_else(|| next!(munlock(address, len) as Lock))
}

/// Stands in for mlockall(2): all of memory and a budget for it cannot both be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if any() || crate::heap::is_managed() {
        set_errno(libc::ENOMEM);
        return -1;
    }
    next!(mlockall(flags) as LockAll)
}
