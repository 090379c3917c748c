//! A lock that a fork may take along: the child opens its copy.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Guards a value. Holders do little, so that others wait by yielding.
pub struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the holder alone.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Makes an open lock.
    pub const fn new(value: T) -> Self {
        Lock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Acts on the value.
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        self.close();
        // SAFETY: the lock is held.
        let result = act(unsafe { &mut *self.value.get() });
        self.open();
        result
    }

    /// Waits for the lock and keeps it.
    pub fn close(&self) {
        while self.held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    /// Opens the lock that this thread, or that whose copy it is, keeps.
    pub fn open(&self) {
        self.held.store(false, Ordering::Release);
    }
}
