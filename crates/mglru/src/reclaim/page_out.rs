//! Reclaim of folios that somebody names one by one: `madvise(MADV_PAGEOUT)`.

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::batch::process::Manner;
use crate::folio::Bit;
use crate::host::Host;
use crate::state::Lru;
use crate::types::{FolioId, LruvecId, Reclaimer};

impl Lru {
    /// Reclaims these folios whatever their accesses say, and puts the others back. Neither scans
    /// nor steals are counted: nobody looked for victims. Returns the pages freed.
    pub fn page_out(&mut self, folios: &[FolioId], host: &mut impl Host) -> u64 {
        self.drain_parked();
        let listed = |id: &&FolioId| {
            let flags = self.folios[**id].flags;
            flags.has(Bit::LRU) && !flags.has(Bit::UNEVICTABLE)
        };
        let listed: Vec<FolioId> = folios.iter().filter(listed).copied().collect();
        let one_lruvec =
            |a: &FolioId, b: &FolioId| self.folios[*a].lruvec == self.folios[*b].lruvec;
        let batches: Vec<Vec<FolioId>> = listed.chunk_by(one_lruvec).map(<[_]>::to_vec).collect();
        batches.into_iter().map(|batch| self.page_out_batch(batch, host)).sum()
    }

    fn page_out_batch(&mut self, mut batch: Vec<FolioId>, host: &mut impl Host) -> u64 {
        for &id in &batch {
            self.remove(id);
            let flags = &mut self.folios[id].flags;
            flags.clear(Bit::ACTIVE);
            flags.clear(Bit::REFERENCED);
        }
        let lruvec: LruvecId = self.folios[batch[0]].lruvec;
        let mut ctl = ScanControl::new(Reclaimer::Direct, None, batch.len() as u64);
        ctl.is_counted = false;
        let manner = Manner { lruvec, walking: false, ignore_references: true };
        let done = self.process(&mut ctl, &mut batch, manner, host);
        batch.into_iter().chain(done.waiting).for_each(|id| self.putback(id));
        done.freed
    }
}
