//! Groups, their limits and what they count, by cgroup v2's names.

use std::ffi::{c_char, c_int};

use mglru_pager::{Group, Limit};

use crate::error::{Failure, answer, given, status, text};
use crate::{end_handle, new_handle};

const NO_LIMIT: u64 = u64::MAX;
const LIMITS: [(&str, Limit); 5] = [
    ("memory.min", Limit::Min),
    ("memory.low", Limit::Low),
    ("memory.high", Limit::High),
    ("memory.max", Limit::Max),
    ("memory.swap.max", Limit::SwapMax),
];

fn limit(key: &str) -> Option<Limit> {
    LIMITS.iter().find(|(name, _)| *name == key).map(|&(_, limit)| limit)
}

fn get(group: &Group, key: &str) -> Result<u64, Failure> {
    if let Some(limit) = limit(key) {
        return Ok(group.limit(limit).unwrap_or(NO_LIMIT));
    }
    let value = group.stat()?.get(key);
    value.ok_or_else(|| Failure::invalid(format!("a group has no `{key}`")))
}

fn set(group: &Group, key: &str, value: u64) -> Result<(), Failure> {
    if let Some(limit) = limit(key) {
        group.set_limit(limit, Some(value).filter(|&value| value != NO_LIMIT));
        return Ok(());
    }
    if key != "memory.swappiness" {
        return Err(Failure::invalid(format!("`{key}` of a group cannot be set")));
    }
    // What a byte cannot hold is out of range all the more.
    Ok(group.set_swappiness(value.min(u8::MAX.into()) as u8)?)
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_group_create(
    parent: *const Group,
    name: *const c_char,
    group: *mut *mut Group,
) -> c_int {
    // SAFETY: handles, a string and a place of the caller's.
    unsafe {
        answer(group, || Ok(new_handle(given(parent, "parent")?.create(text(name, "name")?)?)))
    }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_group_close(group: *mut Group) {
    // SAFETY: the caller is done with it.
    drop(unsafe { end_handle(group) });
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_group_get(
    group: *const Group,
    key: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: a handle, a string and a place of the caller's.
    unsafe { answer(value, || get(given(group, "group")?, text(key, "key")?)) }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_group_set(
    group: *const Group,
    key: *const c_char,
    value: u64,
) -> c_int {
    // SAFETY: a handle and a string of the caller's.
    let named = || unsafe { Ok((given(group, "group")?, text(key, "key")?)) };
    status(named().and_then(|(group, key)| set(group, key, value)))
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_group_reclaim(
    group: *const Group,
    bytes: u64,
    reclaimed: *mut u64,
) -> c_int {
    // SAFETY: a handle and a place of the caller's.
    unsafe { answer(reclaimed, || Ok(given(group, "group")?.reclaim(bytes)?)) }
}
