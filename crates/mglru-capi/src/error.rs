//! What went wrong: an errno for the program, a line for its user.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

pub use mglru_pager::Failure;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the code that a function returns for a result.
pub fn status(result: Result<(), Failure>) -> c_int {
    let Err(Failure(errno, line)) = result else { return 0 };
    // A zero byte would end the line early; there is none in what the pager says.
    LAST.set(CString::new(line.replace('\0', " ")).unwrap_or_default());
    errno
}

/// Writes what was made to `out`, and answers as [`status`] does.
///
/// # Safety
/// `out` is null or can be written.
pub unsafe fn answer<T>(out: *mut T, make: impl FnOnce() -> Result<T, Failure>) -> c_int {
    if out.is_null() {
        return status(Err(Failure::invalid("no place for the answer: it is NULL")));
    }
    // SAFETY: as the caller promises.
    status(make().map(|value| unsafe { out.write(value) }))
}

/// Returns the value that a pointer points to.
///
/// # Safety
/// It is null or valid for as long as the answer is used.
pub unsafe fn given<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::invalid(format!("{what} is NULL")))
}

/// Reads a string of the caller's.
///
/// # Safety
/// It is null or ends with a zero byte.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::invalid(format!("{what} is NULL")));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map_err(|_| Failure::invalid(format!("{what} is not UTF-8")))
}

/// Reads a structure that says its size, which may be that of an older header: what that did not
/// have is zeros.
///
/// # Safety
/// It is null or begins with its size and has it.
pub unsafe fn sized<T>(pointer: *const T, what: &str) -> Result<T, Failure> {
    // SAFETY: as the caller promises; all structures begin so.
    let size = *unsafe { given(pointer.cast::<usize>(), what) }?;
    if !(size_of::<usize>()..=size_of::<T>()).contains(&size) {
        return Err(Failure::invalid(format!("{what}: its size is {size}")));
    }
    let mut known = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both are `size` bytes and more; the structures are of numbers, and of pointers that
    // may be null.
    unsafe {
        known.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(pointer.cast(), size);
        Ok(known.assume_init())
    }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub extern "C" fn mglru_last_error() -> *const c_char {
    LAST.with_borrow(|line| line.as_ptr())
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub extern "C" fn mglru_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
