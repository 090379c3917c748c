//! UMap's C functions over the pager, so that programs written for UMap run as they are: link
//! them with this `libumap.so`, or put it before the other in `LD_LIBRARY_PATH`.
//!
//! What UMap's environment says holds where it means something here (`settings`). The C++ classes
//! (`Umap::Store`, `umap_ex`) are not there.

mod regions;
mod settings;

use std::ffi::{c_char, c_int, c_void};

use libc::off_t;

use crate::regions::{Failure, Wanted, flush, map, pin, prefetch, unmap};
use crate::settings::settings;

fn set_errno(errno: c_int) {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// Says what went wrong and leaves its errno.
fn report(what: &str, failure: &Failure) {
    eprintln!("{what}: {}", failure.1);
    set_errno(failure.0);
}

/// 0, or -1 and errno.
fn status(what: &str, result: Result<(), Failure>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(failure) => {
            report(what, &failure);
            -1
        }
    }
}

/// Maps a part of a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umap(
    addr: *mut c_void,
    length: u64,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    match map(Wanted { address: addr as usize, len: length, prot, flags, fd, offset }) {
        Ok(start) => start.cast(),
        Err(failure) => {
            report("umap", &failure);
            libc::MAP_FAILED
        }
    }
}

/// Writes back and unmaps a region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uunmap(addr: *mut c_void, length: u64) -> c_int {
    status("uunmap", unmap(addr as usize, length))
}

/// Makes all stores durable.
#[unsafe(no_mangle)]
pub extern "C" fn umap_flush() -> c_int {
    status("umap_flush", flush())
}

/// Names a page to prefetch: `umap_prefetch_item`.
#[repr(C)]
pub struct PrefetchItem {
    page_base_addr: *mut c_void,
}

/// Brings pages in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umap_prefetch(npages: c_int, page_array: *const PrefetchItem) {
    for nth in 0..npages.max(0) as usize {
        // SAFETY: the caller says that there are `npages`.
        let item = unsafe { &*page_array.add(nth) };
        // A prefetch that finds no room is none.
        let _ = prefetch(item.page_base_addr as usize);
    }
}

/// Brings pages in and keeps them, until they are unmapped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umap_fetch_and_pin(paddr: *mut c_char, size: u64) {
    status("umap_fetch_and_pin", pin(paddr as usize, size));
}

macro_rules! getters {
    ($($name:ident -> $type:ty = $field:ident;)*) => {$(
        /// Returns what the environment says, or its default.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $type {
            settings().$field as $type
        }
    )*};
}

getters! {
    umapcfg_get_umap_page_size -> u64 = page_size;
    umapcfg_get_max_pages_in_buffer -> u64 = buffer_pages;
    umapcfg_get_read_ahead -> u64 = read_ahead;
    umapcfg_get_num_fillers -> u64 = fillers;
    umapcfg_get_num_evictors -> u64 = evictors;
    umapcfg_get_evict_low_water_threshold -> c_int = low_water;
    umapcfg_get_evict_high_water_threshold -> c_int = high_water;
    umapcfg_get_max_fault_events -> u64 = fault_events;
}

/// Returns the bytes of a page of the system.
#[unsafe(no_mangle)]
pub extern "C" fn umapcfg_get_system_page_size() -> libc::c_long {
    regions::PAGE as libc::c_long
}
