//! How folios come onto the classic lists, leave them and are activated; what reclaim costs.

use alloc::vec::Vec;

use crate::folio::Bit;
use crate::shadow::Place;
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::types::{FolioId, LruType, LruvecId};

impl Lru {
    /// Puts a folio onto the list its flags ask for: at the head, or at the tail to be met next.
    pub(crate) fn insert_classic(&mut self, id: FolioId, tail: bool) {
        let folio = &mut self.folios[id];
        if self.config.keeps_one_list() {
            folio.flags.clear(Bit::ACTIVE);
        }
        folio.flags.set(Bit::LRU);
        let list = ClassicList::of(folio.lru_type(), folio.flags.has(Bit::ACTIVE));
        self.account_classic(id, list, true);
        let lruvec = &self.lruvecs[self.folios[id].lruvec.index()];
        let list = lruvec.classic.lists[list.index()];
        if tail {
            self.folios.push_tail(list, id);
        } else {
            self.folios.push_head(list, id);
        }
        self.note_inserted(id, tail);
    }

    /// Takes a folio off its list; the active flag says later where it was.
    pub(crate) fn remove_classic(&mut self, id: FolioId) {
        let folio = &mut self.folios[id];
        folio.flags.clear(Bit::LRU);
        let list = ClassicList::of(folio.lru_type(), folio.flags.has(Bit::ACTIVE));
        self.account_classic(id, list, false);
        self.folios.unlink(id);
    }

    fn account_classic(&mut self, id: FolioId, list: ClassicList, more: bool) {
        let folio = self.folios[id];
        let (n, zone) = (folio.pages(), folio.flags.zone().index());
        let lruvec = &mut self.lruvecs[folio.lruvec.index()];
        let pages = &mut lruvec.classic.pages[list.index()][zone];
        let total = &mut self.nodes[lruvec.node.index()].lru_pages[list.lru_type().index()];
        if more {
            *pages += n;
            *total += n;
        } else {
            *pages -= n;
            *total -= n;
        }
    }

    /// "Mark accessed": unreferenced to referenced to active.
    pub(crate) fn classic_accessed(&mut self, id: FolioId) {
        let folio = self.folios[id];
        let flags = &mut self.folios[id].flags;
        if !folio.flags.has(Bit::REFERENCED) {
            flags.set(Bit::REFERENCED);
        } else if !folio.flags.has(Bit::ACTIVE) {
            flags.clear(Bit::REFERENCED);
            self.activate(id);
            self.age_nonresident(folio.lruvec, folio.pages());
        }
    }

    /// Puts folios that reclaim looked at back on their lists. What becomes or stays active takes
    /// room from what is away, as an eviction does: those age (spec §K72.14).
    pub(crate) fn return_classic(&mut self, folios: &mut Vec<FolioId>) {
        for id in folios.drain(..) {
            self.putback(id);
            let folio = self.folios[id];
            if folio.flags.has(Bit::ACTIVE) {
                self.age_nonresident(folio.lruvec, folio.pages());
            }
        }
    }

    /// Reclaiming from a type cost this much; old costs fade.
    pub(crate) fn add_cost(&mut self, id: LruvecId, lru_type: LruType, cost: u64) {
        let Place { memcg, node } = self.place(id);
        let mut up = Some(memcg);
        while let Some(memcg) = up {
            let size: u64 = ClassicList::ALL
                .iter()
                .map(|&list| self.lruvecs[self.lruvec_id(memcg, node).index()].classic_stat(list))
                .sum();
            let id = self.lruvec_id(memcg, node);
            let costs = &mut self.lruvecs[id.index()].classic.cost;
            costs[lru_type.index()] += cost;
            if costs.iter().sum::<u64>() > size / 4 {
                costs.iter_mut().for_each(|c| *c /= 2);
            }
            up = self.memcgs.parent(memcg);
        }
    }

    /// Sums the statistics of all groups up over the processors. A driver that calls this now and
    /// then makes the heuristics of the classic LRU see sizes and refaults as they were at the last
    /// call; without it they are exact. So they stay in the kernels up to 3.4, which went by the
    /// sizes of their lists.
    pub fn flush_stats(&mut self) {
        if self.config.contig.is_lumpy_era() {
            return;
        }
        self.lruvecs.iter_mut().for_each(crate::state::lruvec::Lruvec::flush_stats);
    }
}
