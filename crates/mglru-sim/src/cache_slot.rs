//! Stands for a page in the page cache of a file, or in the swap cache: 32 bits, of which zero
//! is nothing and the top bit marks a shadow.

use mglru::types::FolioId;

use crate::shadows::Kept;

const SHADOW: u32 = 1 << 31;

/// Names the content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Holds nothing: the page was never cached, or was dropped.
    Hole,
    /// Holds a cached page.
    Folio(FolioId),
    /// Holds the shadow of an evicted page.
    Shadow(Kept),
}

impl Slot {
    /// Packs the slot as a table keeps it.
    #[inline]
    pub fn pack(self) -> u32 {
        match self {
            Self::Hole => 0,
            Self::Folio(folio) => {
                debug_assert!(folio.0 + 1 < SHADOW, "folio ids have 31 bits");
                folio.0 + 1
            }
            Self::Shadow(Kept(bits)) => bits | SHADOW,
        }
    }

    /// Unpacks a table's word.
    #[inline]
    pub fn unpack(word: u32) -> Self {
        match word {
            0 => Self::Hole,
            bits if bits & SHADOW != 0 => Self::Shadow(Kept(bits & !SHADOW)),
            bits => Self::Folio(FolioId(bits - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_survive_packing() {
        let kept = [0, (1 << 31) - 1].map(|bits| Slot::Shadow(Kept(bits)));
        let folios = [0, (1 << 31) - 3].map(|id| Slot::Folio(FolioId(id)));
        for slot in [Slot::Hole].into_iter().chain(kept).chain(folios) {
            assert_eq!(Slot::unpack(slot.pack()), slot);
        }
    }
}
