//! Types that describe an arena and its pages.

use std::sync::Arc;

use crate::children::Children;
use crate::store::Store;

/// Names the source of an arena's pages.
#[derive(Clone)]
pub enum Backing {
    /// Zeros at first, then swap.
    Anon,
    /// As [`Self::Anon`], in private memory: what the program itself maps, drops and forks.
    Heap(Arc<Children>),
    /// A file or whatever the caller made.
    Store(Arc<dyn Store>),
    /// Pages come from a store at first; those that are stored to become the arena's own and go to
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

/// Where an arena is to be.
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

/// An arena that is asked for.
#[derive(Clone)]
pub struct Plan {
    /// Its length.
    pub nr_pages: u32,
    /// Pages that there may be content of from the start. Tables of those beyond are paid for, and
    /// their entries protected, when the first of them is filled.
    pub nr_held: u32,
    /// Where its pages come from.
    pub backing: Backing,
    /// Where it is to be.
    pub place: Place,
}

/// How it is known which pages of an arena were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// An entry that is present was used since it was last zapped: the kernel itself maps again
    /// what is used.
    Entries,
    /// The kernel keeps accessed bits (`UFFDIO_RWPROTECT`).
    Kept,
    /// Staged pages alone: whether they were rescued.
    Rescues,
}

/// How an arena will be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Neighbours of a missing page are read with it.
    #[default]
    Normal,
    /// They are not.
    Random,
    /// More of them ahead, and accesses say nothing about reuse.
    Sequential,
}

/// Names something that happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It became resident because it was touched.
    Filled,
    /// It was read along with one that was touched.
    Joined,
    /// It became newer than its store.
    Dirtied,
    /// The program gave it up.
    Dropped,
    /// The caller says that it was used.
    Used,
}
