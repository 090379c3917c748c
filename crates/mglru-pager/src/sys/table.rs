//! Large tables of zeros that take room only where they are written to.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU8, AtomicU32};

use super::direct::Buffer;

/// Marks values that a table can hold: all bits zero must be one of them.
///
/// # Safety
/// Any bytes are a value of the type, and it needs no more alignment than a page has.
pub unsafe trait Entry {}

// SAFETY: a plain number of one byte.
unsafe impl Entry for AtomicU8 {}
// SAFETY: a plain number of four bytes.
unsafe impl Entry for AtomicU32 {}
// SAFETY: a plain number of eight bytes.
unsafe impl Entry for u64 {}

/// Maps `n` zeros, straight from the kernel: an allocator may clear what it gives.
#[derive(Debug)]
pub struct Table<T: Entry> {
    memory: Buffer,
    n: usize,
    holds: std::marker::PhantomData<T>,
}

impl<T: Entry> Table<T> {
    /// Creates a table of `n` zeros.
    pub fn new(n: usize) -> std::io::Result<Self> {
        let bytes = (n * size_of::<T>()).next_multiple_of(super::PAGE).max(super::PAGE);
        Ok(Self { memory: Buffer::new(bytes)?, n, holds: std::marker::PhantomData })
    }
}

impl<T: Entry> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the buffer is page-aligned, long enough, and any bytes are values.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.n) }
    }
}

impl<T: Entry> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: page-aligned, long enough, any bytes are values, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_table_starts_with_zeros_and_keeps_what_is_written() {
        let mut table = Table::<u64>::new(1 << 30).expect("address space");
        assert_eq!((table[0], table[(1 << 30) - 1]), (0, 0));
        table[(1 << 30) - 1] = 7;
        assert_eq!((table[(1 << 30) - 2], table[(1 << 30) - 1]), (0, 7));
        let empty = Table::<AtomicU32>::new(0).unwrap();
        assert!(empty.is_empty());
        let bytes = Table::<AtomicU8>::new(4097).unwrap();
        bytes[4096].store(1, Ordering::Relaxed);
        assert_eq!(bytes.len(), 4097);
    }
}
