//! Compares what can be observed of both.

use mglru::folio::Bit;
use mglru::{Counter, FolioId};

use super::Pair;
use crate::naive::{Counts, Key, Page};

impl Pair {
    /// Everything observable must be equal.
    pub fn compare(&mut self, when: &str) {
        let own = self.world.generations(self.group);
        assert_eq!(own, self.naive.generations(), "{when}: generations");
        let freed: Vec<Key> = self.naive.freed.iter().map(|f| f.0).collect();
        assert_eq!(self.world.freed_keys(), freed, "{when}: evictions");
        let past = self.world.toy.freed.drain(..).zip(self.naive.freed.drain(..));
        for (core, (key, naive)) in past {
            self.shadows.push((self.kinds[&key], core.shadow, naive));
        }
        for (&key, page) in &self.naive.pages {
            let id = self.ids[&key];
            assert_eq!(self.position(id), position(page, self.naive.most()), "{when}: folio {key}");
        }
        assert_eq!(self.counts(), self.naive.counts, "{when}: counters");
    }

    fn position(&self, id: FolioId) -> Position {
        let flags = self.world.lru.folios()[id].flags;
        let bits = BITS.map(|bit| flags.has(bit));
        (flags.generation().map(|g| usize::from(g.0)), flags.refs(), bits)
    }

    fn counts(&self) -> Counts {
        let c = |counter| self.world.lru.memcg_counters(self.group)[counter];
        use Counter as C;
        Counts {
            scanned: c(C::PgscanAnon) + c(C::PgscanFile),
            stolen: c(C::PgstealAnon) + c(C::PgstealFile),
            refill: c(C::Pgrefill),
            skipped: c(C::PgscanSkip),
            rotated: c(C::Pgrotated),
            immediate: c(C::NrVmscanImmediateReclaim),
            flusher: c(C::FlusherWakeups),
            aged: c(C::AgingPasses),
            refaults: [c(C::WorkingsetRefaultAnon), c(C::WorkingsetRefaultFile)],
            activations: [c(C::WorkingsetActivateAnon), c(C::WorkingsetActivateFile)],
            restores: [c(C::WorkingsetRestoreAnon), c(C::WorkingsetRestoreFile)],
            zero_progress: self.world.counter(C::ZeroProgressReclaims),
        }
    }
}

/// Generation slot, refs field, flags.
type Position = (Option<usize>, u32, [bool; 7]);

const BITS: [Bit; 7] = [
    Bit::REFERENCED,
    Bit::WORKINGSET,
    Bit::ACTIVE,
    Bit::DIRTY,
    Bit::WRITEBACK,
    Bit::RECLAIM,
    Bit::SWAPCACHE,
];

fn position(page: &Page, most: usize) -> Position {
    let bits = [
        page.referenced,
        page.workingset,
        page.active,
        page.dirty,
        page.writeback,
        page.reclaim,
        page.swapcache,
    ];
    (page.seq.map(|seq| seq % most), page.refs, bits)
}
