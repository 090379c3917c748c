//! Says what a group maps, and maps it.

use std::fs::File;
use std::sync::Arc;

use super::{Group, usize_of};
use crate::arena::{Backing, Place};
use crate::error::PagerError;
use crate::slices::{Mapping, MappingMut};
use crate::store::{FileStore, Store};
use crate::sys::PAGE;

/// Describes memory that a group maps: where its pages come from, how long it is, where it lies.
///
/// ```no_run
/// # use mglru_pager::{Group, Map};
/// # fn copy(group: &Group) -> Result<(), Box<dyn std::error::Error>> {
/// let file = std::fs::File::open("data")?;
/// // SAFETY: nobody changes or truncates the file meanwhile.
/// let copy = unsafe { group.map(Map::file(&file)?.private()) }?;
/// # Ok(())
/// # }
/// ```
pub struct Map {
    backing: Backing,
    len: usize,
    room: usize,
    over: Option<usize>,
}

impl Map {
    /// Describes a file that is read. Stores to the memory are lost, and the next flush says so,
    /// unless they are [`Self::private`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn file(file: &File) -> Result<Self, PagerError> {
        Self::of_file(file, false)
    }

    /// Describes a file; stores go back to it.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn file_mut(file: &File) -> Result<Self, PagerError> {
        Self::of_file(file, true)
    }

    fn of_file(file: &File, writable: bool) -> Result<Self, PagerError> {
        let store = FileStore::new(file, writable)?;
        let len = usize_of(store.len())?;
        Ok(Self::store(Arc::new(store), len))
    }

    /// Describes the first `len` bytes of a store; stores to the memory go back to it.
    pub fn store(store: Arc<dyn Store>, len: usize) -> Self {
        Map { backing: Backing::Store(store), len, room: len, over: None }
    }

    /// Keeps stores from the file or store: they are the mapping's own, and go to swap.
    #[must_use]
    pub fn private(self) -> Self {
        let backing = match self.backing {
            Backing::Store(store) => Backing::Copy(store),
            other => other,
        };
        Map { backing, ..self }
    }

    /// Maps so many bytes, which the store may come to hold: those beyond its length cost nothing
    /// before they are used.
    #[must_use]
    pub fn with_room(self, room: usize) -> Self {
        Map { room, ..self }
    }

    /// Maps in place of what lies at an address, a multiple of 4096.
    #[must_use]
    pub fn over(self, address: usize) -> Self {
        Map { over: Some(address), ..self }
    }

    fn check(&self) -> Result<(), PagerError> {
        let is_fit = |address: usize| {
            address != 0 && address % PAGE == 0 && address.checked_add(self.room).is_some()
        };
        match self.over {
            Some(address) if !is_fit(address) => {
                let takes = format!("the multiples of {PAGE} from {PAGE} on");
                Err(PagerError::OutOfRange { what: "address", got: address as u64, takes })
            }
            _ => Ok(()),
        }
    }
}

impl Group {
    /// Maps anonymous memory of `len` bytes, zeros at first.
    ///
    /// # Errors
    /// No room for its tables, or the kernel refuses.
    pub fn map_anon(&self, len: usize) -> Result<MappingMut, PagerError> {
        self.map_backing(len, Backing::Anon).map(MappingMut::new)
    }

    /// Maps a file or store.
    ///
    /// # Errors
    /// As [`Self::map_anon`]; the address is no multiple.
    ///
    /// # Safety
    /// While it is mapped, a page must read as it was last written: nobody else changes or
    /// truncates the file, or memory that is borrowed would change. Nobody uses what lies at the
    /// address that it is mapped over.
    #[allow(unsafe_code)]
    pub unsafe fn map(&self, map: Map) -> Result<MappingMut, PagerError> {
        map.check()?;
        // SAFETY: the caller promises that nobody uses what lies there.
        let place = map.over.map_or(Place::anywhere(), |at| unsafe { Place::over(at) });
        self.map_arena(map.room, map.len, map.backing, place).map(MappingMut::new)
    }

    /// Maps a file or store for reading alone.
    ///
    /// # Errors
    /// As [`Self::map`].
    ///
    /// # Safety
    /// As [`Self::map`].
    #[allow(unsafe_code)]
    pub unsafe fn map_read(&self, map: Map) -> Result<Mapping, PagerError> {
        map.check()?;
        // SAFETY: the caller promises that nobody uses what lies there.
        let place = map.over.map_or(Place::anywhere(), |at| unsafe { Place::over(at) });
        self.map_arena(map.room, map.len, map.backing, place).map(Mapping::new)
    }
}
