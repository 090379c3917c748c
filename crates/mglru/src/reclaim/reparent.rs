//! A removed group hands its folios to its parent (spec §K71.7). Before 7.1 they stay with the
//! group, which lingers until the last of them is gone.

use crate::folio::{Bit, List};
use crate::mglru::generations::Bump;
use crate::state::Lru;
use crate::state::evictable::Evictable;
use crate::state::lruvec::ClassicList;
use crate::types::{Gen, LruType, LruvecId, MAX_NR_ZONES, MemcgId, Nanos, NodeId, Zone};

impl Lru {
    /// Removes a group. Where that is the rule its folios become its parent's at once, and nothing
    /// of it is left; else they stay until they are evicted. True when they moved: the host's
    /// counts then follow.
    pub fn remove_memcg(&mut self, memcg: MemcgId, now: Nanos) -> bool {
        self.offline_memcg(memcg);
        let Some(parent) = self.memcgs.parent(memcg).filter(|_| self.config.reparents()) else {
            return false;
        };
        for node in (0..self.config.nr_nodes).map(NodeId) {
            let [from, to] = [memcg, parent].map(|memcg| self.lruvec_id(memcg, node));
            if self.config.is_mglru() {
                self.open_all_generations(to, now);
                self.move_generations(from, to);
            } else {
                self.move_classic(from, to);
            }
            self.move_unevictable(from, to);
            self.change_owner(from, to);
        }
        let (dirty, writeback) = self.memcg_write(memcg);
        (self.memcgs[memcg].file_dirty, self.memcgs[memcg].writeback) = (0, 0);
        self.memcgs[parent].file_dirty += dirty;
        self.memcgs[parent].writeback += writeback;
        self.release_memcg(memcg);
        true
    }

    /// Forgets a removed group of which nothing is left: reclaim never visits it again.
    pub fn release_if_empty(&mut self, memcg: MemcgId) -> bool {
        let gone = !self.memcgs[memcg].online && !self.memcgs[memcg].released;
        let empty = gone && self.has_no_folios(memcg);
        if empty {
            self.release_memcg(memcg);
        }
        empty
    }

    /// Opens generations without a walk until both types have as many as they may.
    fn open_all_generations(&mut self, id: LruvecId, now: Nanos) {
        loop {
            let mg = &self.lruvecs[id.index()].mg;
            let Some(short) = LruType::ALL.into_iter().find(|&t| !mg.is_full(t)) else { return };
            let types = if mg.span.one_clock { Evictable::Both } else { Evictable::only(short) };
            let (clock, seq) = (mg.clock(types), mg.now(types));
            self.skip_walk((id, clock), seq);
            while matches!(self.bump(id, seq, types, now), Bump::More { .. }) {}
        }
    }

    /// Each slot joins the cold end of the parent's slot of the same number, whatever age that is.
    fn move_generations(&mut self, from: LruvecId, to: LruvecId) {
        let slots = self.lruvecs[from.index()].mg.span.most as u8;
        for slot in (0..slots).map(Gen) {
            for lru_type in LruType::ALL {
                for zone in (0..MAX_NR_ZONES as u8).map(Zone) {
                    self.move_slot([from, to], slot, lru_type, zone);
                }
            }
        }
    }

    fn move_slot(&mut self, ids: [LruvecId; 2], slot: Gen, lru_type: LruType, zone: Zone) {
        let (g, t, z) = (slot.index(), lru_type.index(), zone.index());
        let [source, target] = ids.map(|id| self.lruvecs[id.index()].mg.lists[g][t][z]);
        self.splice_all(source, target);
        let [from, to] = ids.map(LruvecId::index);
        let n = core::mem::take(&mut self.lruvecs[from].mg.pages[g][t][z]);
        self.lruvecs[to].mg.pages[g][t][z] += n;
        let was_active = self.lruvecs[from].mg.is_active(slot, lru_type);
        let inactive = &mut self.nodes[self.lruvecs[to].node.index()].inactive_pages[t];
        match (was_active, self.lruvecs[to].mg.is_active(slot, lru_type)) {
            (true, false) => *inactive += n.max(0) as u64,
            (false, true) => *inactive -= n.max(0) as u64,
            _ => {}
        }
    }

    fn move_classic(&mut self, from: LruvecId, to: LruvecId) {
        let [from, to] = [from, to].map(LruvecId::index);
        for list in ClassicList::ALL.map(ClassicList::index) {
            let [source, target] = [from, to].map(|at| self.lruvecs[at].classic.lists[list]);
            self.splice_all(source, target);
            for zone in 0..MAX_NR_ZONES {
                let n = core::mem::take(&mut self.lruvecs[from].classic.pages[list][zone]);
                self.lruvecs[to].classic.pages[list][zone] += n;
            }
        }
        let costs = core::mem::take(&mut self.lruvecs[from].classic.cost);
        let sums = self.lruvecs[to].classic.cost.iter_mut().zip(costs);
        sums.for_each(|(sum, cost)| *sum += cost);
    }

    fn move_unevictable(&mut self, from: LruvecId, to: LruvecId) {
        let [from, to] = [from, to].map(LruvecId::index);
        let [source, target] = [from, to].map(|at| self.lruvecs[at].unevictable);
        self.splice_all(source, target);
        self.lruvecs[to].nr_unevictable += core::mem::take(&mut self.lruvecs[from].nr_unevictable);
    }

    /// Moves a whole list to the tail of another.
    fn splice_all(&mut self, source: List, target: List) {
        let Some(near) = self.folios.tail(source) else { return };
        let far = self.folios.iter_from_tail(source).last().unwrap_or(near);
        self.folios.splice(near, far, target, true);
    }

    /// Folios on no list just now follow too: their holders put them back to the parent.
    fn change_owner(&mut self, from: LruvecId, to: LruvecId) {
        let [old, new] = [from, to].map(LruvecId::index);
        let (lruvecs, folios) = (&mut self.lruvecs, &mut self.folios);
        for folio in folios.iter_mut().filter(|folio| folio.lruvec == from) {
            folio.lruvec = to;
            if folio.flags.has(Bit::ISOLATED) {
                let (t, n) = (folio.lru_type().index(), folio.pages());
                lruvecs[old].classic.isolated[t] -= n;
                lruvecs[new].classic.isolated[t] += n;
            }
        }
    }
}
