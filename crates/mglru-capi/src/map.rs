//! Mappings: made, advised, written back, pinned, ended.

use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::FromRawFd;
use std::sync::Arc;

use mglru_pager::{Advice, Group, Map, PagerError, SharedMapping};

use crate::error::{Failure, answer, given, sized, status, text};
use crate::store::Calls;
use crate::{end_handle, new_handle};

const READ: c_int = 1;
const WRITE: c_int = 2;
const ADVICE: [Advice; 6] = [
    Advice::Normal,
    Advice::Random,
    Advice::Sequential,
    Advice::PopulateRead,
    Advice::Cold,
    Advice::PageOut,
];

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_map_anon(
    group: *const Group,
    len: usize,
    map: *mut *mut SharedMapping,
) -> c_int {
    // SAFETY: a handle and a place of the caller's.
    unsafe { answer(map, || Ok(new_handle(given(group, "group")?.map_anon(len)?.share()))) }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_map_file(
    group: *const Group,
    fd: c_int,
    access: c_int,
    map: *mut *mut SharedMapping,
) -> c_int {
    let make = || {
        if fd < 0 || access & !(READ | WRITE) != 0 || access & READ == 0 {
            return Err(Failure::invalid("fd is negative, or access is not MGLRU_READ[|WRITE]"));
        }
        // SAFETY: the descriptor is the caller's while this call lasts, and not closed here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let map = if access & WRITE == 0 { Map::file(&file) } else { Map::file_mut(&file) }?;
        // SAFETY: the header says that nobody else changes the file; the group is the caller's.
        let mapped = unsafe { given(group, "group")?.map(map) }?;
        Ok(new_handle(mapped.share()))
    };
    // SAFETY: the caller's own place for it.
    unsafe { answer(map, make) }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_map_store(
    group: *const Group,
    store: *const Calls,
    len: usize,
    map: *mut *mut SharedMapping,
) -> c_int {
    let make = || {
        // SAFETY: the caller's functions, with the size that they say.
        let calls = unsafe { sized(store, "store") }.and_then(Calls::checked)?;
        // SAFETY: a handle of the caller's.
        let group = unsafe { given(group, "group") }?;
        // SAFETY: the header asks for a store that reads as it was written.
        Ok(new_handle(unsafe { group.map(Map::store(Arc::new(calls), len)) }?.share()))
    };
    // SAFETY: the caller's own place for it.
    unsafe { answer(map, make) }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_unmap(map: *mut SharedMapping) -> c_int {
    // SAFETY: the caller is done with it.
    let Some(map) = (unsafe { end_handle(map) }) else { return 0 };
    status(map.write_back_range(0..map.len_bytes()).map_err(Failure::from))
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_map_start(map: *const SharedMapping) -> *mut c_void {
    // SAFETY: a handle of the caller's.
    unsafe { map.as_ref() }.map_or(std::ptr::null_mut(), |map| map.as_ptr().cast())
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_map_len(map: *const SharedMapping) -> usize {
    // SAFETY: a handle of the caller's.
    unsafe { map.as_ref() }.map_or(0, SharedMapping::len_bytes)
}

/// Does something with a range of a mapping.
///
/// # Safety
/// The mapping is null or a handle.
unsafe fn ranged(
    map: *const SharedMapping,
    offset: usize,
    len: usize,
    what: impl FnOnce(&SharedMapping, Range<usize>) -> Result<(), PagerError>,
) -> c_int {
    // SAFETY: as the caller promises.
    let map = unsafe { given(map, "map") };
    let range = offset..offset.saturating_add(len);
    status(map.and_then(|map| what(map, range).map_err(Failure::from)))
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_advise(
    map: *const SharedMapping,
    offset: usize,
    len: usize,
    advice: c_int,
) -> c_int {
    let Some(&advice) = usize::try_from(advice).ok().and_then(|nth| ADVICE.get(nth)) else {
        return status(Err(Failure::invalid(format!("advice: {advice} is none"))));
    };
    // SAFETY: a handle of the caller's.
    unsafe { ranged(map, offset, len, |map, range| map.advise_range(advice, range)) }
}

macro_rules! on_ranges {
    ($($name:ident => $what:expr;)*) => {$(
        /// See mglru.h.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            map: *const SharedMapping,
            offset: usize,
            len: usize,
        ) -> c_int {
            // SAFETY: a handle of the caller's.
            unsafe { ranged(map, offset, len, $what) }
        }
    )*};
}

on_ranges! {
    mglru_flush_range => SharedMapping::flush_range;
    mglru_write_back => SharedMapping::write_back_range;
    mglru_discard => SharedMapping::discard_range;
    mglru_pin => |map, range| map.pin(range).map(mglru_pager::Pin::keep);
    mglru_unpin => SharedMapping::unpin_range;
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_map_get(
    map: *const SharedMapping,
    key: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: a handle, a string and a place of the caller's.
    unsafe { answer(value, || get(given(map, "map")?, text(key, "key")?)) }
}

fn get(map: &SharedMapping, key: &str) -> Result<u64, Failure> {
    let stat = map.stat();
    Ok(match key {
        "missing" => stat.missing,
        "major" => stat.major,
        "protect" => stat.protect,
        "throttled" => stat.throttled,
        "read_around" => stat.read_around,
        "resident" => map.resident()?,
        _ => return Err(Failure::invalid(format!("a mapping has no `{key}`"))),
    })
}
