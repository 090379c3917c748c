//! The host's own policy chooses what goes, in the frame of the classic LRU: one list a group,
//! node and type. It hears of each change of the list and names folios to isolate.

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::config::Algorithm;
use crate::folio::Bit;
use crate::host::{Host, ListChange, ListEvent, ListId};
use crate::shadow::Place;
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::types::{FolioId, LruType, LruvecId};

impl Lru {
    /// Counts the changes of lists that the host's policy has not heard of.
    pub fn list_events(&self) -> usize {
        self.list_events.len()
    }

    /// Hands over what the host's policy has not heard of, the oldest first.
    pub fn take_list_events(&mut self) -> Vec<ListEvent> {
        core::mem::take(&mut self.list_events)
    }

    /// Notes a change of a list, where the host's policy chooses.
    pub(crate) fn note_change(&mut self, id: FolioId, change: ListChange) {
        if self.config.lru == Algorithm::Custom {
            let folio = &self.folios[id];
            let (owner, list) = (folio.owner, self.list_id(folio.lruvec, folio.lru_type()));
            self.list_events.push(ListEvent { list, folio: id, owner, change });
        }
    }

    fn list_id(&self, lruvec: LruvecId, lru_type: LruType) -> ListId {
        let Place { memcg, node } = self.place(lruvec);
        ListId { memcg, node, lru_type }
    }

    /// Notes that the folio came onto its list, and forgets how it was used before.
    pub(super) fn note_inserted(&mut self, id: FolioId, cold: bool) {
        if self.config.lru == Algorithm::Custom {
            let accessed = self.folios[id].flags.take(Bit::REFERENCED);
            let inserted = ListChange::Inserted { accessed };
            self.note_change(id, if cold { ListChange::Cold } else { inserted });
        }
    }

    /// Takes the folios that the host's policy names. Those of zones that this reclaim cannot use,
    /// and those beyond `pages`, stay, and the policy hears that they came back. Without a valid
    /// name the tail goes. Nobody is asked about an empty list.
    pub(super) fn isolate_named(
        &mut self,
        ctl: &ScanControl,
        id: LruvecId,
        list: ClassicList,
        pages: u64,
        host: &mut impl Host,
    ) -> (Vec<FolioId>, u64) {
        if self.lruvecs[id.index()].classic_size(list) == 0 {
            return (core::mem::take(&mut self.scratch.isolated), 0);
        }
        let mut named = core::mem::take(&mut self.scratch.skipped);
        let key = self.list_id(id, list.lru_type());
        let mut events = self.take_list_events();
        host.victims(key, pages, &mut events, &self.folios, &mut named);
        events.clear();
        self.list_events = events;
        named.retain(|&folio| self.is_on(folio, id, list));
        let taken = self.take_named(ctl, &mut named, pages);
        self.scratch.skipped = named;
        if taken.0.is_empty() && taken.1 == 0 {
            self.scratch.isolated = taken.0;
            return self.isolate_unnamed(ctl, id, list, pages);
        }
        taken
    }

    fn take_named(
        &mut self,
        ctl: &ScanControl,
        named: &mut Vec<FolioId>,
        pages: u64,
    ) -> (Vec<FolioId>, u64) {
        let mut taken = core::mem::take(&mut self.scratch.isolated);
        let (mut n, mut skipped) = (0, 0);
        for folio in named.drain(..) {
            let usable = self.folios[folio].flags.zone() <= ctl.reclaim_idx;
            if !usable || n >= pages {
                skipped += if usable { 0 } else { self.folios[folio].pages() };
                self.note_inserted(folio, false);
            } else if self.folios[folio].flags.has(Bit::LRU) {
                n += self.folios[folio].pages();
                self.remove_classic(folio);
                taken.push(folio);
            }
        }
        (taken, skipped)
    }

    /// The policy named nothing that lies on the list: its tail goes, and the policy hears so.
    fn isolate_unnamed(
        &mut self,
        ctl: &ScanControl,
        id: LruvecId,
        list: ClassicList,
        pages: u64,
    ) -> (Vec<FolioId>, u64) {
        let found = self.isolate_classic(ctl, id, list, pages);
        found.0.iter().for_each(|&folio| self.note_change(folio, ListChange::Removed));
        found
    }
}
