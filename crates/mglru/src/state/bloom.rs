//! Bloom filters of page tables worth a visit (spec §2.4, §4.2): 2^15 bits, two hashes, one filter
//! for the generation being walked for and one being filled for the next.

use alloc::boxed::Box;

use crate::host::Va;
use crate::types::{MmId, Seq};

const SHIFT: u32 = 15;
const WORDS: usize = (1 << SHIFT) / 64;

/// Two filters, used in turn. A filter that was never filled counts as full.
#[derive(Clone, Debug, Default)]
pub(crate) struct BloomPair([Option<Box<[u64; WORDS]>>; 2]);

impl BloomPair {
    /// Empties the filter of this generation.
    pub(crate) fn reset(&mut self, seq: Seq) {
        self.slot(seq).get_or_insert_with(|| Box::new([0; WORDS])).fill(0);
    }

    /// Records a table as worth a visit in generation `seq`.
    pub(crate) fn insert(&mut self, seq: Seq, mm: MmId, at: Va) {
        if let Some(filter) = self.slot(seq) {
            for bit in bits(mm, at) {
                filter[bit / 64] |= 1 << (bit % 64);
            }
        }
    }

    /// May the table be worth a visit?
    pub(crate) fn may_contain(&self, seq: Seq, mm: MmId, at: Va) -> bool {
        let Some(filter) = &self.0[(seq.0 % 2) as usize] else { return true };
        bits(mm, at).iter().all(|&bit| filter[bit / 64] >> (bit % 64) & 1 == 1)
    }

    fn slot(&mut self, seq: Seq) -> &mut Option<Box<[u64; WORDS]>> {
        &mut self.0[(seq.0 % 2) as usize]
    }
}

/// Two bit numbers from one hash.
fn bits(mm: MmId, at: Va) -> [usize; 2] {
    let key = ((at.0 >> 12) ^ (u64::from(mm.0) << 40)).wrapping_mul(0x61C8_8646_80B5_83EB);
    let hash = (key ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - 2 * SHIFT);
    [(hash & ((1 << SHIFT) - 1)) as usize, (hash >> SHIFT) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_filter_counts_as_a_hit() {
        assert!(BloomPair::default().may_contain(Seq(4), MmId(0), Va(0)));
    }

    #[test]
    fn what_was_inserted_is_found_and_generations_do_not_mix() {
        let mut pair = BloomPair::default();
        pair.reset(Seq(4));
        pair.reset(Seq(5));
        pair.insert(Seq(4), MmId(1), Va(2 << 20));
        assert!(pair.may_contain(Seq(4), MmId(1), Va(2 << 20)));
        assert!(!pair.may_contain(Seq(5), MmId(1), Va(2 << 20)));
        assert!(!pair.may_contain(Seq(4), MmId(2), Va(2 << 20)));
    }

    #[test]
    fn false_positives_are_about_one_in_five_at_ten_thousand() {
        let mut pair = BloomPair::default();
        pair.reset(Seq(0));
        for i in 0..10_000 {
            pair.insert(Seq(0), MmId(0), Va(i << 21));
        }
        let hits = (10_000..20_000u64).filter(|&i| pair.may_contain(Seq(0), MmId(0), Va(i << 21)));
        assert!((1_500..2_700).contains(&hits.count()));
    }
}
