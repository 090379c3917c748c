//! Makes the shadow that an evicted page leaves, and reads it when the page returns (spec §6).
//!
//! MGLRU stores the generation it was evicted from and its access count; a refault within the live
//! window of generations feeds the controller. The classic LRU stores the non-resident age and
//! compares the refault distance with the room there would have been.

use crate::config::RefsModel;
use crate::folio::{Bit, Flags, REFS_MAX, REFS_WIDTH};
use crate::shadow::{Place, Shadow, TOKEN_MASK, Unpacked};
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::stats::{Counter, by_type};
use crate::tiers;
use crate::types::{FolioId, LruType, LruvecId, MAX_NR_GENS, MemcgId};

const SEQ_MASK: u64 = TOKEN_MASK >> REFS_WIDTH;

/// Cost of a workingset refault per page, in the units of reclaim cost (spec §6, §8).
const REFAULT_COST: u64 = 32;

impl Lru {
    /// Accounts for the eviction of a folio on behalf of `target` and makes its shadow.
    pub(crate) fn shadow_of(&mut self, id: FolioId, target: MemcgId) -> Shadow {
        if self.config.is_mglru() { self.mglru_shadow(id) } else { self.classic_shadow(id, target) }
    }

    /// A page returns whose slot holds a shadow: accounts for it and marks the new folio, which
    /// is on no list yet. `in_fault`: by a page fault in a mapping with recency.
    pub fn refault(&mut self, id: FolioId, shadow: Shadow, in_fault: bool) {
        if self.config.is_mglru() {
            self.mglru_refault(id, shadow, in_fault);
        } else {
            self.classic_refault(id, shadow);
        }
    }

    fn mglru_shadow(&mut self, id: FolioId) -> Shadow {
        let folio = self.folios[id];
        let model = self.config.refs_model;
        let lru_type = folio.lru_type();
        let count = tiers::access_count(folio.flags, model);
        let tier = self.tier(folio.flags);
        let bit = match model {
            RefsModel::K612 => count != 0,
            RefsModel::K614 => folio.flags.has(Bit::WORKINGSET),
        };
        let lruvec = &mut self.lruvecs[folio.lruvec.index()];
        lruvec.mg.controller.evicted[lru_type.index()][tier.index()] += folio.pages();
        let seq = lruvec.mg.min_seq[lru_type.index()].0;
        let token = seq << REFS_WIDTH | u64::from(count.saturating_sub(1));
        Shadow::pack(Unpacked { token, memcg: lruvec.memcg, node: lruvec.node, bit })
    }

    fn mglru_refault(&mut self, id: FolioId, shadow: Shadow, in_fault: bool) {
        let folio = self.folios[id];
        let lru_type = folio.lru_type();
        let was = shadow.unpack();
        if self.lruvec_of(was.memcg, was.node) != Some(folio.lruvec) {
            return;
        }
        let (t, n) = (lru_type.index(), folio.pages());
        self.count_refault(folio.lruvec, lru_type, n);
        let model = self.config.refs_model;
        let mg = &mut self.lruvecs[folio.lruvec.index()].mg;
        let seq = was.token >> REFS_WIDTH;
        let recent = match model {
            RefsModel::K612 => seq == mg.min_seq[t].0 & SEQ_MASK,
            RefsModel::K614 => (mg.max_seq.0.wrapping_sub(seq) & SEQ_MASK) < MAX_NR_GENS as u64,
        };
        if !recent {
            return;
        }
        let low = (was.token as u32) & REFS_MAX;
        let count = low + u32::from(model == RefsModel::K614 || was.bit);
        if self.config.mechanisms.refault_controller {
            let tier = self.config.cap_tier(tiers::tier_of(count, was.bit, model));
            mg.controller.refaulted[t][tier.index()] += n;
        }
        self.mark_refaulted(id, count, was.bit, in_fault);
    }

    /// Says what a recent refault does to the folio (spec §6).
    fn mark_refaulted(&mut self, id: FolioId, count: u32, bit: bool, in_fault: bool) {
        let by_count = self.config.version().refault_by_count;
        let activates = by_count || in_fault && (bit || !self.config.patches.prefault);
        let flags = &mut self.folios[id].flags;
        let restores = if by_count { in_fault || count >= REFS_MAX } else { bit };
        if restores {
            flags.set(Bit::WORKINGSET);
        }
        restore_count(flags, by_count, restores, count);
        let folio = self.folios[id];
        let (lru_type, n) = (folio.lru_type(), folio.pages());
        if activates {
            self.count_activation(folio.lruvec, lru_type, n);
        }
        if restores {
            self.count_restore(folio.lruvec, lru_type, n);
        }
    }

