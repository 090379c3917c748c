//! Takes folios off a list of the classic LRU: from its tail, or for the random control from
//! anywhere (spec §8).

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::folio::Bit;
use crate::host::{Host, Isolated, ListName, TraceEvent};
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::types::{FolioId, LruvecId};

/// Slots tried before the random control takes the tail instead.
const RANDOM_TRIES: u32 = 256;

impl Lru {
    /// Takes up to `pages` pages off the tail; folios of zones that this reclaim cannot use go to
    /// the head, and their pages are counted apart. The result is in the scratch list's buffer.
    pub(crate) fn isolate_classic(
        &mut self,
        ctl: &ScanControl,
        id: LruvecId,
        list: ClassicList,
        pages: u64,
    ) -> (Vec<FolioId>, u64) {
        let mut taken = core::mem::take(&mut self.scratch.isolated);
        let mut skipped = core::mem::take(&mut self.scratch.skipped);
        let mut skipped_pages = 0;
        let head = self.lruvecs[id.index()].classic.lists[list.index()];
        let mut n = 0;
        while n < pages {
            let Some(folio) = self.folios.tail(head) else { break };
            if self.folios[folio].flags.zone() > ctl.reclaim_idx {
                self.folios.unlink(folio);
                skipped.push(folio);
                skipped_pages += self.folios[folio].pages();
                continue;
            }
            n += self.folios[folio].pages();
            self.remove_classic(folio);
            taken.push(folio);
        }
        for folio in skipped.drain(..) {
            self.folios.push_head(head, folio);
        }
        self.scratch.skipped = skipped;
        (taken, skipped_pages)
    }

    /// Takes up to `pages` pages from anywhere in the list: random slots of the slab are tried
    /// until they hit, and the tail is taken when the list is too small a part of the slab.
    pub(crate) fn isolate_at_random(
        &mut self,
        id: LruvecId,
        list: ClassicList,
        pages: u64,
        host: &mut impl Host,
    ) -> Vec<FolioId> {
        let mut taken = core::mem::take(&mut self.scratch.isolated);
        let head = self.lruvecs[id.index()].classic.lists[list.index()];
        let mut n = 0;
        while n < pages {
            let mut tries =
                (0..RANDOM_TRIES).map(|_| FolioId(host.random_below(self.folios.slots() as u32)));
            let hit = tries.find(|&f| self.is_on(f, id, list));
            let Some(folio) = hit.or_else(|| self.folios.tail(head)) else { break };
            n += self.folios[folio].pages();
            self.remove_classic(folio);
            taken.push(folio);
        }
        taken
    }

    pub(super) fn is_on(&self, folio: FolioId, id: LruvecId, list: ClassicList) -> bool {
        let folio = &self.folios[folio];
        let active = folio.flags.has(Bit::ACTIVE);
        folio.lruvec == id
            && folio.flags.has(Bit::LRU)
            && !folio.flags.has(Bit::UNEVICTABLE)
            && ClassicList::of(folio.lru_type(), active) == list
    }
}

/// Tells pages asked for, taken and passed over.
pub(crate) fn trace_isolated(
    ctl: &ScanControl,
    list: ClassicList,
    [requested, taken, skipped]: [u64; 3],
    host: &mut impl Host,
) {
    host.trace(TraceEvent::Isolated(Isolated {
        highest_zone: ctl.reclaim_idx,
        order: ctl.order,
        requested,
        scanned: taken + skipped,
        skipped,
        taken,
        list: ListName { lru_type: list.lru_type(), active: list.is_active() },
    }));
}
