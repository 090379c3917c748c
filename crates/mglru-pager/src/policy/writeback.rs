//! Writing pages back: snapshots of dirty pages on their way to a file or to swap, several at
//! once.
//!
//! A page is clean from the moment its snapshot is taken; a store makes it dirty again and does
//! not touch the snapshot. Until the write ended the page is under writeback and stays resident.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mglru::folio::Bit;

use super::Policy;
use super::by_hand::ByHand;
use super::evict::unlock;
use super::world::World;
use crate::account::{Account, Setting};
use crate::arena::{Arena, Backing};
use crate::pages::{Presence, Slot};
use crate::swap::SwapFile;
use crate::sys::ring::{BufferId, Ring};
use crate::sys::{PAGE, clock};

/// Writes under way at once.
const DEPTH: u16 = 256;
/// Most of these to swap while reclaim goes on: without a free buffer it packs pages in vain.
const TO_SWAP: usize = 32;
/// As [`TO_SWAP`] while a limit is exceeded: where others compute, each wait is long.
const TO_SWAP_OVER: usize = 160;
/// Writes to swap take less than this part of a limit.
const SHARE: u64 = 64;
/// Most writes while nobody waits for them: reads of faults queue behind them on the disk.
const UNASKED: usize = 8;
/// Pages of one write at most.
pub(super) const CLUSTER: u32 = 8;
/// Bytes of a write's buffer.
pub(super) const WRITE_BUFFER: u64 = CLUSTER as u64 * PAGE as u64;

/// Why pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Writes pages that are to be evicted.
    Reclaim,
    /// Writes pages that are to be safe: a caller waits.
    Flush,
    /// Writes pages that have been dirty for long.
    Expired,
}

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writing {
    why: Why,
    arena: u32,
    first: u32,
    nr_pages: u32,
    /// The slot of a page that goes to swap.
    slot: Option<Slot>,
    /// Counts writes; a flush waits for those before it.
    number: u64,
    /// When it was queued, on the clock of all threads.
    begun: u64,
}

impl Writing {
    fn new(why: Why, arena: u32, first: u32, nr_pages: u32, slot: Option<Slot>) -> Self {
        Self { why, arena, first, nr_pages, slot, number: 0, begun: 0 }
    }
}

/// Writes pages back.
pub(super) struct Writer {
    ring: Ring,
    /// The account that pays for its buffers.
    payer: Arc<Account>,
    writing: Vec<Option<Writing>>,
    /// How many of these go to swap.
    to_swap: usize,
    number: u64,
    pub(super) by_hand: ByHand,
}

/// Outcome of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Started {
    /// Says that so many pages are being written, or are written.
    Pages(u32),
    /// Asks to judge again: the first page is not dirty any more, or a fault is being served on it,
    /// or its event is on its way.
    Again,
    /// Says that an older snapshot of the page is being written, or its store is about to change.
    Underway,
    /// Says that the page could not be written; the arena remembers the error.
    Failed,
    /// Says that all buffers are in use, or as many as this may have.
    Full,
}

impl Writer {
    pub(super) fn new(payer: Arc<Account>) -> io::Result<Self> {
        let ring = Ring::new(DEPTH, WRITE_BUFFER as usize)?;
        let (writing, by_hand) = (vec![None; usize::from(DEPTH)], ByHand::default());
        Ok(Self { ring, payer, writing, to_swap: 0, number: 0, by_hand })
    }

    pub(super) fn submit(&mut self) {
        self.ring.submit().expect("the ring is ours");
    }

    /// Waits until a write ended.
    pub(super) fn wait(&mut self) {
        self.ring.wait().expect("the ring is ours");
    }

    pub(super) fn is_busy(&self) -> bool {
        self.ring.in_flight() > 0
    }

    /// The number of the newest write.
    pub(super) fn newest(&self) -> u64 {
        self.number
    }

    /// Is a write of this arena under way that is not newer?
    pub(super) fn is_writing(&self, arena: u32, up_to: u64) -> bool {
        self.writing.iter().flatten().any(|w| w.arena == arena && w.number <= up_to)
    }

    /// Queues the write of a page to the swap file. False: all buffers are in use.
    pub(super) fn write_swap(
        &mut self,
        file: &SwapFile,
        (arena, page, slot): (u32, u32, Slot),
        offset: u64,
        content: &[u8],
    ) -> bool {
        let Some(buffer) = self.take_buffer(PAGE) else { return false };
        self.ring.register(file.as_fd());
        self.ring.bytes(buffer)[..PAGE].copy_from_slice(content);
        let what = Writing::new(Why::Reclaim, arena, page, 1, Some(slot));
        self.queue(file.as_fd(), buffer, what, offset);
        true
    }

