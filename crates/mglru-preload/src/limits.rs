//! Limits that the program runs under. The kernel counts what the pager sets aside as the
//! program's: where address space or data are limited, the kernel's limit is the program's and
//! that much more, and the program sees its limit.

use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, c_uint, pid_t, rlimit};
use mglru_pager::threads::{self, as_pager};

use crate::calls::{errno, refused, set_errno};
use crate::{heap, maps};

/// The kernel counts these; its status names what is used of each.
const COUNTED: [(c_uint, &str); 2] = [(libc::RLIMIT_AS, "VmSize:"), (libc::RLIMIT_DATA, "VmData:")];
/// More than what the pager sets aside before the program begins, bytes.
const ENOUGH: u64 = 1 << 40;

/// The pager has set aside so much of each, bytes.
static OWN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

fn own_of(resource: c_uint) -> u64 {
    let nth = COUNTED.iter().position(|&(counted, _)| counted == resource);
    nth.map_or(0, |nth| OWN[nth].load(Ordering::Acquire))
}

/// Asks the kernel for a limit, and sets another one.
fn ask(pid: pid_t, resource: c_uint, new: Option<&rlimit>) -> Result<rlimit, c_int> {
    threads::limit(pid, resource, new).map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
}

/// Raises a limit, unless there is none.
fn raised(limit: rlimit, by: u64) -> rlimit {
    let more = |limit: u64| limit.saturating_add(if limit == libc::RLIM_INFINITY { 0 } else { by });
    rlimit { rlim_cur: more(limit.rlim_cur), rlim_max: more(limit.rlim_max) }
}

/// Lowers a limit to what the program knows of it.
fn lowered(limit: rlimit, by: u64) -> rlimit {
    let less = |limit: u64| limit - if limit == libc::RLIM_INFINITY { 0 } else { by.min(limit) };
    rlimit { rlim_cur: less(limit.rlim_cur), rlim_max: less(limit.rlim_max) }
}

/// Holds the limits as they were before the pager set anything aside.
pub struct Before {
    limits: [rlimit; 2],
    used: [u64; 2],
}

/// Makes room for what the pager sets aside.
///
/// # Errors
/// The limits are such that there is none.
pub fn make_room() -> Result<Before, String> {
    let none = rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    let limits = COUNTED.map(|(resource, _)| ask(0, resource, None).unwrap_or(none));
    for (limit, (resource, _)) in limits.iter().zip(COUNTED) {
        let soft = rlimit { rlim_max: limit.rlim_max, ..raised(*limit, ENOUGH) };
        let is_set = |new: &rlimit| ask(0, resource, Some(new)).is_ok();
        if limit.rlim_cur == libc::RLIM_INFINITY || is_set(&raised(*limit, ENOUGH)) {
            continue;
        }
        if !is_set(&soft) {
            restore(&limits);
            let what = if resource == libc::RLIMIT_AS { "address space" } else { "data" };
            return Err(format!("{what} is limited to {} bytes", limit.rlim_cur));
        }
    }
    Ok(Before { limits, used: used() })
}

fn restore(limits: &[rlimit; 2]) {
    for (limit, (resource, _)) in limits.iter().zip(COUNTED) {
        // It was as low before.
        let _ = ask(0, resource, Some(limit));
    }
}

fn used() -> [u64; 2] {
    COUNTED.map(|(_, name)| maps::used(name) as u64)
}

impl Before {
    /// Sets the limits to what they were and what the pager has set aside.
    pub fn settle(self) {
        for (nth, now) in used().into_iter().enumerate() {
            let own = now.saturating_sub(self.used[nth]);
            OWN[nth].store(own, Ordering::Release);
            let (limit, resource) = (self.limits[nth], COUNTED[nth].0);
            if limit.rlim_cur != libc::RLIM_INFINITY {
                let all = raised(limit, own);
                let soft = rlimit { rlim_max: limit.rlim_max, ..all };
                let _ = ask(0, resource, Some(&all)).or_else(|_| ask(0, resource, Some(&soft)));
            }
        }
    }
}

/// Lowers the limits of a forked child, which lacks so much of what its parent set aside.
pub fn lack(bytes: usize) {
    for (own, (resource, _)) in OWN.iter().zip(COUNTED) {
        take_from(own, bytes as u64);
        let limit = ask(0, resource, None).ok();
        if let Some(limit) = limit.filter(|limit| limit.rlim_cur != libc::RLIM_INFINITY) {
            let _ = ask(0, resource, Some(&lowered(limit, bytes as u64)));
        }
    }
}

