//! Waiting for a folio, and the time lost by it.

use mglru::folio::Bit;
use mglru::types::FolioId;

use crate::machine::Machine;
use crate::task::Flow;

impl Machine {
    /// A folio's data has come.
    pub(crate) fn unlock(&mut self, folio: FolioId) {
        self.lru.folios_mut()[folio].flags.clear(Bit::LOCKED);
        self.wake_waiters(folio);
        self.reap_orphan(folio);
    }

    /// Wakes the tasks that wait for the folio.
    pub(crate) fn wake_waiters(&mut self, folio: FolioId) {
        if !self.lru.folios_mut()[folio].flags.take(Bit::HOST) {
            return;
        }
        let mut woken = std::mem::take(&mut self.woken);
        self.world.waiters.take(folio, &mut woken);
        woken.drain(..).for_each(|task| self.wake(task as usize));
        self.woken = woken;
    }

    /// The task waits for the folio to be unlocked or written.
    pub(crate) fn wait_for(&mut self, t: usize, folio: FolioId) {
        self.lru.folios_mut()[folio].flags.set(Bit::HOST);
        self.world.waiters.add(folio, t as u32);
    }

    /// The task waits for the folio's data; for a page of the working set that is a stall.
    pub(crate) fn wait_for_data(&mut self, t: usize, folio: FolioId) -> Flow {
        if self.lru.folios()[folio].flags.has(Bit::WORKINGSET) {
            self.begin_stall(t);
        }
        self.wait_for(t, folio);
        Flow::Wait
    }

    /// The task begins to lose time to memory pressure.
    pub(crate) fn begin_stall(&mut self, t: usize) {
        if !std::mem::replace(&mut self.tasks[t].stalled, true) {
            self.world.stalls.begin(self.tasks[t].memcg, self.world.now);
        }
    }

    /// It goes on.
    #[inline]
    pub(crate) fn end_stall(&mut self, t: usize) {
        if std::mem::replace(&mut self.tasks[t].stalled, false) {
            self.world.stalls.end(self.tasks[t].memcg, self.world.now);
        }
    }
}
