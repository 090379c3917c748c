//! The policy's entry for each page of an arena: its folio while it is resident, its shadow
//! after it was evicted. Eight bytes.

use std::io;

use mglru::{FolioId, Shadow};

use crate::sys::table::Table;

/// A shadow has 63 bits.
const SHADOW: u64 = 1 << 63;

/// The content of a page's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slotted {
    /// Says that the page was never resident, or was dropped.
    Nothing,
    /// Says that the page is resident.
    Folio(FolioId),
    /// Says that the page was evicted.
    Shadow(Shadow),
}

/// The entries of an arena.
#[derive(Debug)]
pub(super) struct Entries(Table<u64>);

impl Entries {
    pub(super) fn new(nr_pages: u32) -> io::Result<Self> {
        Ok(Self(Table::new(nr_pages as usize)?))
    }

    pub(super) fn get(&self, page: u32) -> Slotted {
        match self.0[page as usize] {
            0 => Slotted::Nothing,
            word if word & SHADOW != 0 => Slotted::Shadow(Shadow(word & !SHADOW)),
            word => Slotted::Folio(FolioId(word as u32 - 1)),
        }
    }

    pub(super) fn folio(&self, page: u32) -> Option<FolioId> {
        match self.get(page) {
            Slotted::Folio(folio) => Some(folio),
            _ => None,
        }
    }

    pub(super) fn set_folio(&mut self, page: u32, folio: FolioId) {
        self.0[page as usize] = u64::from(folio.0) + 1;
    }

    pub(super) fn set_shadow(&mut self, page: u32, shadow: Shadow) {
        self.0[page as usize] = shadow.0 | SHADOW;
    }

    pub(super) fn clear(&mut self, page: u32) {
        self.0[page as usize] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_either_kind() {
        let mut entries = Entries::new(3).unwrap();
        entries.set_folio(0, FolioId(0));
        entries.set_shadow(1, Shadow(0));
        assert_eq!(entries.get(0), Slotted::Folio(FolioId(0)));
        assert_eq!(entries.get(1), Slotted::Shadow(Shadow(0)));
        assert_eq!(entries.get(2), Slotted::Nothing);
        entries.set_shadow(0, Shadow(SHADOW - 1));
        assert_eq!(entries.get(0), Slotted::Shadow(Shadow(SHADOW - 1)));
        entries.clear(0);
        assert_eq!(entries.folio(0), None);
    }
}
