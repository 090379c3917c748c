//! The pager for programs in C. `include/mglru.h` says what each function does; this is the thin
//! layer below it: pointers in, a handle or an errno out. What C may get wrong is checked where
//! it can be; nothing here keeps state but the text of the last error.

mod error;
mod group;
mod map;
mod pager;
mod store;

/// Makes a handle, which the caller owns until it ends it.
fn new_handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Ends a handle.
///
/// # Safety
/// It is null, or came from [`new_handle`] and is not used again.
unsafe fn end_handle<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: as the caller promises.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}
