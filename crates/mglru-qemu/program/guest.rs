//! Reads the program's memory: its addresses are the host's, less one distance.

use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static DISTANCE: AtomicU64 = AtomicU64::new(0);

/// Sets the distance by an address of the program and the same place's on the host.
pub fn set(address: u64, host: u64) {
    DISTANCE.store(host.wrapping_sub(address), Relaxed);
}

/// Tells the program's address of a place on the host.
pub fn address(host: u64) -> u64 {
    host.wrapping_sub(DISTANCE.load(Relaxed))
}

fn host<T>(address: u64) -> *const T {
    address.wrapping_add(DISTANCE.load(Relaxed)) as *const T
}

/// Reads a number.
///
/// # Safety
/// The address is mapped.
pub unsafe fn number(address: u64) -> u64 {
    // SAFETY: the caller says so.
    unsafe { host::<u64>(address).read_unaligned() }
}

/// Reads a text.
///
/// # Safety
/// The address is that of a text that ends with a zero byte.
pub unsafe fn text(address: u64) -> CString {
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(host::<c_char>(address)).to_owned() }
}

/// Reads a list of texts.
///
/// # Safety
/// The address is 0, or that of addresses of texts, with 0 behind.
pub unsafe fn texts(address: u64) -> Vec<CString> {
    let mut words = Vec::new();
    let places = (address..).step_by(8).take_while(|_| address != 0);
    for place in places {
        // SAFETY: the caller says so.
        match unsafe { number(place) } {
            0 => break,
            // SAFETY: the caller says so.
            at => words.push(unsafe { text(at) }),
        }
    }
    words
}