/// Counts so many bytes less. Memory set aside while nothing was limited was not counted.
fn take_from(own: &AtomicU64, bytes: u64) {
    let less = |own: u64| Some(own.saturating_sub(bytes));
    let _ = own.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

/// Tells whether more memory would be over a limit. The heap maps within memory that it set aside:
/// the kernel counts it as data, but refuses none.
pub fn is_over(more: usize, is_data: bool) -> bool {
    let limit = |nth: usize| {
        let own = OWN[nth].load(Ordering::Acquire);
        let limit = ask(0, COUNTED[nth].0, None).ok().filter(|_| own > 0)?;
        Some(limit.rlim_cur).filter(|&limit| limit != libc::RLIM_INFINITY)
    };
    let [space, data] = [limit(0), limit(1).filter(|_| is_data)];
    if space.is_none() && data.is_none() {
        return false;
    }
    let ([size, of_data], mapped) = (as_pager(used), heap::mapped_bytes() as u64);
    let over =
        |limit: Option<u64>, used: u64| limit.is_some_and(|l| used.saturating_add(more as u64) > l);
    over(space, size.saturating_add(mapped)) || over(data, of_data)
}

/// Becomes another program, under the limits that this one knows; comes back if that fails.
pub fn exec(exec: impl FnOnce() -> c_int) -> c_int {
    let before = COUNTED.map(|(resource, _)| {
        let limit = ask(0, resource, None).ok().filter(|l| l.rlim_cur != libc::RLIM_INFINITY)?;
        let known = lowered(limit, own_of(resource));
        ask(0, resource, Some(&rlimit { rlim_max: limit.rlim_max, ..known })).ok()
    });
    let failed = exec();
    let errno = errno();
    for (limit, (resource, _)) in before.iter().zip(COUNTED) {
        limit.as_ref().map(|limit| ask(0, resource, Some(limit)));
    }
    set_errno(errno);
    failed
}

/// Tells and changes a limit of a process as that knows it: what the pager set aside in this one is
/// not counted.
unsafe fn change(pid: pid_t, resource: c_uint, new: *const rlimit, old: *mut rlimit) -> c_int {
    // SAFETY: asks only.
    let is_mine = pid == 0 || pid == unsafe { libc::getpid() };
    let own = if is_mine && !threads::is_pager() { own_of(resource) } else { 0 };
    // SAFETY: the caller's own arguments.
    let new = unsafe { new.as_ref() }.map(|&new| raised(new, own));
    match ask(pid, resource, new.as_ref()) {
        Ok(limit) => {
            // SAFETY: the caller's own pointer, null or to a limit that may be written.
            if let Some(old) = unsafe { old.as_mut() } {
                *old = lowered(limit, own);
            }
            0
        }
        Err(errno) => refused(errno),
    }
}

macro_rules! limits {
    ($($set:ident, $get:ident, $both:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(resource: c_uint, new: *const rlimit) -> c_int {
            // SAFETY: the caller's own arguments.
            unsafe { change(0, resource, new, std::ptr::null_mut()) }
        }

        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(resource: c_uint, old: *mut rlimit) -> c_int {
            // SAFETY: the caller's own arguments.
            unsafe { change(0, resource, std::ptr::null(), old) }
        }

        /// Stands in for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $both(
            pid: pid_t,
            resource: c_uint,
            new: *const rlimit,
            old: *mut rlimit,
        ) -> c_int {
            // SAFETY: the caller's own arguments.
            unsafe { change(pid, resource, new, old) }
        }
    )*};
}

limits! {
    setrlimit, getrlimit, prlimit;
    setrlimit64, getrlimit64, prlimit64;
}

/// Tells whether numbers of descriptors run short: of those below the limit the program is left
/// half.
pub fn descriptors_run_short() -> bool {
    const OF_A_MAPPING: u64 = 16;
    let limit = ask(0, libc::RLIMIT_NOFILE, None).map_or(u64::MAX, |limit| limit.rlim_cur);
    // SAFETY: makes a descriptor that is closed at once.
    let next = unsafe { libc::memfd_create(c"mglru-probe".as_ptr(), libc::MFD_CLOEXEC) };
    if next >= 0 {
        // SAFETY: it was made here, and nobody else knows it.
        unsafe { libc::syscall(libc::SYS_close, next) };
    }
    next < 0 || next as u64 + OF_A_MAPPING > limit / 2
}

/// Tells how much address space this process may have, bytes.
pub fn of_address_space() -> usize {
    ask(0, libc::RLIMIT_AS, None).map_or(usize::MAX, |limit| limit.rlim_cur as usize)
}

/// Tells how much of a file of so many bytes this process may make.
pub fn of_file(bytes: u64) -> u64 {
    threads::longest_file().min(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_lacks_more_than_was_counted_has_nothing() {
        let own = AtomicU64::new(5);
        take_from(&own, 3);
        assert_eq!(own.load(Ordering::Relaxed), 2);
        take_from(&own, 3);
        assert_eq!(own.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_limit_is_shifted_and_none_stays_none() {
        let limit = rlimit { rlim_cur: 5, rlim_max: libc::RLIM_INFINITY };
        let more = raised(limit, 7);
        assert_eq!((more.rlim_cur, more.rlim_max), (12, libc::RLIM_INFINITY));
        let less = lowered(more, 7);
        assert_eq!((less.rlim_cur, less.rlim_max), (5, libc::RLIM_INFINITY));
        assert_eq!(lowered(less, 9).rlim_cur, 0);
    }
}
