//! Makes the shadow that an evicted page leaves, and reads it when the page returns (spec §6).
//!
//! MGLRU stores the generation it was evicted from and its access count; a refault within the live
//! window of generations feeds the controller. The classic LRU stores the non-resident age and
//! compares the refault distance with the room there would have been.

use crate::config::RefsModel;
use crate::folio::{Bit, Flags, REFS_MAX, REFS_WIDTH};
use crate::lru::Lru;
use crate::lruvec::ClassicList;
use crate::stats::{Counter, by_type};
use crate::tiers;
use crate::types::{FolioId, LruType, LruvecId, MAX_NR_GENS, MemcgId, NodeId};

const NODE_BITS: u32 = 10;
const MEMCG_BITS: u32 = 16;
const TOKEN_BITS: u32 = 63 - 1 - NODE_BITS - MEMCG_BITS;
const TOKEN_MASK: u64 = (1 << TOKEN_BITS) - 1;
const SEQ_MASK: u64 = TOKEN_MASK >> REFS_WIDTH;

/// Cost of a workingset refault per page, in the units of reclaim cost (spec §6, §8).
const REFAULT_COST: u64 = 32;

/// The token an evicted page leaves in its slot: 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shadow(pub u64);

/// Bits of a shadow that are its own: the low part of the token, and the bit.
const OWN_TOKEN_BITS: u32 = u16::BITS - 1;
const OWNER_BITS: u32 = 1 + NODE_BITS + MEMCG_BITS;
const OWN_TOKEN_MASK: u64 = ((1 << OWN_TOKEN_BITS) - 1) << OWNER_BITS;

/// A shadow's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unpacked {
    token: u64,
    memcg: MemcgId,
    node: NodeId,
    bit: bool,
}

impl Shadow {
    /// Splits a shadow into the part that it shares with others of its lruvec and time, and its own
    /// part: a host that keeps many can keep the shared part once.
    pub fn split(self) -> (u64, u16) {
        let own = (self.0 & OWN_TOKEN_MASK) >> (OWNER_BITS - 1) | self.0 & 1;
        (self.0 & !(OWN_TOKEN_MASK | 1), own as u16)
    }

    /// The shadow that [`Self::split`] took apart.
    pub fn join(common: u64, own: u16) -> Self {
        let own = u64::from(own);
        Self(common | (own >> 1) << OWNER_BITS | own & 1)
    }

    fn pack(unpacked: Unpacked) -> Self {
        let Unpacked { token, memcg, node, bit } = unpacked;
        let owner = u64::from(memcg.0) & ((1 << MEMCG_BITS) - 1);
        let fields = (token & TOKEN_MASK) << MEMCG_BITS | owner;
        Self((fields << NODE_BITS | u64::from(node.0)) << 1 | u64::from(bit))
    }

    fn unpack(self) -> Unpacked {
        let fields = self.0 >> 1;
        Unpacked {
            token: fields >> (MEMCG_BITS + NODE_BITS),
            memcg: MemcgId((fields >> NODE_BITS) as u32 & ((1 << MEMCG_BITS) - 1)),
            node: NodeId((fields & ((1 << NODE_BITS) - 1)) as u8),
            bit: self.0 & 1 == 1,
        }
    }
}

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
        let k612 = self.config.is_k612();
        let activates = k612 || in_fault && (bit || !self.config.patches.prefault);
        let flags = &mut self.folios[id].flags;
        let restores = if k612 { in_fault || count >= REFS_MAX } else { bit };
        if restores {
            flags.set(Bit::WORKINGSET);
        }
        restore_count(flags, k612, restores, count);
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
        if self.config.ignores_accesses() || distance > self.room(evictor, lru_type) {
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

/// The pair an lruvec belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) memcg: MemcgId,
    pub(crate) node: NodeId,
}

/// Gives the folio back the count its shadow kept.
fn restore_count(flags: &mut Flags, k612: bool, restores: bool, count: u32) {
    match (k612, restores) {
        (true, true) => flags.set_refs(REFS_MAX),
        (false, false) => flags.set_refs(count - 1),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_keeps_its_fields() {
        for token in [0, 5, TOKEN_MASK] {
            for bit in [false, true] {
                let memcg = MemcgId(65_535);
                let unpacked = Unpacked { token, memcg, node: NodeId(255), bit };
                let shadow = Shadow::pack(unpacked);
                assert_eq!(shadow.unpack(), unpacked);
                assert_eq!(shadow.0 >> 63, 0, "63 bits");
                let (common, own) = shadow.split();
                assert_eq!(Shadow::join(common, own), shadow);
            }
        }
    }

    #[test]
    fn shadows_of_one_lruvec_and_time_have_their_parts_in_common() {
        let shadow = |token, bit| {
            let (memcg, node) = (MemcgId(7), NodeId(1));
            Shadow::pack(Unpacked { token, memcg, node, bit }).split()
        };
        let far = 1 << OWN_TOKEN_BITS;
        assert_eq!(shadow(5 * far, false).0, shadow(6 * far - 1, true).0);
        assert_ne!(shadow(5 * far, false).0, shadow(6 * far, false).0);
        assert_ne!(shadow(3, false).1, shadow(3, true).1);
    }
}
