//! Look-around: when eviction's reverse-map walk finds a young entry, its neighbours in the same
//! page table are harvested too (spec §4.4).

use crate::config::RefsModel;
use crate::folio::Bit;
use crate::host::{RmapHarvest, Window};
use crate::mglru::walk::is_suitable;
use crate::state::Lru;
use crate::tiers;
use crate::types::{FolioId, LruType, LruvecId, MIN_LRU_BATCH};

impl Lru {
    /// The window for one folio. In 6.12 a file folio leaves anonymous neighbours alone.
    pub(crate) fn window_around(&self, id: FolioId) -> Window {
        if !self.config.is_mglru() {
            return Window::ONE;
        }
        let file = self.folios[id].lru_type() == LruType::File;
        let mg = &self.lruvecs[self.folios[id].lruvec.index()].mg;
        Window {
            entries: MIN_LRU_BATCH as u32,
            file_only: file && self.config.version().looks_by_type,
            youngest: Some(LruType::ALL.map(|t| mg.youngest(t))),
        }
    }

    /// Promotes the neighbours and remembers dense tables for the next walk. `walking`: the
    /// reclaimer has the state of a page-table walk at hand, so lists are left alone.
    pub(crate) fn look_around(&mut self, id: LruvecId, harvest: &RmapHarvest, walking: bool) {
        if !walking {
            self.folios.bring_links_near(harvest.neighbours.iter().map(|young| young.folio));
        }
        for young in &harvest.neighbours {
            self.note_dirty_pte(young.folio, young.dirty);
            if walking {
                self.promote(young.folio);
            } else {
                self.promote_by_activation(young.folio);
            }
        }
        let mg = &mut self.lruvecs[id.index()].mg;
        for around in &harvest.around {
            if is_suitable(around.entries, around.young) {
                for (walk, seq) in mg.walks.iter_mut().zip(mg.max_seq) {
                    walk.filters.insert(seq, around.mm, around.at);
                }
            }
        }
    }

    /// Without walk state a promoted neighbour is taken off its list and put back young. One that
    /// is isolated itself, as neighbours of a sequential reader are, is kept by its mark (K612).
    fn promote_by_activation(&mut self, id: FolioId) {
        let folio = self.folios[id];
        let youngest = self.lruvecs[folio.lruvec.index()].mg.youngest(folio.lru_type());
        let flags = &mut self.folios[id].flags;
        let version = self.config.version();
        if version.one_touch {
            match folio.flags.generation() {
                None => return flags.set(Bit::REFERENCED),
                Some(generation) if generation == youngest => return,
                Some(_) if version.neighbour_forgets => {
                    tiers::forget_accesses(flags, RefsModel::K612);
                }
                Some(_) => {}
            }
        } else if !self.touch(id) {
            return;
        }
        if folio.flags.generation() != Some(youngest) {
            self.activate(id);
        }
    }

    /// Counts a touch through page tables. True when the folio is to move.
    fn touch(&mut self, id: FolioId) -> bool {
        let trusts_programs = self.config.trusts_programs();
        let flags = &mut self.folios[id].flags;
        let first = !flags.has_any([Bit::REFERENCED, Bit::WORKINGSET]);
        let program = flags.has(Bit::EXEC) && !flags.has(Bit::SWAPBACKED);
        if first && trusts_programs && program {
            flags.set_refs(0);
            flags.set(Bit::WORKINGSET);
            return true;
        }
        if first || !self.config.releases.touch_ladder {
            return tiers::second_touch(flags);
        }
        tiers::climb(flags);
        true
    }

    /// Makes a listed folio young (MGLRU) or active (classic).
    pub(crate) fn activate(&mut self, id: FolioId) {
        let flags = self.folios[id].flags;
        if !flags.has(Bit::LRU) || flags.has(Bit::UNEVICTABLE) {
            return;
        }
        let n = self.folios[id].pages();
        self.remove(id);
        self.folios[id].flags.set(Bit::ACTIVE);
        self.putback(id);
        let folio = self.folios[id];
        self.age_promoted(&folio);
        self.count(folio.lruvec, crate::stats::Counter::Pgactivate, n);
    }
}
