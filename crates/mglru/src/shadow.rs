//! What an evicted page leaves in its slot: 63 bits that say when and from where it went (spec §6).

use crate::types::{MemcgId, NodeId};

const NODE_BITS: u32 = 10;
const MEMCG_BITS: u32 = 16;
const TOKEN_BITS: u32 = 63 - 1 - NODE_BITS - MEMCG_BITS;
pub(crate) const TOKEN_MASK: u64 = (1 << TOKEN_BITS) - 1;

/// Holds the token that an evicted page leaves in its slot: 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shadow(pub u64);

/// Bits of a shadow that are its own: the low part of the token, and the bit.
const OWN_TOKEN_BITS: u32 = u16::BITS - 1;
const OWNER_BITS: u32 = 1 + NODE_BITS + MEMCG_BITS;
const OWN_TOKEN_MASK: u64 = ((1 << OWN_TOKEN_BITS) - 1) << OWNER_BITS;

/// Holds a shadow's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) token: u64,
    pub(crate) memcg: MemcgId,
    pub(crate) node: NodeId,
    pub(crate) bit: bool,
}

impl Shadow {
    /// Splits a shadow into the part that it shares with others of its lruvec and time, and its own
    /// part: a host that keeps many can keep the shared part once.
    pub fn split(self) -> (u64, u16) {
        let own = (self.0 & OWN_TOKEN_MASK) >> (OWNER_BITS - 1) | self.0 & 1;
        (self.0 & !(OWN_TOKEN_MASK | 1), own as u16)
    }

    /// Joins the parts of a shadow that [`Self::split`] took apart.
    pub fn join(common: u64, own: u16) -> Self {
        let own = u64::from(own);
        Self(common | (own >> 1) << OWNER_BITS | own & 1)
    }

    pub(crate) fn pack(unpacked: Unpacked) -> Self {
        let Unpacked { token, memcg, node, bit } = unpacked;
        let owner = u64::from(memcg.0) & ((1 << MEMCG_BITS) - 1);
        let fields = (token & TOKEN_MASK) << MEMCG_BITS | owner;
        Self((fields << NODE_BITS | u64::from(node.0)) << 1 | u64::from(bit))
    }

    pub(crate) fn unpack(self) -> Unpacked {
        let fields = self.0 >> 1;
        Unpacked {
            token: fields >> (MEMCG_BITS + NODE_BITS),
            memcg: MemcgId((fields >> NODE_BITS) as u32 & ((1 << MEMCG_BITS) - 1)),
            node: NodeId((fields & ((1 << NODE_BITS) - 1)) as u8),
            bit: self.0 & 1 == 1,
        }
    }
}

/// Names the pair an lruvec belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) memcg: MemcgId,
    pub(crate) node: NodeId,
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
