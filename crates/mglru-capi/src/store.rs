//! A store that a program in C made.

use std::ffi::{c_int, c_void};
use std::io;

use mglru_pager::Store;

use crate::error::Failure;

/// Holds the functions of `mglru_store`.
#[repr(C)]
pub struct Calls {
    size: usize,
    user: *mut c_void,
    read_at: Option<unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize) -> c_int>,
    write_at: Option<unsafe extern "C" fn(*mut c_void, u64, *const c_void, usize) -> c_int>,
    sync: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the header says that the functions are called from the pager's threads.
unsafe impl Send for Calls {}
// SAFETY: the header says that several threads may call them at a time.
unsafe impl Sync for Calls {}

impl Calls {
    /// Checks that all functions that are needed are there.
    pub fn checked(self) -> Result<Self, Failure> {
        if self.read_at.is_none() || self.write_at.is_none() || self.sync.is_none() {
            return Err(Failure::invalid("store: read_at, write_at and sync are needed"));
        }
        Ok(self)
    }
}

fn done(errno: c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

impl Store for Calls {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read_at = self.read_at.expect("it was checked");
        // SAFETY: the caller's function, with a buffer as long as it says.
        done(unsafe { read_at(self.user, offset, out.as_mut_ptr().cast(), out.len()) })
    }

    fn write_at(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        let write_at = self.write_at.expect("it was checked");
        // SAFETY: the caller's function, which reads as many bytes as the slice has.
        done(unsafe { write_at(self.user, offset, content.as_ptr().cast(), content.len()) })
    }

    fn sync(&self) -> io::Result<()> {
        let sync = self.sync.expect("it was checked");
        // SAFETY: the caller's function.
        done(unsafe { sync(self.user) })
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        if let Some(close) = self.close {
            // SAFETY: the caller's function, called once.
            unsafe { close(self.user) };
        }
    }
}
