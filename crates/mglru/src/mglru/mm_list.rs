//! Lists address spaces and shares them among walkers (spec §2.3, §4.2): every concurrent walker
//! gets a different one, exactly one walker learns that the iteration is over, and an address space
//! that did not run on a node since its last walk there is skipped. Invariant I12.

use crate::state::Lru;
use crate::types::{LruvecId, MmId, Seq};

/// Answers a walker that asks for an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextMm {
    /// Walks this address space; `force`: whatever the filters say.
    Walk {
        /// Which.
        mm: MmId,
        /// New since the last iteration.
        force: bool,
    },
    /// Ends the iteration. `won`: this caller ended it and makes the new generation.
    Over {
        /// It is this caller's turn.
        won: bool,
    },
}

impl Lru {
    /// The next address space to walk for generation `seq` of this lruvec, by one of its clocks.
    pub(crate) fn next_mm(
        &mut self,
        (id, clock): (LruvecId, usize),
        seq: Seq,
        force: bool,
    ) -> NextMm {
        let place = self.place(id);
        let list = &self.memcgs[place.memcg].mms;
        let walk = &mut self.lruvecs[id.index()].mg.walks[clock];
        if seq <= walk.seq {
            return NextMm::Over { won: false };
        }
        let mut at = match walk.cursor {
            Some(at) => at,
            None => {
                walk.filters.reset(seq.plus(1));
                0
            }
        };
        while at < list.len() {
            let (mm, is_new) = (list[at], at >= walk.tail);
            at += 1;
            let ran = self.mms.take_ran(mm, place.node, clock);
            if ran || is_new || force {
                walk.cursor = Some(at);
                return NextMm::Walk { mm, force: force || is_new };
            }
        }
        walk.cursor = None;
        walk.tail = list.len();
        walk.seq = walk.seq.plus(1);
        NextMm::Over { won: true }
    }

    /// No walk is made for `seq`: the iteration counts as over (spec §4.2).
    pub(crate) fn skip_walk(&mut self, (id, clock): (LruvecId, usize), seq: Seq) -> bool {
        let memcg = self.place(id).memcg;
        let nr_mms = self.memcgs[memcg].mms.len();
        let walk = &mut self.lruvecs[id.index()].mg.walks[clock];
        if seq <= walk.seq {
            return false;
        }
        walk.cursor = None;
        walk.tail = nr_mms;
        walk.seq = walk.seq.plus(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::config::Config;
    use crate::types::{MemcgId, NodeId};

    fn lru() -> (Lru, LruvecId, Vec<MmId>) {
        let mut lru = Lru::new(Config::default(), 0);
        let memcg = lru.add_memcg(MemcgId::ROOT, 0);
        let mms = (0..3).map(|_| lru.add_mm(memcg)).collect();
        let id = lru.lruvec_id(memcg, NodeId(0));
        (lru, id, mms)
    }

    #[test]
    fn walkers_share_the_list_and_one_wins() {
        let (mut lru, id, mms) = lru();
        let seq = Seq(3);
        for &mm in &mms {
            assert_eq!(lru.next_mm((id, 0), seq, false), NextMm::Walk { mm, force: true });
        }
        assert_eq!(lru.next_mm((id, 0), seq, false), NextMm::Over { won: true });
        assert_eq!(lru.next_mm((id, 0), seq, false), NextMm::Over { won: false });
    }

    #[test]
    fn idle_address_spaces_are_skipped_next_time() {
        let (mut lru, id, mms) = lru();
        while lru.next_mm((id, 0), Seq(3), false) != (NextMm::Over { won: true }) {}
        lru.mm_ran(mms[1], NodeId(0));
        let new = lru.add_mm(MemcgId(1));
        let seq = Seq(4);
        assert_eq!(lru.next_mm((id, 0), seq, false), NextMm::Walk { mm: mms[1], force: false });
        assert_eq!(lru.next_mm((id, 0), seq, false), NextMm::Walk { mm: new, force: true });
        assert_eq!(lru.next_mm((id, 0), seq, false), NextMm::Over { won: true });
    }

    #[test]
    fn removal_in_the_middle_of_an_iteration_loses_nobody() {
        let (mut lru, id, mms) = lru();
        assert_eq!(lru.next_mm((id, 0), Seq(3), false), NextMm::Walk { mm: mms[0], force: true });
        lru.remove_mm(mms[0]);
        assert_eq!(lru.next_mm((id, 0), Seq(3), false), NextMm::Walk { mm: mms[1], force: true });
        lru.remove_mm(mms[2]);
        assert_eq!(lru.next_mm((id, 0), Seq(3), false), NextMm::Over { won: true });
    }
}
