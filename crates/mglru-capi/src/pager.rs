//! Opening a pager.

use std::ffi::{c_char, c_int};
use std::path::Path;

use mglru_pager::{Codec, Pager, PagerOptions, SwapOptions};

use crate::error::{Failure, answer, given, sized, text};
use crate::{end_handle, new_handle};

/// Lays out `mglru_options`.
#[repr(C)]
pub struct Options {
    size: usize,
    memory_max: u64,
    memory_high: u64,
    swap_pool: u64,
    swap_file_bytes: u64,
    swap_folder: *const c_char,
    codec: u32,
    reserved: u32,
}

impl Options {
    fn codec(&self) -> Result<Codec, Failure> {
        match self.codec {
            0 => Ok(Codec::Lz4),
            1 => Ok(Codec::Zstd),
            _ => Err(Failure::invalid("options.codec is neither MGLRU_LZ4 nor MGLRU_ZSTD")),
        }
    }

    /// # Safety
    /// The path is null or a string.
    unsafe fn swap(&self) -> Result<SwapOptions, Failure> {
        let swap = SwapOptions { codec: self.codec()?, ..SwapOptions::in_memory(self.swap_pool) };
        if self.swap_folder.is_null() {
            return Ok(swap);
        }
        // SAFETY: as the caller promises.
        let path = unsafe { text(self.swap_folder, "options.swap_folder") }?;
        Ok(swap.with_file_in(Path::new(path), self.swap_file_bytes))
    }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_open(options: *const Options, pager: *mut *mut Pager) -> c_int {
    let open = || {
        // SAFETY: the caller's options, with the size they say.
        let options = unsafe { sized(options, "options") }?;
        if options.reserved != 0 {
            return Err(Failure::invalid("options.reserved is not 0"));
        }
        let limits = PagerOptions::new().memory_max(options.memory_max);
        // SAFETY: a path of the caller's.
        let swap = unsafe { options.swap() }?;
        Ok(new_handle(limits.memory_high(options.memory_high).swap(swap).open()?))
    };
    // SAFETY: the caller's own place for it.
    unsafe { answer(pager, open) }
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_close(pager: *mut Pager) {
    // SAFETY: the caller is done with it.
    drop(unsafe { end_handle(pager) });
}

/// See mglru.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mglru_root(
    pager: *const Pager,
    group: *mut *mut mglru_pager::Group,
) -> c_int {
    // SAFETY: a handle and a place of the caller's.
    unsafe { answer(group, || Ok(new_handle(given(pager, "pager")?.root()))) }
}
