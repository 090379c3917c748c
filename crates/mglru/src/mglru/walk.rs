//! The page-table walk of one address space (spec §4.3), a slice at a time.

use crate::config::Config;
use crate::folio::Bit;
use crate::host::{Backing, Harvest, Host, PmdView, Va};
use crate::state::Lru;
use crate::state::aging::Walk;
use crate::state::generations::WalkState;
use crate::stats::Counter;
use crate::types::{FolioId, LruType, LruvecId, MAX_LRU_BATCH};

use crate::state::evictable::Evictable;

/// Page tables visited in one slice at most; a slice also ends after [`MAX_LRU_BATCH`] promotions.
const SLICE_TABLES: u32 = 64;
/// A table is worth a visit when one entry in so many is young: one per 64-byte line.
const YOUNG_FACTOR: u32 = 8;

/// Counts the work of one slice of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The address space is done, or the generation it was walked for is not the youngest now.
    pub(crate) over: bool,
    /// Folios promoted under the lock.
    pub(crate) promoted: u32,
}

/// Is the table dense enough in young entries for the next walk to visit it?
pub(crate) fn is_suitable(entries: u32, young: u32) -> bool {
    young * YOUNG_FACTOR >= entries && young > 0
}

fn skips_mapping(pmd: &PmdView, evictable: Evictable) -> bool {
    let lru_type = match pmd.backing {
        Backing::Anon | Backing::Shmem => LruType::Anon,
        Backing::File => LruType::File,
    };
    pmd.special || !pmd.recency || !evictable.includes(lru_type)
}

fn skips_table(walk: &Walk, pmd: &PmdView, state: &WalkState, config: &Config) -> bool {
    let idle = config.nonleaf_young && !pmd.young;
    let filtered =
        || config.mechanisms.bloom_filters && !state.filters.may_contain(walk.seq, walk.mm, pmd.at);
    !walk.force && (idle || filtered())
}

impl Lru {
    /// Walks on from `walk.at` for one slice.
    pub(crate) fn walk_slice(&mut self, walk: &mut Walk, host: &mut impl Host) -> Slice {
        let mut slice = Slice::default();
        let mut harvest = core::mem::take(&mut self.scratch.harvest);
        for _ in 0..SLICE_TABLES {
            if self.lruvecs[walk.lruvec.index()].mg.now(walk.evictable) != walk.seq {
                slice.over = true;
                break;
            }
            let Some(pmd) = host.next_pmd(walk.mm, walk.at) else {
                slice.over = true;
                break;
            };
            walk.at = self.visit(walk, &pmd, host, &mut harvest, &mut slice);
            if u64::from(slice.promoted) >= MAX_LRU_BATCH {
                break;
            }
        }
        self.scratch.harvest = harvest;
        slice
    }

    /// Visits one table, or skips it or its whole mapping; returns where to go on.
    fn visit(
        &mut self,
        walk: &Walk,
        pmd: &PmdView,
        host: &mut impl Host,
        harvest: &mut Harvest,
        slice: &mut Slice,
    ) -> Va {
        if skips_mapping(pmd, walk.evictable) {
            return pmd.mapping_end;
        }
        let mg = &self.lruvecs[walk.lruvec.index()].mg;
        let state = &mg.walks[mg.clock(walk.evictable)];
        if skips_table(walk, pmd, state, &self.config) {
            return pmd.next;
        }
        harvest.clear();
        host.harvest_pmd(walk.mm, pmd.at, walk.lruvec, &self.folios, harvest);
        slice.promoted += self.promote_harvest(walk.lruvec, harvest);
        self.remember_table(walk, pmd, harvest);
        pmd.next
    }

    fn promote_harvest(&mut self, lruvec: LruvecId, harvest: &Harvest) -> u32 {
        self.count(lruvec, Counter::WalkPtes, u64::from(harvest.entries));
        self.count(lruvec, Counter::WalkYoung, u64::from(harvest.young_entries()));
        let mut promoted = 0;
        for young in &harvest.young {
            self.note_dirty_pte(young.folio, young.dirty);
            promoted += u32::from(if self.config.is_mglru() {
                self.promote(young.folio)
            } else {
                self.classic_walked(young.folio)
            });
        }
        promoted
    }

    /// A dirty entry makes its folio dirty, fresh anonymous memory aside.
    pub(crate) fn note_dirty_pte(&mut self, id: FolioId, dirty: bool) {
        let flags = self.folios[id].flags;
        let fresh_anon = flags.has(Bit::ANON) && !flags.has(Bit::SWAPCACHE);
        if dirty && !fresh_anon {
            self.set_dirty(id);
        }
    }

    /// A table that was busy stays in the filter (K614); a dense one is put into it.
    fn remember_table(&mut self, walk: &Walk, pmd: &PmdView, harvest: &Harvest) {
        let young = harvest.young_entries();
        let busy = harvest.contended && self.config.version().remembers_busy_tables;
        if busy || is_suitable(harvest.entries, young) {
            let mg = &mut self.lruvecs[walk.lruvec.index()].mg;
            let clock = mg.clock(walk.evictable);
            mg.walks[clock].filters.insert(walk.seq.plus(1), walk.mm, pmd.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_needs_one_young_entry_per_cache_line() {
        assert!(is_suitable(512, 64) && !is_suitable(512, 63));
        assert!(is_suitable(8, 1) && !is_suitable(9, 1));
        assert!(!is_suitable(0, 0));
    }
}
