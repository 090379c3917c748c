//! Address spaces come, go, move and run.

use crate::state::Lru;
use crate::state::address_spaces::Mm;
use crate::types::{MemcgId, MmId, NodeId};

impl Lru {
    /// Creates an address space, owned by a task of `memcg`.
    pub fn add_mm(&mut self, memcg: MemcgId) -> MmId {
        let id = MmId(self.mms.0.len() as u32);
        self.mms.0.push(Mm { memcg, ran: u64::MAX });
        self.memcgs[memcg].mms.push(id);
        id
    }

    /// Removes an address space.
    pub fn remove_mm(&mut self, mm: MmId) {
        let memcg = self.mms.0[mm.index()].memcg;
        let Some(at) = self.memcgs[memcg].mms.iter().position(|&m| m == mm) else { return };
        self.memcgs[memcg].mms.remove(at);
        for node in 0..self.config.nr_nodes {
            let lruvec = self.lruvec_id(memcg, NodeId(node));
            for walk in &mut self.lruvecs[lruvec.index()].mg.walks {
                walk.cursor = walk.cursor.map(|c| if c > at { c - 1 } else { c });
                walk.tail = if walk.tail > at { walk.tail - 1 } else { walk.tail };
            }
        }
    }

    /// Moves an address space to the memcg that its owner moved to.
    pub fn move_mm(&mut self, mm: MmId, memcg: MemcgId) {
        self.remove_mm(mm);
        self.mms.0[mm.index()].memcg = memcg;
        self.memcgs[memcg].mms.push(mm);
    }

    /// Records that a task of the address space was switched in on this node.
    #[inline]
    pub fn mm_ran(&mut self, mm: MmId, node: NodeId) {
        self.mms.note_run(mm, node);
    }
}
