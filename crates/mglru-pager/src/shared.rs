//! Memory that several threads use at a time. Every access is atomic, so no plain reference to it
//! is ever given out, and it can be shared, flushed and discarded while it is in use.

use std::fs::File;
use std::io::Write;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::arena::Backing;
use crate::arena::FaultStat;
use crate::error::PagerError;
use crate::group::Group;
use crate::mapping::{Advice, Mapped, Pin};
use crate::slices::{MappingMut, any_mapping, written_mapping};
use crate::store::FileStore;
use crate::sys::direct;

/// Bytes written at a time to a new file.
const CHUNK: usize = 1 << 20;
/// Byte that a new file is filled with.
const FILLER: u8 = 0x5a;

/// Holds words of eight bytes, shared between threads.
pub struct SharedMapping {
    mapped: Mapped,
}

impl Group {
    /// Maps anonymous memory of `len` bytes, a multiple of 8, zeros at first.
    ///
    /// # Errors
    /// As [`Group::map_anon`].
    pub fn share_anon(&self, len: usize) -> Result<SharedMapping, PagerError> {
        Ok(SharedMapping::new(self.map_backing(len, Backing::Anon)?))
    }

    /// Maps a new file of `len` bytes in `folder`, written to the disk in full, that has no name:
    /// no other process can open it, and it goes with the mapping.
    ///
    /// # Errors
    /// As [`Group::map_anon`]; the file cannot be made, or the disk is full.
    pub fn share_scratch(&self, folder: &Path, len: usize) -> Result<SharedMapping, PagerError> {
        let mut file = direct::unnamed(folder)?;
        fill(&mut file, len)?;
        let store = FileStore::new(&file, true)?;
        Ok(SharedMapping::new(self.map_backing(len, Backing::Store(Arc::new(store)))?))
    }
}

impl MappingMut {
    /// Returns the same memory, for several threads at a time.
    pub fn share(self) -> SharedMapping {
        SharedMapping::new(self.into_mapped())
    }
}

fn fill(file: &mut File, len: usize) -> std::io::Result<()> {
    let chunk = vec![FILLER; CHUNK.min(len)];
    let mut left = len;
    while left > 0 {
        let now = left.min(CHUNK);
        file.write_all(&chunk[..now])?;
        left -= now;
    }
    file.sync_all()
}

impl Deref for SharedMapping {
    type Target = [AtomicU64];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[AtomicU64] {
        let (start, len) = (self.mapped.start(), self.mapped.len());
        // SAFETY: the view starts at a page, is mapped for `len` bytes and more as long as `self`
        // lives, and is reached through atomics only.
        unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), len / 8) }
    }
}

any_mapping!(SharedMapping);
written_mapping!(SharedMapping);

impl SharedMapping {
    /// Returns a pointer to its first byte; there are [`Self::len_bytes`] of them.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapped.start()
    }

    /// Returns its length, bytes.
    pub fn len_bytes(&self) -> usize {
        self.mapped.len()
    }

    /// Drops the content of a range of bytes, whole pages: it reads as its store has it, or as
    /// zeros.
    ///
    /// # Errors
    /// The range is not whole pages of the mapping.
    pub fn discard_range(&self, range: Range<usize>) -> Result<(), PagerError> {
        self.mapped.discard(&range)
    }

    /// Says that a page was used. With the control `fifo` as policy, which sees each access, this
    /// is exact LRU, to compare with.
    pub fn note_used(&self, page: usize) {
        self.mapped.note_used(page);
    }
}
