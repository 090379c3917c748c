//! Makes the shadow that an evicted page leaves, and reads it when the page returns (spec §6).
//!
//! MGLRU stores the generation it was evicted from and its access count; a refault within the live
//! window of generations feeds the controller. The classic LRU stores the non-resident age and
//! compares the refault distance with the room there would have been. Either measure can be given
//! to either LRU (`workingset`): the multi-gen LRU then stores its lruvec's non-resident age, the
//! classic LRU the turn of the inactive list that took the page.

use crate::config::RefsModel;
use crate::folio::{Bit, Flags, REFS_MAX, REFS_WIDTH};
use crate::shadow::{Place, Shadow, TOKEN_MASK, Unpacked};
use crate::state::Lru;
use crate::state::lruvec::{ClassicList, Lruvec};
use crate::stats::{Counter, by_type};
use crate::tiers;
use crate::types::{FolioId, LruType, LruvecId, MemcgId};

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
        let went = if self.config.refaults_by_distance() {
            let age = lruvec.classic.nonresident_age;
            self.age_nonresident(folio.lruvec, folio.pages());
            age
        } else {
            lruvec.mg.min_seq[lru_type.index()].0
        };
        let Place { memcg, node } = self.place(folio.lruvec);
        let token = went << REFS_WIDTH | u64::from(count.saturating_sub(1));
        Shadow::pack(Unpacked { token, memcg, node, bit })
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
        if !self.is_recent(folio.lruvec, lru_type, was.token >> REFS_WIDTH) {
            return;
        }
        let mg = &mut self.lruvecs[folio.lruvec.index()].mg;
        let low = (was.token as u32) & REFS_MAX;
        let count = low + u32::from(model == RefsModel::K614 || was.bit);
        if self.config.mechanisms.refault_controller {
            let tier = self.config.cap_tier(tiers::tier_of(count, was.bit, model));
            mg.controller.refaulted[t][tier.index()] += n;
        }
        self.mark_refaulted(id, count, was.bit, in_fault);
    }

    /// Would a little more room have kept a folio of the multi-gen LRU that went at `went`?
    fn is_recent(&self, id: LruvecId, lru_type: LruType, went: u64) -> bool {
        let Lruvec { mg, classic, .. } = &self.lruvecs[id.index()];
        let t = lru_type.index();
        if self.config.refaults_by_distance() {
            let has_swap = self.memcgs[self.place(id).memcg].has_swap;
            let size = |list: ClassicList| mg.reported(list.lru_type(), list.is_active());
            let distance = classic.nonresident_age.wrapping_sub(went) & SEQ_MASK;
            return distance <= room(lru_type, has_swap, size);
        }
        match self.config.refs_model {
            RefsModel::K612 => went == mg.min_seq[t].0 & SEQ_MASK,
            RefsModel::K614 => (mg.max_seq[t].0.wrapping_sub(went) & SEQ_MASK) < mg.span.most,
        }
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
        let bit = folio.flags.has(Bit::WORKINGSET);
        let Place { memcg, node } = self.place(folio.lruvec);
        if !self.config.refaults_by_distance() {
            let token = self.lruvecs[folio.lruvec.index()].classic.turn[folio.lru_type().index()];
            return Shadow::pack(Unpacked { token, memcg, node, bit });
        }
        let lruvec = self.lruvec_id(target, node);
        let token = self.lruvecs[lruvec.index()].classic.nonresident_age;
        self.age_nonresident(lruvec, folio.pages());
        Shadow::pack(Unpacked { token, memcg: target, node, bit })
    }

    fn classic_refault(&mut self, id: FolioId, shadow: Shadow) {
        let folio = self.folios[id];
        let (lru_type, n) = (folio.lru_type(), folio.pages());
        self.count_refault(folio.lruvec, lru_type, n);
        let was = shadow.unpack();
        let Some(evictor) = self.lruvec_of(was.memcg, was.node) else { return };
        if self.config.keeps_one_list() || !self.was_close(evictor, lru_type, was.token) {
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

    /// Would a little more room have kept a folio of the classic LRU that went at `token`?
    fn was_close(&self, evictor: LruvecId, lru_type: LruType, token: u64) -> bool {
        let classic = &self.lruvecs[evictor.index()].classic;
        if !self.config.refaults_by_distance() {
            return classic.turn[lru_type.index()].wrapping_sub(token) & TOKEN_MASK <= 1;
        }
        let Place { memcg, node } = self.place(evictor);
        let distance = classic.nonresident_age.wrapping_sub(token) & TOKEN_MASK;
        let size = |list| self.subtree_size(memcg, node, list);
        distance <= room(lru_type, self.memcgs[memcg].has_swap, size)
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

/// Pages a refaulting folio competes with: had it come back within that distance, it would have
/// been activated in time.
fn room(lru_type: LruType, has_swap: bool, size: impl Fn(ClassicList) -> u64) -> u64 {
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

/// Gives the folio back the count its shadow kept.
fn restore_count(flags: &mut Flags, by_count: bool, restores: bool, count: u32) {
    match (by_count, restores) {
        (true, true) => flags.set_refs(REFS_MAX),
        (false, false) => flags.set_refs(count - 1),
        _ => {}
    }
}
