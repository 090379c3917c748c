//! Gives QEMU a time of day that depends on nothing but how often a thread asks for it.
//!
//! QEMU sizes its cache of translated addresses by how full it was in the last 100 ms of the
//! host's time. The size decides which addresses are walked again, and a walk sets the accessed
//! bit of a page table entry: on a busy host the same guest kernel found other pages young. Only
//! the thread that runs the guest flushes that cache, and it does so at the same instructions each
//! time, so that its own count of calls serves as the time.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

/// Some day, seconds since 1970: nothing shows it.
const START_S: i64 = 1_700_000_000;
/// A call takes so long. A guest that flushes 10,000 times in 100 ms is a busy one.
const CALL_US: i64 = 10;

/// Lays out `struct timeval` of 64-bit Linux.
#[repr(C)]
pub struct Time {
    s: i64,
    us: i64,
}

thread_local! {
    static CALLS: Cell<i64> = const { Cell::new(0) };
}

/// Stands before the C library's function of this name.
///
/// # Safety
/// `time` can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut Time, _zone: *mut c_void) -> c_int {
    let us = CALL_US * CALLS.replace(CALLS.get() + 1);
    if !time.is_null() {
        // SAFETY: the caller says so.
        unsafe { time.write(Time { s: START_S + us / 1_000_000, us: us % 1_000_000 }) };
    }
    0
}
