//! A missing page: charged, read from wherever it is, and installed.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{CLUSTER, Handler, Touch, Why};
use crate::account::{Account, Happened, PAGE_COST};
use crate::arena::{Access, Arena};
use crate::faults::Kind;
use crate::pages::{Presence, Slot};
use crate::store::{Queue, Store};
use crate::swap::Loaded;
use crate::sys::ring::BufferId;
use crate::sys::{PAGE, raw};

/// A read under way. All its pages are locked, absent and charged.
pub(super) struct Reading {
    touch: Touch,
    first: u32,
    nr_pages: u32,
    /// The slot of a page from the swap file.
    slot: Option<Slot>,
    /// The page was evicted too early.
    missed: bool,
    /// The program gave the page up meanwhile.
    dropped: bool,
}

impl Reading {
    /// Why it is read.
    pub(super) fn touch(&self) -> Touch {
        self.touch
    }

    /// Tells whether a thread that waits for it stalls.
    pub(super) fn is_stall(&self) -> bool {
        self.missed
    }

    /// The program gave the page up.
    pub(super) fn is_dropped(&self) -> bool {
        self.dropped
    }
}

impl Handler {
    /// The read under way of a page of swap.
    pub(super) fn reading_of(&mut self, page: u32) -> Option<&mut Reading> {
        self.reading.iter_mut().flatten().find(|reading| reading.first == page)
    }

    /// The program gave up a page that is being read.
    pub(super) fn drop_reading(&mut self, page: u32) {
        self.reading_of(page).expect("it is being read").dropped = true;
    }

    /// The touched page is locked and absent.
    pub(super) fn missing(&mut self, touch: Touch) {
        let arena = self.arena.clone();
        if let Err(error) = arena.note_filled(touch.page) {
            return self.installer.lose(touch.page, &error);
        }
        if let Err(full) = arena.account().try_charge(PAGE_COST) {
            return self.starve(full, touch);
        }
        arena.wake_policy_if_low();
        match arena.source(touch.page) {
            Some(store) => self.missing_stored(store, touch),
            None => self.missing_anon(&arena, touch),
        }
    }

    /// No room: the fault waits until the policy has made some.
    fn starve(&mut self, full: &Account, touch: Touch) {
        full.note(Happened::Max);
        full.wanted.store(true, Ordering::Release);
        self.installer.unlock(touch.page, Presence::Absent);
        if self.installer.waiting.count(Why::Room) == 0 {
            // Clear a stale `hopeless` flag: it was raised before any fault waited here.
            self.installer.arena.clear_hopeless();
        }
        self.installer.waiting.add(touch, Why::Room);
        self.arena.counters().add_throttled();
        self.installer.arena.wait_for_room();
    }

    fn missing_anon(&mut self, arena: &Arc<Arena>, touch: Touch) {
        let slot = arena.pages().slot(touch.page);
        if slot == 0 {
            return self.installer.install_zeros(touch);
        }
        let stall = self.stall_here(touch.page);
        match arena.swap().load(slot, &mut self.page, &mut self.scratch) {
            // The pool's copy would only take room: the page is all there is from now on.
            Loaded::Content => {
                self.installer.install(touch, &self.page, Presence::Dirty);
                self.swap_ahead(touch.page);
            }
            Loaded::ToRead(offset) => self.read_swap_file(arena, touch, slot, offset),
        }
        self.end_stall(stall);
    }

    fn read_swap_file(&mut self, arena: &Arc<Arena>, touch: Touch, slot: Slot, offset: u64) {
        let Some(buffer) = self.take_buffer(PAGE) else { return self.wait_for_buffer(touch) };
        let file = arena.swap().file().expect("the slot is in the file");
        self.ring.read(file.as_fd(), buffer, PAGE, offset);
        arena.account().note(Happened::Pswpin);
        let (first, missed) = (touch.page, arena.is_missed(touch.page));
        let reading =
            Reading { touch, first, nr_pages: 1, slot: Some(slot), missed, dropped: false };
        self.reading[buffer.index()] = Some(reading);
    }

    fn missing_stored(&mut self, store: &Arc<dyn Store>, touch: Touch) {
        match store.queue() {
            Some(queue) if touch.page < queue.nr_pages => self.queue_read(queue, touch),
            _ => self.read_now(store, touch),
        }
    }

    fn queue_read(&mut self, queue: Queue<'_>, touch: Touch) {
        let random = self.arena.access() == Access::Random;
        let most = if random { PAGE } else { CLUSTER as usize * PAGE };
        let Some(buffer) = self.take_buffer(most) else { return self.wait_for_buffer(touch) };
        let around = self.read_around(touch.page, queue.nr_pages);
        let (first, nr_pages) = (around.start, around.len() as u32);
        let offset = queue.base + self.arena.offset(first);
        self.ring.read(queue.fd, buffer, nr_pages as usize * PAGE, offset);
        let missed = self.arena.is_missed(touch.page);
        let reading = Reading { touch, first, nr_pages, slot: None, missed, dropped: false };
        self.reading[buffer.index()] = Some(reading);
    }

