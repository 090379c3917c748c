//! Address spaces, and on which nodes each ran since it was walked there (spec §2.3).

use alloc::vec::Vec;

use crate::types::{MemcgId, MmId, NodeId};

/// An address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mm {
    pub(crate) memcg: MemcgId,
    /// Bit `node % 32` of the half that a clock has: ran there since that clock's last walk.
    pub(crate) ran: u64,
}

/// All address spaces ever added; ids are never reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mms(pub(crate) Vec<Mm>);

impl Mms {
    /// Notes that the address space runs on a node.
    #[inline]
    pub(crate) fn note_run(&mut self, mm: MmId, node: NodeId) {
        self.0[mm.index()].ran |= node_bit(node, 0) | node_bit(node, 1);
    }

    /// Tells whether it ran there since this was last asked for the same clock.
    pub(crate) fn take_ran(&mut self, mm: MmId, node: NodeId, clock: usize) -> bool {
        let ran = &mut self.0[mm.index()].ran;
        let was = *ran & node_bit(node, clock) != 0;
        *ran &= !node_bit(node, clock);
        was
    }
}

fn node_bit(node: NodeId, clock: usize) -> u64 {
    1 << (usize::from(node.0 % 32) + 32 * clock)
}
