//! The use that brought a page. It leaves the page's entry present, which shows reclaim a use
//! when it meets the page, whether there was another or not. So the entry is taken away once the
//! page is no longer among the newest: the first use is counted as one, and those soon after it
//! belong to it (a correlated reference period, as LRU-K has it).

use std::collections::VecDeque;

use mglru::Bit;

use super::Policy;
use crate::account::PAGE_COST;
use crate::arena::{Access, Bits};

/// The newest pages are this share of what is resident. On traces of databases, caches and
/// storage (a tenth resident) 64 and 32 spare the most misses; with 8 pages are met before.
const SHARE: u64 = 32;
/// The most of them.
const MOST: u64 = 4096;

/// Pages that were brought because they were used, the oldest first: (arena, page).
pub(super) type Fresh = VecDeque<(u32, u32)>;

impl Policy {
    /// Notes a page that a use brought, if its page table entry has the accessed bit of that use.
    pub(super) fn note_fresh(&mut self, id: u32, page: u32) {
        let arena = &self.world.attached(id).arena;
        let has_accessed_bit = self.lru.config().is_mglru() && arena.bits() == Bits::Entries;
        if has_accessed_bit && arena.access() != Access::Sequential {
            self.world.fresh.push_back((id, page));
        }
    }

    /// Takes the first use from pages that are no longer among the newest.
    pub(super) fn settle_fresh(&mut self) {
        let newest = (self.world.accounts[0].usage() / PAGE_COST / SHARE).min(MOST) as usize;
        let settled = self.world.fresh.len().saturating_sub(newest);
        for (id, page) in self.world.fresh.drain(..settled).collect::<Vec<_>>() {
            self.settle(id, page);
        }
        self.world.taken.clear();
    }

    /// One that left and came back meanwhile is taken for the first of the two: that is rare.
    fn settle(&mut self, id: u32, page: u32) {
        let Some(attached) = self.world.arenas[id as usize].as_ref() else { return };
        let arena = attached.arena.clone();
        let Some(folio) = attached.entries.folio(page) else { return };
        if arena.pages().is_pinned(page) {
            return;
        }
        self.world.taken.add(&arena, [arena.view().pages(page, 1)]);
        // The fault already counted as a use where the mapping has recency.
        let counted = self.lru.folios()[folio].flags.has(Bit::REFERENCED);
        if arena.access() == Access::Random && !counted {
            self.lru.accessed(folio);
        }
    }
}
