//! Mapped memory as callers hold it. A hit is a plain load; a miss waits for its page.
//!
//! A page that cannot be read back (an I/O error, or no room and nothing to reclaim) is SIGBUS
//! for whoever touches it, as with any mapping.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::arena::{Access, Arena, Backing, Event};
use crate::error::PagerError;
use crate::handler;
use crate::pager::Inner;
use crate::sys::PAGE;

/// How a mapping or a part of it will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Neighbours of a missing page are read with it. The whole mapping.
    Normal,
    /// They are not. The whole mapping.
    Random,
    /// More is read ahead, and accesses do not protect from eviction. The whole mapping.
    Sequential,
    /// Will be used: resident when the call returns, as far as there is room.
    PopulateRead,
    /// Will not be used soon: first in line for eviction.
    Cold,
    /// Will not be used soon: written back and evicted now, as far as possible.
    PageOut,
}

/// What faults of a mapping did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultStat {
    /// Pages that were missing.
    pub missing: u64,
    /// Of these, had to be read or unpacked.
    pub major: u64,
    /// First stores to clean pages.
    pub protect: u64,
    /// Faults that had to wait for room.
    pub throttled: u64,
    /// Pages read along with a missing one.
    pub read_around: u64,
    /// Pages of a heap used again before they were evicted.
    pub rescued: u64,
}

impl FaultStat {
    pub(crate) fn of(arena: &Arena) -> Self {
        let counters = &arena.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            missing: get(&counters.missing),
            major: get(&counters.major),
            protect: get(&counters.protect),
            throttled: get(&counters.throttled),
            read_around: get(&counters.read_around),
            rescued: get(&counters.rescued),
        }
    }
}

/// An arena and what keeps it served.
pub(crate) struct Mapped {
    inner: Arc<Inner>,
    arena: Arc<Arena>,
    len: usize,
    served: Served,
}

impl Mapped {
    pub(crate) fn new(
        inner: Arc<Inner>,
        arena: Arc<Arena>,
        len: usize,
    ) -> Result<Self, PagerError> {
        let served = Served::start(&inner, &arena)?;
        Ok(Self { inner, arena, len, served })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.arena.view.as_ptr()
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

    fn write_back(&self, range: &Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena.id, self.pages(range)?);
        if self.arena.is_anon() {
            return Ok(());
        }
        let (reply, answer) = mpsc::sync_channel(1);
        let ask = move |policy: &mut crate::policy::Policy| {
            policy.request_flush(id, first, n, Some(reply));
        };
        self.inner.shared.send(Box::new(ask));
        answer.recv().map_err(|_| PagerError::Stopped)?;
        self.arena.take_error().map_or(Ok(()), |error| Err(error.into()))
    }

    pub(crate) fn flush(&self, range: &Range<usize>) -> Result<(), PagerError> {
        self.write_back(range)?;
        if let Backing::Store(store) = &self.arena.backing {
            store.sync()?;
        }
        Ok(())
    }

    pub(crate) fn advise(&self, advice: Advice, range: &Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.arena.id, self.pages(range)?);
        match advice {
            Advice::Normal => self.arena.set_access(Access::Normal),
            Advice::Random => self.arena.set_access(Access::Random),
            Advice::Sequential => self.arena.set_access(Access::Sequential),
            Advice::PopulateRead => {
                self.arena.view.populate(self.arena.view.pages(first, n))?;
            }
            Advice::Cold => {
                self.inner.shared.call(move |policy| policy.deactivate(id, first, n))?;
            }
            Advice::PageOut => {
                self.write_back(range)?;
                self.inner.shared.call(move |policy| policy.page_out(id, first, n))?;
            }
        }
        Ok(())
    }

    pub(crate) fn pin(&self, range: &Range<usize>) -> Result<Pin<'_>, PagerError> {
        let (id, (first, n)) = (self.arena.id, self.pages(range)?);
        self.inner.shared.call(move |policy| policy.pin(id, first, n))?;
        let pin = Pin { mapped: self, first, n };
        self.arena.view.populate(self.arena.view.pages(first, n))?;
        Ok(pin)
    }

    pub(crate) fn discard(&self, range: &Range<usize>) -> Result<(), PagerError> {
        let whole = range.start % PAGE == 0 && (range.end % PAGE == 0 || range.end == self.len);
        if !whole {
            let takes = format!("multiples of {PAGE}");
            return Err(PagerError::OutOfRange { what: "range", got: range.start as u64, takes });
        }
        let (id, (first, n)) = (self.arena.id, self.pages(range)?);
        self.inner.shared.call(move |policy| policy.discard(id, first, n))?
    }

    pub(crate) fn note_used(&self, page: usize) {
        assert!(page < self.arena.pages.len() as usize, "the mapping has no page {page}");
        self.arena.post(Event::Used, page as u32);
    }

    pub(crate) fn resident(&self) -> std::io::Result<u64> {
        self.arena.memory.resident()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn stat(&self) -> FaultStat {
        FaultStat::of(&self.arena)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Errors stick to the mapping, which is gone: who wants to know flushes before.
        let _ = self.write_back(&(0..self.len));
        self.served.end();
    }
}

