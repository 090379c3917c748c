//! Mapped memory as callers hold it. A hit is a plain load; a miss waits for its page.
//!
//! A page that cannot be read back (an I/O error, or no room and nothing to reclaim) is SIGBUS
//! for a thread that touches it, as with any mapping.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc;

use crate::arena::{Access, Arena, Backing, Event, FaultStat};
use crate::error::PagerError;
use crate::policy::{Policy, Shared};
use crate::service::Service;
use crate::sys::PAGE;

/// Says how a mapping or a part of it will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Neighbours of a missing page are read with it, those of a swapped one where misses follow
    /// each other. The whole mapping.
    Normal,
    /// Reads no neighbours. Applies to the whole mapping.
    Random,
    /// Reads more ahead; accesses do not protect from eviction. Applies to the whole mapping.
    Sequential,
    /// Makes pages resident before the call returns, as far as there is room.
    PopulateRead,
    /// Puts pages first in line for eviction.
    Cold,
    /// Writes pages back and evicts them now, as far as possible.
    PageOut,
}

/// An arena and what keeps it served.
pub(crate) struct Mapped {
    service: Service,
    len: usize,
}

impl Mapped {
    pub(crate) fn new(service: Service, len: usize) -> Self {
        Self { service, len }
    }

    fn arena(&self) -> &Arc<Arena> {
        self.service.arena()
    }

    fn policy(&self) -> &Shared {
        self.service.running().shared()
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.arena().view().as_ptr()
    }

    /// The pages that hold a range of bytes.
    fn pages(&self, range: &Range<usize>) -> Result<(u32, u32), PagerError> {
        if range.start > range.end || range.end > self.len {
            let takes = format!("the {} bytes of the mapping", self.len);
            return Err(PagerError::OutOfRange { what: "range", got: range.end as u64, takes });
        }
        let first = range.start / PAGE;
        Ok((first as u32, (range.end.div_ceil(PAGE).max(first) - first) as u32))
    }

    pub(crate) fn write_back(&self, range: &Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        if self.arena().is_anon() {
            return Ok(());
        }
        let (reply, answer) = mpsc::sync_channel(1);
        let ask = move |policy: &mut Policy| {
            policy.request_flush(id, first, n, Some(reply));
        };
        self.policy().send(Box::new(ask));
        answer.recv().map_err(|_| PagerError::Stopped)?;
        self.service.owner().take_error().map_or(Ok(()), |error| Err(error.into()))
    }

    pub(crate) fn flush(&self, range: &Range<usize>) -> Result<(), PagerError> {
        self.write_back(range)?;
        if let Backing::Store(store) = self.arena().backing() {
            store.sync()?;
        }
        Ok(())
    }

    pub(crate) fn advise(&self, advice: Advice, range: &Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        match advice {
            Advice::Normal => self.service.owner().set_access(Access::Normal),
            Advice::Random => self.service.owner().set_access(Access::Random),
            Advice::Sequential => self.service.owner().set_access(Access::Sequential),
            Advice::PopulateRead => self.service.populate(first, n)?,
            Advice::Cold => {
                self.policy().call(move |policy| policy.deactivate(id, first, n))?;
            }
            Advice::PageOut => {
                self.write_back(range)?;
                self.policy().call(move |policy| policy.page_out(id, first, n))?;
            }
        }
        Ok(())
    }

    pub(crate) fn pin(&self, range: &Range<usize>) -> Result<Pin<'_>, PagerError> {
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        self.policy().call(move |policy| policy.pin(id, first, n))?;
        let pin = Pin { mapped: self, first, n };
        self.service.populate(first, n)?;
        Ok(pin)
    }

    pub(crate) fn unpin(&self, range: &Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        self.policy().call(move |policy| policy.unpin(id, first, n))
    }

    pub(crate) fn discard(&self, range: &Range<usize>) -> Result<(), PagerError> {
        let whole = range.start % PAGE == 0 && (range.end % PAGE == 0 || range.end == self.len);
        if !whole {
            let takes = format!("multiples of {PAGE}");
            return Err(PagerError::OutOfRange { what: "range", got: range.start as u64, takes });
        }
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        self.policy().call(move |policy| policy.discard(id, first, n))?
    }

    pub(crate) fn change_store(
        &self,
        range: &Range<usize>,
        change: impl FnOnce() -> Range<usize>,
    ) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        let (pages, same) = (first..first + n, first..first + n);
        if pages.is_empty() {
            change();
            return Ok(());
        }
        self.write_back(range)?;
        self.policy().call(move |policy| policy.hold(id, pages))?;
        let changed = change();
        self.policy().call(move |policy| policy.changed(id, same, changed))?
    }

    /// Gives whole pages up: their addresses are the caller's.
    pub(crate) fn cut(&self, range: &Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena().id(), self.pages(range)?);
        self.write_back(range)?;
        self.policy().call(move |policy| policy.cut(id, first, n))?
    }

    /// Where a copy differs from its store, bytes.
    pub(crate) fn changed(&self) -> Result<Vec<Range<usize>>, PagerError> {
        let arena = self.arena().clone();
        // Nothing is swapped out while the policy thread looks.
        let pages = self.policy().call(move |_| {
            let all = arena.filled_pages(0..arena.pages().len());
            all.filter(|&page| arena.is_own(page)).collect::<Vec<_>>()
        })?;
        let follow = |a: &u32, b: &u32| a + 1 == *b;
        let bytes = |run: &[u32]| {
            let start = run[0] as usize * PAGE;
            start..(start + run.len() * PAGE).min(self.len)
        };
        Ok(pages.chunk_by(follow).map(bytes).collect())
    }

    pub(crate) fn note_used(&self, page: usize) {
        assert!(page < self.arena().pages().len() as usize, "the mapping has no page {page}");
        self.arena().post(Event::Used, page as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn stat(&self) -> FaultStat {
        self.arena().counters().now()
    }

    pub(crate) fn resident(&self) -> Result<u64, PagerError> {
        Ok(self.arena().memory().resident()?)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Errors stick to the mapping, which is gone: a caller that wants them flushes before.
        let _ = self.write_back(&(0..self.len));
        self.service.end();
    }
}

/// Keeps pages resident while it lives; transfers that bypass page tables (O_DIRECT, registered
/// buffers, RDMA) need one.
pub struct Pin<'a> {
    mapped: &'a Mapped,
    first: u32,
    n: u32,
}

impl Pin<'_> {
    /// Keeps the pages beyond the life of this, until
    /// [`MappingMut::unpin_range`](crate::MappingMut::unpin_range).
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let (id, first, n) = (self.mapped.arena().id(), self.first, self.n);
        // Without a policy nothing is evicted.
        let _ = self.mapped.policy().call(move |policy| policy.unpin(id, first, n));
    }
}
