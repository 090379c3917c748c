//! Types that describe an arena and its pages.

use std::sync::Arc;

use crate::children::Children;
use crate::store::Store;

/// Names the source of an arena's pages.
#[derive(Clone)]
pub enum Backing {
    /// Backs pages by zeros at first, then by swap.
    Anon,
    /// Backs pages as [`Self::Anon`] does, in private memory that the program itself maps, drops
    /// and forks.
    Heap(Arc<Children>),
    /// Backs pages by a file or another store of the caller.
    Store(Arc<dyn Store>),
    /// Reads pages from a store at first; a page that is stored to becomes private and goes to
    /// swap.
    Copy(Arc<dyn Store>),
}

impl Backing {
    /// Returns the store behind the pages.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        match self {
            Self::Store(store) | Self::Copy(store) => Some(store),
            Self::Anon | Self::Heap(_) => None,
        }
    }
}

/// Says where an arena is to be mapped.
#[derive(Clone, Copy)]
pub struct Place(pub(super) Option<usize>);

impl Place {
    /// Lets the kernel choose.
    pub fn anywhere() -> Self {
        Self(None)
    }

    /// Puts the arena in place of what is at an address.
    ///
    /// # Safety
    /// Nobody uses what is there, from the address on for the arena's length.
    #[allow(unsafe_code)]
    pub unsafe fn over(address: usize) -> Self {
        Self(Some(address))
    }
}

/// Describes an arena that is to be made.
#[derive(Clone)]
pub struct Plan {
    /// Counts its pages.
    pub nr_pages: u32,
    /// Counts pages that may have content from the start. Tables of those beyond are paid for, and
    /// their entries protected, when the first of them is filled.
    pub nr_held: u32,
    /// Names the source of its pages.
    pub backing: Backing,
    /// Says where it is to be mapped.
    pub place: Place,
}

/// Says how the policy learns which pages of an arena were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// Reads present entries: one that is present was used since it was last zapped, because the
    /// kernel itself maps used pages again.
    Entries,
    /// Reads accessed bits that the kernel keeps (`UFFDIO_RWPROTECT`).
    Kept,
    /// Watches staged pages alone: whether they were rescued.
    Rescues,
}

/// Says how an arena will be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Neighbours of a missing page are read with it.
    #[default]
    Normal,
    /// Reads no neighbours.
    Random,
    /// Reads more pages ahead; accesses say nothing about reuse.
    Sequential,
}

/// Names something that happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Reports that the page became resident because it was loaded from.
    Filled,
    /// Reports that the page became resident because it was stored to.
    FilledForStore,
    /// Reports that the page was read along with one that was touched.
    Joined,
    /// Reports that the page became newer than its store.
    Dirtied,
    /// Reports that the program dropped the page.
    Dropped,
    /// Reports a use that the caller noted.
    Used,
}

impl Event {
    /// Returns the event of a page that an access of this type brought.
    pub fn filled(store: bool) -> Self {
        if store { Self::FilledForStore } else { Self::Filled }
    }
}
