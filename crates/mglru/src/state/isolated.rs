//! Isolated folios whose writeback a reclaimer waits for (spec §9.4).

use alloc::vec::Vec;

use crate::folio::Bit;
use crate::state::Lru;
use crate::types::{FolioId, LruvecId};

impl Lru {
    /// Folios stay isolated between two steps while a reclaimer waits for their writeback; the
    /// other reclaimers of the lruvec feel it (classic).
    pub(crate) fn hold_isolated(&mut self, id: LruvecId, folios: &[FolioId]) {
        for &folio in folios {
            let folio = &mut self.folios[folio];
            folio.flags.set(Bit::ISOLATED);
            let isolated = &mut self.lruvecs[id.index()].classic.isolated;
            isolated[folio.lru_type().index()] += folio.pages();
        }
    }

    /// They return, but for those that were freed meanwhile; others may go on.
    pub(crate) fn take_isolated_back(&mut self, folios: &mut Vec<FolioId>) {
        folios.retain(|&folio| self.folios[folio].flags.has(Bit::ISOLATED));
        folios.iter().for_each(|&folio| self.release_isolated(folio));
    }

    /// Counts a folio out that no reclaimer waits for any more.
    pub(crate) fn release_isolated(&mut self, id: FolioId) {
        let folio = &mut self.folios[id];
        folio.flags.clear(Bit::ISOLATED);
        let lruvec = &mut self.lruvecs[folio.lruvec.index()];
        lruvec.classic.isolated[folio.lru_type().index()] -= folio.pages();
        self.nodes[lruvec.node.index()].wakes.isolated = true;
    }

    /// Is a folio that is waited for still being written?
    pub(crate) fn is_under_writeback(&self, id: FolioId) -> bool {
        self.folios[id].flags.has(Bit::WRITEBACK) && self.folios[id].flags.has(Bit::ISOLATED)
    }
}