    fn classic_shadow(&mut self, id: FolioId, target: MemcgId) -> Shadow {
        let folio = self.folios[id];
        let node = self.lruvecs[folio.lruvec.index()].node;
        let lruvec = self.lruvec_id(target, node);
        let token = self.lruvecs[lruvec.index()].classic.nonresident_age;
        self.age_nonresident(lruvec, folio.pages());
        let bit = folio.flags.has(Bit::WORKINGSET);
        Shadow::pack(Unpacked { token, memcg: target, node, bit })
    }

    fn classic_refault(&mut self, id: FolioId, shadow: Shadow) {
        let folio = self.folios[id];
        let (lru_type, n) = (folio.lru_type(), folio.pages());
        self.count_refault(folio.lruvec, lru_type, n);
        let was = shadow.unpack();
        let Some(evictor) = self.lruvec_of(was.memcg, was.node) else { return };
        let age = self.lruvecs[evictor.index()].classic.nonresident_age;
        let distance = age.wrapping_sub(was.token) & TOKEN_MASK;
        if self.config.keeps_one_list() || distance > self.room(evictor, lru_type) {
            return;
        }
        self.folios[id].flags.set(Bit::ACTIVE);
        self.count_activation(folio.lruvec, lru_type, n);
        self.age_nonresident(folio.lruvec, n);
        if was.bit {
            self.folios[id].flags.set(Bit::WORKINGSET);
            self.add_cost(folio.lruvec, lru_type, REFAULT_COST * n);
            self.count_restore(folio.lruvec, lru_type, n);
        }
    }

    /// Pages a refaulting folio competes with: had it come back within that distance, it would
    /// have been activated in time.
    fn room(&self, evictor: LruvecId, lru_type: LruType) -> u64 {
        let Place { memcg, node } = self.place(evictor);
        let has_swap = self.memcgs[memcg].has_swap;
        let size = |list| self.subtree_size(memcg, node, list);
        let mut room = size(ClassicList::ActiveFile);
        if lru_type == LruType::Anon {
            room += size(ClassicList::InactiveFile);
        }
        if has_swap {
            room += size(ClassicList::ActiveAnon);
            if lru_type == LruType::File {
                room += size(ClassicList::InactiveAnon);
            }
        }
        room
    }

    /// Non-resident age grows for the lruvec and all its ancestors.
    pub(crate) fn age_nonresident(&mut self, lruvec: LruvecId, pages: u64) {
        let Place { memcg, node } = self.place(lruvec);
        let mut up = Some(memcg);
        while let Some(id) = up {
            let lruvec = self.lruvec_id(id, node);
            self.lruvecs[lruvec.index()].classic.nonresident_age += pages;
            up = self.memcgs.parent(id);
        }
    }

    fn count_refault(&mut self, lruvec: LruvecId, lru_type: LruType, n: u64) {
        let counter =
            by_type(lru_type, Counter::WorkingsetRefaultAnon, Counter::WorkingsetRefaultFile);
        self.count(lruvec, counter, n);
    }

    fn count_activation(&mut self, lruvec: LruvecId, lru_type: LruType, n: u64) {
        let counter =
            by_type(lru_type, Counter::WorkingsetActivateAnon, Counter::WorkingsetActivateFile);
        let Place { memcg, node } = self.place(lruvec);
        let mut up = Some(memcg);
        while let Some(id) = up {
            let lruvec = self.lruvec_id(id, node);
            self.lruvecs[lruvec.index()].activations[lru_type.index()] += n;
            up = self.memcgs.parent(id);
        }
        self.count(lruvec, counter, n);
    }

    fn count_restore(&mut self, lruvec: LruvecId, lru_type: LruType, n: u64) {
        let counter =
            by_type(lru_type, Counter::WorkingsetRestoreAnon, Counter::WorkingsetRestoreFile);
        self.count(lruvec, counter, n);
    }
}

/// Gives the folio back the count its shadow kept.
fn restore_count(flags: &mut Flags, by_count: bool, restores: bool, count: u32) {
    match (by_count, restores) {
        (true, true) => flags.set_refs(REFS_MAX),
        (false, false) => flags.set_refs(count - 1),
        _ => {}
    }
}