    fn take_buffer(&mut self, len: usize) -> Option<BufferId> {
        let account = &self.arena.account();
        self.ring.take(len, |bytes| account.try_charge(bytes).is_ok())
    }

    fn wait_for_buffer(&mut self, touch: Touch) {
        self.installer.give_up(touch.page);
        self.installer.waiting.add(touch, Why::Buffer);
    }

    fn read_now(&mut self, store: &Arc<dyn Store>, touch: Touch) {
        let stall = self.stall_here(touch.page);
        match store.read_at(self.arena.offset(touch.page), &mut self.page) {
            Ok(()) => self.installer.install(touch, &self.page, self.arena.brought(touch.write)),
            Err(error) => self.installer.failed(touch.page, &error),
        }
        self.end_stall(stall);
    }

    /// Locks and charges absent neighbours of a page: the run to read, which contains it.
    fn read_around(&mut self, page: u32, end: u32) -> Range<u32> {
        let window = match self.arena.access() {
            Access::Random => page..page + 1,
            Access::Normal => page - page % CLUSTER..page - page % CLUSTER + CLUSTER,
            Access::Sequential => page..page + CLUSTER,
        };
        let last = window.end.min(end).min(self.arena.pages().len());
        let after = (page + 1..last).take_while(|&p| self.join_source(p)).count() as u32;
        let before = (window.start..page).rev().take_while(|&p| self.join_source(p)).count() as u32;
        let joined = u64::from(after + before);
        self.arena.counters().add_read_around(joined);
        page - before..page + 1 + after
    }

    /// As [`Self::join`], of the pages that come from the store.
    fn join_source(&mut self, page: u32) -> bool {
        let joined = self.join(page);
        let comes = joined && self.arena.source(page).is_some();
        if joined && !comes {
            self.installer.give_up(page);
        }
        comes
    }

    /// Takes a neighbour into the read, if it is absent and there is plenty of room.
    pub(super) fn join(&mut self, page: u32) -> bool {
        let account = self.arena.account().clone();
        if !account.has_plenty() {
            return false;
        }
        let ready = |page| self.arena.note_filled(page).is_ok();
        match self.arena.pages().try_lock(page) {
            Some(Presence::Absent) if ready(page) && account.try_charge(PAGE_COST).is_ok() => true,
            Some(presence) => {
                self.installer.unlock(page, presence);
                false
            }
            None => false,
        }
    }

    /// A read ended: its pages become resident, or fail.
    pub(super) fn read_ended(&mut self, buffer: BufferId, result: io::Result<usize>) {
        let reading = self.reading[buffer.index()].take().expect("a read was under way");
        let outcome = result.and_then(|n| self.check(&reading, buffer, n));
        let outcome = outcome.or_else(|error| self.read_again(&reading, buffer, error));
        match outcome {
            Ok(()) => self.install_all(&reading, buffer),
            Err(error) => self.drop_all(&reading, &error),
        }
        self.ring.give_back(buffer);
        self.installer.waiting.set_due();
        self.served(Kind::Major, reading.touch);
    }

    /// Zeroes bytes beyond the end of a file that a read did not reach. Swap must be complete.
    fn check(&mut self, reading: &Reading, buffer: BufferId, n: usize) -> io::Result<()> {
        let len = reading.nr_pages as usize * PAGE;
        let bytes = self.ring.bytes(buffer);
        bytes[n.min(len)..len].fill(0);
        match reading.slot {
            Some(_) if n < PAGE => Err(io::Error::other(format!("{n} bytes of it were read"))),
            Some(slot) => self.arena.swap().check(slot, &bytes[..PAGE]),
            None => Ok(()),
        }
    }

    /// Swap has the only copy: its page is lost when a second read brings no better. Reports
    /// why the first one failed.
    fn read_again(
        &mut self,
        reading: &Reading,
        buffer: BufferId,
        error: io::Error,
    ) -> io::Result<()> {
        let Some(slot) = reading.slot.filter(|_| !reading.dropped) else { return Err(error) };
        raw::say(&format!("page {} of a mapping is read from swap again: {error}", reading.first));
        self.arena.account().note(Happened::Pswpin);
        self.arena.swap().read(slot, &mut self.ring.bytes(buffer)[..PAGE])
    }

    fn install_all(&mut self, reading: &Reading, buffer: BufferId) {
        let Reading { touch, first, nr_pages, .. } = *reading;
        if reading.dropped {
            return self.installer.give_up_dropped(touch.page);
        }
        let bytes = self.ring.bytes(buffer);
        let at = |page: u32| &bytes[(page - first) as usize * PAGE..][..PAGE];
        self.installer.install(touch, at(touch.page), self.arena.brought(touch.write));
        for page in (first..first + nr_pages).filter(|&page| page != touch.page) {
            self.installer.install_unmapped(page, at(page));
        }
    }

    fn drop_all(&mut self, reading: &Reading, error: &io::Error) {
        let Reading { touch, first, nr_pages, .. } = *reading;
        if reading.dropped {
            return self.installer.give_up_dropped(touch.page);
        }
        for page in (first..first + nr_pages).filter(|&page| page != touch.page) {
            self.installer.give_up(page);
        }
        self.installer.failed(touch.page, error);
    }
}