/// An arena with its handler at work.
pub(crate) struct Served {
    inner: Arc<Inner>,
    arena: Arc<Arena>,
    handlers: Vec<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(inner: &Arc<Inner>, arena: &Arc<Arena>) -> Result<Self, PagerError> {
        let mut served = Self { inner: inner.clone(), arena: arena.clone(), handlers: Vec::new() };
        for nth in 0..arena.bells.len() {
            match handler::start(arena.clone(), nth) {
                Ok(handler) => served.handlers.push(handler),
                Err(error) => {
                    served.end();
                    return Err(error.into());
                }
            }
        }
        Ok(served)
    }

    /// Ends the handlers and takes the arena away.
    pub(crate) fn end(&mut self) {
        self.arena.closed.store(true, Ordering::Release);
        self.arena.ring_handlers();
        // A handler that panicked has said so.
        self.handlers.drain(..).for_each(|handler| drop(handler.join()));
        let id = self.arena.id;
        let _ = self.inner.shared.call(move |policy| policy.detach(id));
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
    /// Keeps the pages beyond the life of this, until [`MappingMut::unpin_range`].
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let (id, first, n) = (self.mapped.arena.id, self.first, self.n);
        // Without a policy nothing is evicted.
        let _ = self.mapped.inner.shared.call(move |policy| policy.unpin(id, first, n));
    }
}

macro_rules! both {
    ($name:ident) => {
        impl $name {
            pub(crate) fn new(mapped: Mapped) -> Self {
                Self { mapped }
            }

            /// Says how all of it will be used.
            ///
            /// # Errors
            /// See [`Self::advise_range`].
            pub fn advise(&self, advice: Advice) -> Result<(), PagerError> {
                self.mapped.advise(advice, &(0..self.mapped.len))
            }

            /// Says how a range of bytes will be used.
            ///
            /// # Errors
            /// The range is not within the mapping, or its pages cannot be read or written.
            pub fn advise_range(
                &self,
                advice: Advice,
                range: Range<usize>,
            ) -> Result<(), PagerError> {
                self.mapped.advise(advice, &range)
            }

            /// Keeps a range of bytes resident for as long as the pin lives.
            ///
            /// # Errors
            /// The range is not within the mapping, or there is no room for it.
            pub fn pin(&self, range: Range<usize>) -> Result<Pin<'_>, PagerError> {
                self.mapped.pin(&range)
            }

            /// What its faults did.
            pub fn stat(&self) -> FaultStat {
                FaultStat::of(&self.mapped.arena)
            }

            /// Bytes that are resident, as the kernel counts them.
            ///
            /// # Errors
            /// The kernel does not say.
            pub fn resident(&self) -> Result<u64, PagerError> {
                Ok(self.mapped.resident()?)
            }
        }

        impl Deref for $name {
            type Target = [u8];

            #[allow(unsafe_code)]
            fn deref(&self) -> &[u8] {
                // SAFETY: the view is mapped for `len` bytes and more as long as `self` lives, and
                // its pages read as they were last written.
                unsafe { std::slice::from_raw_parts(self.mapped.start(), self.mapped.len) }
            }
        }
    };
}

/// Memory that can be read.
pub struct Mapping {
    mapped: Mapped,
}

/// Memory that can be written.
pub struct MappingMut {
    mapped: Mapped,
}

both!(Mapping);
both!(MappingMut);

impl DerefMut for MappingMut {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.start(), self.mapped.len) }
    }
}

impl MappingMut {
    /// Returns when all stores made before are durable in the store (anonymous memory has none).
    ///
    /// # Errors
    /// Something could not be written, since the last time this was asked.
    pub fn flush(&self) -> Result<(), PagerError> {
        self.flush_range(0..self.mapped.len)
    }

    /// Returns when all stores made before to a range of bytes are in the store, durable or not:
    /// who reads the store sees them.
    ///
    /// # Errors
    /// As [`Self::flush_range`].
    pub fn write_back_range(&self, range: Range<usize>) -> Result<(), PagerError> {
        self.mapped.write_back(&range)
    }

    /// As [`Self::flush`], for a range of bytes.
    ///
    /// # Errors
    /// As [`Self::flush`]; the range is not within the mapping.
    pub fn flush_range(&self, range: Range<usize>) -> Result<(), PagerError> {
        self.mapped.flush(&range)
    }

    /// Takes one [kept](Pin::keep) pin of each page of a range of bytes back.
    ///
    /// # Errors
    /// The range is not within the mapping.
    pub fn unpin_range(&self, range: Range<usize>) -> Result<(), PagerError> {
        let (id, (first, n)) = (self.mapped.arena.id, self.mapped.pages(&range)?);
        self.mapped.inner.shared.call(move |policy| policy.unpin(id, first, n))
    }

    /// Drops the content of a range of whole pages: it reads as its store has it, or as zeros.
    ///
    /// # Errors
    /// The range is not whole pages of the mapping.
    pub fn discard_range(&mut self, range: Range<usize>) -> Result<(), PagerError> {
        self.mapped.discard(&range)
    }
}
