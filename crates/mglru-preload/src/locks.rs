//! Memory that the program locks. The kernel keeps locked parts of a heap: they do not move. A
//! managed file's pages are pinned instead. Both cost the budget, of which half may be locked:
//! more of it stays in swap's reach, which is said once, and the program goes on.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_uint, c_void, size_t};
use mglru_pager::threads::as_pager;

use crate::calls::{addresses, at, refused};
use crate::next::next;
use crate::table::{any, any_at, say, table};
use crate::{heap, maps, settings, unmanaged};

type Lock = unsafe extern "C" fn(*const c_void, size_t) -> c_int;
type Lock2 = unsafe extern "C" fn(*const c_void, size_t, c_uint) -> c_int;
type LockAll = unsafe extern "C" fn(c_int) -> c_int;
type UnlockAll = unsafe extern "C" fn() -> c_int;

/// The flags that mlockall gave for memory that is mapped from then on; 0: none.
static FUTURE: AtomicI32 = AtomicI32::new(0);

/// Tells whether the budget has room for so much to be locked, and says if it has not.
fn has_room(len: usize) -> bool {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let fits = as_pager(|| maps::used("VmLck:").saturating_add(len) <= settings::most_locked());
    if !fits && !REPORTED.swap(true, Ordering::Relaxed) {
        as_pager(|| {
            say("locked memory may be swapped all the same", &"it is over half the budget")
        });
    }
    fits
}

/// Locks a managed range and answers; `None`: the kernel is to be asked.
fn lock(address: *const c_void, len: size_t) -> Option<c_int> {
    let (address, range) = (address.cast_mut(), addresses(address.cast_mut(), len));
    if heap::has_hole(&range) {
        return Some(refused(libc::ENOMEM));
    }
    if heap::at(address).is_some() {
        return (!has_room(range.len())).then_some(0);
    }
    if !any_at(&range) {
        return None;
    }
    let fits = has_room(range.len());
    let locked = at(address, |managed| !fits || managed.lock(managed.offsets(range)).is_ok())?;
    Some(if locked { 0 } else { refused(libc::ENOMEM) })
}

/// Stands in for mlock(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, len: size_t) -> c_int {
    lock(address, len).unwrap_or_else(|| next!(mlock(address, len) as Lock))
}

/// Stands in for mlock2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(address: *const c_void, len: size_t, flags: c_uint) -> c_int {
    lock(address, len).unwrap_or_else(|| next!(mlock2(address, len, flags) as Lock2))
}

/// Stands in for munlock(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munlock(address: *const c_void, len: size_t) -> c_int {
    let range = addresses(address.cast_mut(), len);
    if heap::has_hole(&range) {
        return refused(libc::ENOMEM);
    }
    let done = at(address.cast_mut(), |managed| managed.unlock(managed.offsets(range)));
    match done {
        Some(Ok(())) => 0,
        Some(Err(_)) => refused(libc::ENOMEM),
        None => next!(munlock(address, len) as Lock),
    }
}

/// Stands in for mlockall(2). The kernel would lock what the pager set aside as well, so that
/// what is mapped is locked part by part. Later mappings are left to the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if !(any() || heap::was_managed()) || !is_valid(flags) {
        return next!(mlockall(flags) as LockAll);
    }
    if flags & libc::MCL_CURRENT != 0 {
        if let Err(errno) = as_pager(|| lock_current(flags)) {
            return refused(errno);
        }
    }
    let future = if flags & libc::MCL_FUTURE == 0 { 0 } else { flags };
    if FUTURE.swap(future, Ordering::AcqRel) == 0 && future != 0 {
        as_pager(|| say("mappings from now on stay with the kernel", &"mlockall(MCL_FUTURE)"));
    }
    0
}

fn is_valid(flags: c_int) -> bool {
    let when = libc::MCL_CURRENT | libc::MCL_FUTURE;
    flags & when != 0 && flags & !(when | libc::MCL_ONFAULT) == 0
}

/// Locks all that the program has mapped, but what is managed only if all of that has room. As
/// with mlockall, what cannot be brought in is no error.
fn lock_current(flags: c_int) -> Result<(), c_int> {
    let on_fault = if flags & libc::MCL_ONFAULT == 0 { 0 } else { libc::MLOCK_ONFAULT };
    let (mine, others): (Vec<_>, Vec<_>) = current().into_iter().partition(heap::is_within);
    let bytes = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).sum::<usize>();
    maps::may_lock(bytes(&mine) + bytes(&others))?;
    others.iter().for_each(|range| lock_one(range, on_fault));
    let mut table = table();
    let files = table.files().iter().flat_map(|managed| managed.ranges()).map(Range::len);
    if has_room(bytes(&mine) + files.sum::<usize>()) {
        mine.iter().for_each(|range| lock_one(range, on_fault));
        for managed in table.files() {
            for range in managed.ranges().to_vec() {
                managed.lock(managed.offsets(range)).map_err(|_| libc::ENOMEM)?;
            }
        }
    }
    Ok(())
}

/// Lists the mappings of the program and its libraries, but not what the pager set aside.
fn current() -> Vec<Range<usize>> {
    let parts = maps::parts(&(0..usize::MAX)).unwrap_or_default();
    let pagers = |part: &maps::Part| part.name.starts_with("/memfd:mglru");
    let ranges = parts.into_iter().filter(|part| part.prot != 0 && !pagers(part));
    ranges.flat_map(|part| heap::beside_set_aside(part.range)).collect()
}

fn lock_one(range: &Range<usize>, on_fault: c_uint) {
    // SAFETY: no content changes.
    unsafe { libc::syscall(libc::SYS_mlock2, range.start, range.len(), on_fault) };
}

/// Finds the parts of a range that are locked.
pub fn within(range: &Range<usize>) -> Vec<Range<usize>> {
    as_pager(|| match maps::used("VmLck:") {
        0 => Vec::new(),
        _ => unmanaged::locked_within(range),
    })
}

/// Locks a range that locked memory was moved to, if the budget has room.
pub fn lock_moved(range: &Range<usize>) {
    if has_room(range.len()) {
        lock_one(range, 0);
    }
}

/// Tells whether new mappings are to be the kernel's because they are to be locked.
pub fn is_future() -> bool {
    FUTURE.load(Ordering::Acquire) != 0
}

/// Locks a new mapping of the kernel's, if mlockall said so.
pub fn lock_new(range: &Range<usize>) {
    let future = FUTURE.load(Ordering::Acquire);
    if future != 0 {
        let on_fault = if future & libc::MCL_ONFAULT == 0 { 0 } else { libc::MLOCK_ONFAULT };
        lock_one(range, on_fault);
    }
}

/// Forgets what mlockall said: it did not say it for a forked child.
pub fn forget() {
    FUTURE.store(0, Ordering::Release);
}

/// Stands in for munlockall(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munlockall() -> c_int {
    forget();
    if any() {
        as_pager(|| {
            for managed in table().files() {
                // A page that stays pinned costs no more than its memory.
                let _ = managed.unlock(0..managed.map.len());
            }
        });
    }
    next!(munlockall() as UnlockAll)
}
