//! The functions this library stands in for.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::c_void;

/// Holds a function of the libraries after this one, looked up once.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    /// Finds the next function of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns its address.
    pub fn address(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        assert!(!found.is_null(), "the C library has {:?}", self.name);
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the function that the surrounding one stands in for.
macro_rules! next {
    ($name:ident($($arg:expr),*) as $type:ty) => {{
        static NEXT: crate::next::Next = crate::next::Next::new(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },
        );
        // SAFETY: the C library's function of this name has this type; the arguments are the
        // caller's own.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(NEXT.address())($($arg),*) }
    }};
}
pub(crate) use next;
