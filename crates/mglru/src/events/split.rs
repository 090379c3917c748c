//! Splits a large folio whose file is cut inside of it (spec §LF.13).

use crate::folio::Bit;
use crate::host::ListChange;
use crate::state::Lru;
use crate::types::FolioId;

impl Lru {
    /// Halves a folio; its upper half becomes a folio of its own, which `owner` names. Both keep
    /// what was known of the whole, but for the mark of readahead and reclaim; the new one lies
    /// beside the old one, the next to be evicted after it. The host divides `mapcount`.
    ///
    /// # Panics
    /// If the folio is a single page or is being written: a bug of the host.
    pub fn split(&mut self, id: FolioId, owner: [u32; 2]) -> FolioId {
        let folio = &mut self.folios[id];
        assert!(folio.flags.order() > 0, "{id:?}: a single page cannot be split");
        assert!(!folio.flags.has(Bit::WRITEBACK), "{id:?}: split while it is written");
        folio.flags.halve();
        folio.flags.clear(Bit::RECLAIM);
        let half = *folio;
        let upper = self.folios.insert_beside(id, half, owner);
        if half.flags.has(Bit::ISOLATED) {
            self.return_isolated_half(upper);
        } else if half.flags.has(Bit::LRU) && !half.flags.has(Bit::UNEVICTABLE) {
            self.note_change(upper, ListChange::Inserted { accessed: false });
        }
        upper
    }

    /// A reclaimer that waits for the folio has its lower half only: the upper one is listed.
    fn return_isolated_half(&mut self, id: FolioId) {
        self.release_isolated(id);
        self.putback(id);
    }
}
