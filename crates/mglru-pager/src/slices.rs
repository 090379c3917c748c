//! Mapped memory that borrows as slices do: one that is read, one that is written.

use std::ops::{Deref, DerefMut, Range};

use crate::arena::FaultStat;
use crate::error::PagerError;
use crate::mapping::{Advice, Mapped, Pin};

/// Methods that all kinds of mappings offer.
macro_rules! any_mapping {
    ($name:ident) => {
        impl $name {
            pub(crate) fn new(mapped: Mapped) -> Self {
                Self { mapped }
            }

            /// Says how all of it will be used.
            ///
            /// # Errors
            /// See [`Self::advise_range`].
            pub fn advise(&self, advice: Advice) -> Result<(), PagerError> {
                self.mapped.advise(advice, &(0..self.mapped.len()))
            }

            /// Says how a range of bytes will be used.
            ///
            /// # Errors
            /// The range is not within the mapping, or its pages cannot be read or written.
            pub fn advise_range(
                &self,
                advice: Advice,
                range: Range<usize>,
            ) -> Result<(), PagerError> {
                self.mapped.advise(advice, &range)
            }

            /// Keeps a range of bytes resident for as long as the pin lives.
            ///
            /// # Errors
            /// The range is not within the mapping, or there is no room for it.
            pub fn pin(&self, range: Range<usize>) -> Result<Pin<'_>, PagerError> {
                self.mapped.pin(&range)
            }

            /// Counts its faults.
            pub fn stat(&self) -> FaultStat {
                self.mapped.stat()
            }

            /// Counts the bytes that are resident, as the kernel counts them.
            ///
            /// # Errors
            /// The kernel does not say.
            pub fn resident(&self) -> Result<u64, PagerError> {
                self.mapped.resident()
            }
        }
    };
}
pub(crate) use any_mapping;

/// Methods of writable mappings besides.
macro_rules! written_mapping {
    ($name:ident) => {
        impl $name {
            /// Returns when all stores made before are durable in the store (anonymous memory has
            /// none).
            ///
            /// # Errors
            /// Something could not be written, since the last time this was asked.
            pub fn flush(&self) -> Result<(), PagerError> {
                self.flush_range(0..self.mapped.len())
            }

            /// Flushes a range of bytes as [`Self::flush`] does.
            ///
            /// # Errors
            /// As [`Self::flush`]; the range is not within the mapping.
            pub fn flush_range(&self, range: Range<usize>) -> Result<(), PagerError> {
                self.mapped.flush(&range)
            }

            /// Returns when all stores made before to a range of bytes are in the store, durable
            /// or not: readers of the store see them.
            ///
            /// # Errors
            /// As [`Self::flush_range`].
            pub fn write_back_range(&self, range: Range<usize>) -> Result<(), PagerError> {
                self.mapped.write_back(&range)
            }

            /// Takes one [kept](Pin::keep) pin of each page of a range of bytes back.
            ///
            /// # Errors
            /// The range is not within the mapping.
            pub fn unpin_range(&self, range: Range<usize>) -> Result<(), PagerError> {
                self.mapped.unpin(&range)
            }
        }
    };
}
pub(crate) use written_mapping;

macro_rules! slice {
    ($name:ident) => {
        impl Deref for $name {
            type Target = [u8];

            #[allow(unsafe_code)]
            fn deref(&self) -> &[u8] {
                let (start, len) = (self.mapped.start(), self.mapped.len());
                // SAFETY: the view is mapped for `len` bytes and more as long as `self` lives, and
                // its pages read as they were last written.
                unsafe { std::slice::from_raw_parts(start, len) }
            }
        }
    };
}

/// Holds memory that can be read.
pub struct Mapping {
    mapped: Mapped,
}

/// Holds memory that can be written.
pub struct MappingMut {
    mapped: Mapped,
}

any_mapping!(Mapping);
any_mapping!(MappingMut);
written_mapping!(MappingMut);
slice!(Mapping);
slice!(MappingMut);

impl DerefMut for MappingMut {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the view is mapped for `len` bytes and more as long as `self` lives, its pages
        // read as they were last written, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.start(), self.mapped.len()) }
    }
}

impl MappingMut {
    /// Drops the content of a range of whole pages: it reads as its store has it, or as zeros.
    ///
    /// # Errors
    /// The range is not whole pages of the mapping.
    pub fn discard_range(&mut self, range: Range<usize>) -> Result<(), PagerError> {
        self.mapped.discard(&range)
    }

    /// Changes the store behind the mapping's back: by system calls on its file. `change` answers
    /// with the bytes that it changed, of the given ones. Stores made before are in the store when
    /// it begins; loads see what it changed; what other threads store meanwhile beside that is
    /// kept.
    ///
    /// # Errors
    /// As [`Self::flush_range`], and nothing is changed then; or a page could not be made to show
    /// the change.
    pub fn change_store(
        &mut self,
        range: Range<usize>,
        change: impl FnOnce() -> Range<usize>,
    ) -> Result<(), PagerError> {
        self.mapped.change_store(&range, change)
    }

    /// Tells where a [private](crate::Map::private) mapping differs from its file: ranges of bytes
    /// that hold all that was stored.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn changed_ranges(&self) -> Result<Vec<Range<usize>>, PagerError> {
        self.mapped.changed()
    }

    /// Gives the addresses of a range of whole pages up for good, after what is dirty there was
    /// written back: they are the caller's to unmap, or to map something else at.
    ///
    /// # Errors
    /// As [`Self::flush_range`].
    ///
    /// # Safety
    /// Nothing of the range is used through this mapping any more, by slices of it either.
    #[allow(unsafe_code)]
    pub unsafe fn cut_range(&mut self, range: Range<usize>) -> Result<(), PagerError> {
        self.mapped.cut(&range)
    }

    /// Gives up the slice for what is behind it.
    pub(crate) fn into_mapped(self) -> Mapped {
        self.mapped
    }
}
