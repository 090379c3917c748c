//! Large tables of zeros that take room only where they are written to.

use std::sync::atomic::{AtomicU8, AtomicU32};

/// `n` zero bytes.
pub fn bytes(n: usize) -> Box<[AtomicU8]> {
    let zeros = vec![0u8; n].into_boxed_slice();
    // SAFETY: an atomic has the size, alignment and values of what it holds.
    unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicU8]) }
}

/// `n` zero words.
pub fn words(n: usize) -> Box<[AtomicU32]> {
    const { assert!(align_of::<AtomicU32>() == align_of::<u32>()) };
    let zeros = vec![0u32; n].into_boxed_slice();
    // SAFETY: as above.
    unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicU32]) }
}
