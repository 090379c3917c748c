//! Folios on their way onto the lists. Each processor collects new folios in a batch; where one
//! enters is decided as the batch drains, with the flags it has by then: a read has marked its page
//! in the meantime. Until 7.2 that decides nothing, and folios are listed at once.

use alloc::vec::Vec;

use crate::folio::Bit;
use crate::state::Lru;
use crate::state::parked::Parked;
use crate::types::FolioId;

/// Folios that fill a batch.
const BATCH: usize = 31;

impl Lru {
    /// Says which processor does what follows: new folios wait in its batch.
    #[inline]
    pub fn run_on_cpu(&mut self, cpu: u32) {
        self.parked.cpu = cpu as usize;
    }

    /// Puts a new folio into the batch, which drains when it is full or the folio is large.
    pub(crate) fn park(&mut self, id: FolioId) {
        let Parked { batches, cpu } = &mut self.parked;
        if batches.len() <= *cpu {
            batches.resize_with(*cpu + 1, Vec::new);
        }
        let batch = &mut batches[*cpu];
        batch.push(id);
        let full = batch.len() >= BATCH;
        let flags = &mut self.folios[id].flags;
        flags.set(Bit::PARKED);
        if full || flags.order() > 0 {
            self.drain_batch();
        }
    }

    /// Puts what waits in this processor's batch onto the lists, in the order it came.
    #[inline]
    pub fn drain_batch(&mut self) {
        self.drain(self.parked.cpu);
    }

    /// Puts what waits in any batch onto the lists.
    pub fn drain_parked(&mut self) {
        (0..self.parked.batches.len()).for_each(|cpu| self.drain(cpu));
    }

    fn drain(&mut self, cpu: usize) {
        let Some(batch) = self.parked.batches.get_mut(cpu).filter(|batch| !batch.is_empty()) else {
            return;
        };
        let mut batch = core::mem::take(batch);
        for id in batch.drain(..) {
            self.folios[id].flags.clear(Bit::PARKED);
            self.putback(id);
        }
        self.parked.batches[cpu] = batch;
    }

    /// Takes a folio out of the batch it waits in, if it does.
    pub(crate) fn unpark(&mut self, id: FolioId) {
        if self.folios[id].flags.take(Bit::PARKED) {
            let batches = &mut self.parked.batches;
            batches.iter_mut().for_each(|batch| batch.retain(|&parked| parked != id));
        }
    }
}
