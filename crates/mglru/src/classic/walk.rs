//! Page-table walks under the classic LRU, which Linux does not make (`young_source = ptw`).
//!
//! One walk is made for each turn of the inactive lists. It treats a young entry as the reverse map
//! would when the folio comes to the list's end, only sooner: a first touch leaves a mark, a second
//! one or a program's page becomes active. So what a walk is worth can be told from what
//! generations are worth.

use crate::folio::Bit;
use crate::host::Host;
use crate::state::Lru;
use crate::state::aging::{Aging, AgingStep};
use crate::state::evictable::Evictable;
use crate::types::{FolioId, LruType, LruvecId};

impl Lru {
    /// Starts a walk, if this turn of the inactive lists had none yet.
    pub(super) fn start_classic_walk(&self, id: LruvecId, can_swap: bool) -> Option<Aging> {
        if !self.config.walks_tables() || self.config.keeps_one_list() {
            return None;
        }
        let lruvec = &self.lruvecs[id.index()];
        let size: u64 = LruType::ALL.into_iter().map(|t| lruvec.inactive(t)).sum();
        let due = lruvec.mg.scanned_since[0] >= size;
        let evictable = if can_swap { Evictable::Both } else { Evictable::FileOnly };
        due.then(|| self.start_aging(id, evictable, false))
    }

    /// Takes a walk one slice further; the folios handled, or `None` once it is over.
    pub(super) fn step_classic_walk(
        &mut self,
        walk: &mut Option<Aging>,
        host: &mut impl Host,
    ) -> Option<u32> {
        match self.step_aging(walk.as_mut()?, host) {
            AgingStep::Walking { held } => Some(held),
            AgingStep::Over { .. } => {
                *walk = None;
                None
            }
        }
    }

    /// A walk found the folio young. True when it became active.
    pub(crate) fn classic_walked(&mut self, id: FolioId) -> bool {
        let folio = self.folios[id];
        let was_marked = folio.flags.has(Bit::REFERENCED);
        self.folios[id].flags.set(Bit::REFERENCED);
        let program = folio.flags.has(Bit::EXEC) && folio.lru_type() == LruType::File;
        let proven = was_marked || program && self.config.mechanisms.exec_protection;
        let listed = folio.flags.has(Bit::LRU) && !folio.flags.has(Bit::UNEVICTABLE);
        if !proven || !listed || folio.flags.has(Bit::ACTIVE) {
            return false;
        }
        self.activate(id);
        self.age_nonresident(folio.lruvec, folio.pages());
        true
    }

    /// Was the active folio found young by a walk since this was last asked?
    pub(super) fn take_walked(&mut self, id: FolioId) -> bool {
        self.config.walks_tables() && self.folios[id].flags.take(Bit::REFERENCED)
    }
}