    /// Pages being written so that they can be evicted: arenas, and how many pages.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (u32, u64)> {
        let leaving = self.writing.iter().flatten().filter(|w| w.why == Why::Reclaim);
        leaving.map(|w| (w.arena, w.nr_pages.into()))
    }

    /// Queued writes to swap are late: those from now on are better waited for.
    pub(super) fn is_late(&self) -> bool {
        let to_swap = self.writing.iter().flatten().filter(|w| w.slot.is_some());
        let oldest = to_swap.map(|w| w.begun).min();
        oldest.is_some() && self.by_hand.is_due(oldest, clock::monotonic())
    }

    /// Reclaim for this group had better wait for writes to swap.
    pub(super) fn is_swap_busy(&self, account: &Account) -> bool {
        let max = account.get(Setting::Max);
        let most = match account.usage() > max {
            true => ((max / SHARE) as usize / PAGE).clamp(TO_SWAP, TO_SWAP_OVER),
            false => TO_SWAP,
        };
        self.to_swap > most
    }

    /// Writes under way that nobody waits for. A flush does not hold reclaim's up.
    fn unasked(&self) -> usize {
        self.writing.iter().flatten().filter(|w| w.why != Why::Flush).count()
    }

    fn take_buffer(&mut self, len: usize) -> Option<BufferId> {
        let payer = &self.payer;
        self.ring.take(len, |bytes| payer.try_charge(bytes).is_ok() || payer.charge_over(bytes))
    }

    fn queue(&mut self, fd: BorrowedFd<'_>, buffer: BufferId, what: Writing, offset: u64) {
        self.number += 1;
        self.to_swap += usize::from(what.slot.is_some());
        let (number, begun) = (self.number, clock::monotonic());
        self.writing[buffer.index()] = Some(Writing { number, begun, ..what });
        self.ring.write(fd, buffer, what.nr_pages as usize * PAGE, offset);
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl World {
    /// Starts to write the dirty pages at `first..first + most`, as many as are dirty in a row.
    pub(super) fn write_run(
        &mut self,
        id: u32,
        first: u32,
        most: u32,
        why: Why,
        lru: &mut mglru::Lru,
    ) -> Started {
        let arena = self.attached(id).arena.clone();
        let Backing::Store(store) = arena.backing() else {
            unreachable!("only stores are flushed")
        };
        let Some(queue) = store.queue().filter(|queue| first < queue.nr_pages) else {
            return self.write_now(&arena, first, lru);
        };
        if why != Why::Flush && self.writer.unasked() >= UNASKED {
            return Started::Full;
        }
        let Some(buffer) = self.writer.take_buffer(CLUSTER as usize * PAGE) else {
            return Started::Full;
        };
        let most = most.min(CLUSTER).min(queue.nr_pages - first);
        let nr_pages = self.snapshot(&arena, first, most, buffer, lru);
        if nr_pages == 0 {
            self.writer.ring.give_back(buffer);
            return self.why_not(&arena, first, lru);
        }
        let what = Writing::new(why, id, first, nr_pages, None);
        self.writer.queue(queue.fd, buffer, what, queue.base + arena.offset(first));
        Started::Pages(nr_pages)
    }

    /// Copies dirty pages into the buffer and makes them clean. How many, from `first` on.
    fn snapshot(
        &mut self,
        arena: &Arena,
        first: u32,
        most: u32,
        buffer: BufferId,
        lru: &mut mglru::Lru,
    ) -> u32 {
        let lock = |page: &u32| self.lock_dirty(arena, *page, lru);
        let n = (first..first + most).take_while(lock).count() as u32;
        if n == 0 {
            return 0;
        }
        arena.uffd().protect(arena.view().pages(first, n)).expect("an arena's pages");
        let bytes = &mut self.writer.ring.bytes(buffer)[..n as usize * PAGE];
        arena.memory().read(arena.offset(first), bytes).expect("resident pages can be read");
        for page in first..first + n {
            unlock(arena, page, Presence::Clean);
            let folio = self.attached(arena.id()).entries.folio(page).expect("it has a folio");
            lru.clean(folio);
            lru.start_writeback(folio);
        }
        n
    }

    /// Locks a page if it is dirty and the policy may write it.
    fn lock_dirty(&self, arena: &Arena, page: u32, lru: &mglru::Lru) -> bool {
        let Some(folio) = self.attached(arena.id()).entries.folio(page) else { return false };
        if lru.folios()[folio].flags.has(Bit::WRITEBACK) || self.is_held(arena, page) {
            return false;
        }
        match arena.pages().try_lock(page) {
            Some(Presence::Dirty) => true,
            Some(presence) => {
                unlock(arena, page, presence);
                false
            }
            None => false,
        }
    }

    fn is_held(&self, arena: &Arena, page: u32) -> bool {
        self.held.iter().any(|(id, pages)| *id == arena.id() && pages.contains(&page))
    }

    fn why_not(&self, arena: &Arena, page: u32, lru: &mglru::Lru) -> Started {
        let folio = self.attached(arena.id()).entries.folio(page);
        if folio.is_none() {
            // Its event may have been left with a handler that has no other reason to wake.
            arena.ring_handlers();
        }
        let underway = folio.is_some_and(|f| lru.folios()[f].flags.has(Bit::WRITEBACK));
        if underway || self.is_held(arena, page) { Started::Underway } else { Started::Again }
    }

    /// Writes one page that cannot be queued: of a store without a descriptor, or the last of a
    /// file that does not end with a whole one.
    fn write_now(&mut self, arena: &Arena, page: u32, lru: &mut mglru::Lru) -> Started {
        if !self.lock_dirty(arena, page, lru) {
            return self.why_not(arena, page, lru);
        }
        let Backing::Store(store) = arena.backing() else {
            unreachable!("only stores are written")
        };
        arena.uffd().protect(arena.view().pages(page, 1)).expect("an arena's page");
        let offset = arena.offset(page);
        let read = arena.memory().read(offset, &mut self.page);
        match read.and_then(|()| store.write_at(offset, &self.page)) {
            Ok(()) => {
                unlock(arena, page, Presence::Clean);
                let folio = self.attached(arena.id()).entries.folio(page).expect("it has a folio");
                lru.clean(folio);
                Started::Pages(1)
            }
            Err(error) => {
                unlock(arena, page, Presence::Dirty);
                self.attached(arena.id()).arena.note_error(&error);
                Started::Failed
            }
        }
    }
}

impl Policy {
    /// Takes note of the writes that ended. True when there were any.
    pub(super) fn reap_writes(&mut self) -> bool {
        let mut any = false;
        while let Some(finished) = self.world.writer.ring.finished() {
            any = true;
            let writing = self.world.writer.writing[finished.buffer.index()].take();
            let writing = writing.expect("a write was under way");
            self.world.writer.to_swap -= usize::from(writing.slot.is_some());
            self.world.writer.ring.give_back(finished.buffer);
            let whole = writing.nr_pages as usize * PAGE;
            let short = || io::Error::from_raw_os_error(libc::EIO);
            let result = finished.result.and_then(|n| (n == whole).then_some(()).ok_or_else(short));
            self.write_ended(writing, result.err());
        }
        if any {
            self.jobs.iter_mut().for_each(|job| job.asleep_until = 0);
        }
        any
    }

    fn write_ended(&mut self, writing: Writing, error: Option<io::Error>) {
        let arena = self.world.attached(writing.arena).arena.clone();
        if let Some(slot) = writing.slot {
            arena.swap().written(slot);
            error.iter().for_each(|error| arena.swap().note_error(error));
        }
        if let Some(error) = &error {
            self.world.attached(writing.arena).arena.note_error(error);
        }
        if writing.why == Why::Reclaim && error.is_none() {
            self.note_written(&arena, writing.nr_pages);
        }
        for page in writing.first..writing.first + writing.nr_pages {
            if error.is_some() {
                self.write_failed(&arena, page, writing.slot);
            }
            let folio = self.world.attached(arena.id()).entries.folio(page);
            // A heap's page may have been dropped meanwhile, and be another.
            let written = |f: &mglru::FolioId| self.lru.folios()[*f].flags.has(Bit::WRITEBACK);
            if let Some(folio) = folio.filter(written) {
                self.lru.end_writeback(folio);
            }
        }
    }

    /// Makes the page in memory the only copy again.
    fn write_failed(&mut self, arena: &Arena, page: u32, slot: Option<Slot>) {
        let presence = loop {
            match arena.pages().try_lock(page) {
                Some(presence) => break presence,
                // A fault is being served there: that takes microseconds.
                None => std::hint::spin_loop(),
            }
        };
        let unwritten = matches!(presence, Presence::Clean | Presence::Staged);
        if slot.is_some_and(|slot| unwritten && arena.pages().slot(page) == slot) {
            arena.free_slot(arena.pages().set_slot(page, 0));
        }
        let after = if presence == Presence::Clean { Presence::Dirty } else { presence };
        unlock(arena, page, after);
        if let (Presence::Dirty, Some(folio)) =
            (after, self.world.attached(arena.id()).entries.folio(page))
        {
            self.lru.set_dirty(folio);
        }
    }
}
