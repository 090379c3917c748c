//! Serves what only heaps have: staged pages that are used again, memory that the program gives up,
//! and children.
//!
//! A message may be older than what is known here. The program waits in its call until the
//! message was read, and this thread alone installs pages of a heap, so it is in order all the
//! same.

use super::install::Installer;
use super::{Handler, Touch};
use crate::account::PAGE_COST;
use crate::arena::{Arena, Backing, Event};
use crate::children::{Child, Parent};
use crate::pages::Presence;
use crate::sys::PAGE;
use crate::sys::heap::TABLE_SPAN;
use crate::sys::uffd::{Span, Uffd};

/// Pages under one page table.
const TABLE: u32 = (TABLE_SPAN / PAGE) as u32;

impl Handler {
    /// A staged page is used again: it goes back, and is younger than those that are not.
    pub(super) fn rescue(&mut self, touch: Touch) {
        let arena = self.arena.clone();
        let page = touch.page;
        if let Err(error) = self.give_back(page) {
            self.installer.unlock(page, Presence::Staged);
            return self.installer.try_again(page, &error);
        }
        arena.free_slot(arena.pages().set_slot(page, 0));
        arena.pages().set_young(page);
        arena.counters().add_rescued();
        arena.post(Event::Dirtied, page);
        self.installer.unlock(page, Presence::Dirty);
        self.installer.wake(page);
    }

    fn give_back(&self, page: u32) -> std::io::Result<()> {
        let staging = self.arena.staging().expect("a heap has staging");
        staging.give_back(self.arena.view(), self.arena.uffd(), self.arena.offset(page))
    }

    /// A page that is known as mapped is missing: the program dropped it while it was being
    /// filled. It is zeros now, unless another fault has just been served.
    pub(super) fn fill_hole(&mut self, touch: Touch, presence: Presence) {
        let (arena, page) = (self.arena.clone(), touch.page);
        match arena.uffd().copy(arena.view().address(page), &self.installer.zeros, false) {
            Ok(()) => {
                arena.free_slot(arena.pages().set_slot(page, 0));
                arena.post(Event::Dirtied, page);
                self.installer.unlock(page, Presence::Dirty);
            }
            Err(error) => {
                self.installer.unlock(page, presence);
                self.installer.try_again(page, &error);
            }
        }
    }

    /// The program dropped or unmapped a range: it reads as zeros, if at all.
    pub(super) fn gone(&mut self, span: Span) {
        let start = self.arena.view().address(0);
        let end = start + self.arena.offset(self.arena.pages().len());
        let (from, to) = (span.start.clamp(start, end), (span.start + span.len).clamp(start, end));
        if from < to {
            let (first, end) = (self.page_at(from), self.page_at(to - 1) + 1);
            self.drop_pages(first, end);
        }
    }

    fn drop_pages(&mut self, first: u32, end: u32) {
        let arena = self.arena.clone();
        for table in arena.filled_tables(first).take_while(|&table| table < end) {
            for page in table.max(first)..(table + TABLE).min(end) {
                if !arena.pages().is_blank(page) {
                    self.drop_page(page);
                }
            }
        }
    }

    fn drop_page(&mut self, page: u32) {
        let arena = self.arena.clone();
        let Some(presence) = self.lock(page) else { return self.drop_reading(page) };
        if presence == Presence::Staged {
            let staging = arena.staging().expect("a heap has staging");
            staging.release(arena.span(page, 1)).expect("staging can be given back");
        }
        if presence.is_resident() {
            arena.account().uncharge(PAGE_COST);
        }
        arena.free_slot(arena.pages().set_slot(page, 0));
        arena.pages().take_young(page);
        self.installer.unlock(page, Presence::Absent);
        arena.post(Event::Dropped, page);
    }

    /// Serves a fork: the child shares mapped pages, is given staged ones now, gets a share of the
    /// slots of swapped ones, and nothing of withheld ranges.
    pub(super) fn forked(&mut self, uffd: Uffd) {
        let arena = self.arena.clone();
        let Backing::Heap(children) = arena.backing() else { unreachable!("only heaps fork") };
        let mut child = Child::new(parent(&arena), uffd);
        let withheld = children.withheld.now();
        for table in arena.filled_tables(0) {
            for page in table..(table + TABLE).min(arena.pages().len()) {
                let start = arena.view().address(page) as usize;
                if !withheld.meet(&(start..start + PAGE)) {
                    self.share(page, &mut child);
                }
            }
        }
        children.adopt(child);
    }

    /// Under the page's lock: the policy may be about to note what it has just done.
    fn share(&mut self, page: u32, child: &mut Child) {
        let arena = self.arena.clone();
        if arena.pages().is_blank(page) {
            return;
        }
        let Some(presence) = self.lock(page) else {
            // Being read: its slot has what it is, unless the program gave it up.
            if self.reading_of(page).is_some_and(|reading| !reading.is_dropped()) {
                child.share_slot(page, arena.swap().share(arena.pages().slot(page)));
            }
            return;
        };
        let slot = arena.pages().slot(page);
        if presence == Presence::Staged {
            let staging = arena.staging().expect("a heap has staging");
            staging.read(arena.offset(page), &mut self.page);
            child.give(page, &self.page);
        } else if presence == Presence::Absent && slot != 0 {
            child.share_slot(page, arena.swap().share(slot));
        }
        self.installer.unlock(page, presence);
    }

    /// Locks a page; `None`: it is being read.
    fn lock(&mut self, page: u32) -> Option<Presence> {
        loop {
            match self.arena.pages().try_lock(page) {
                None if self.reading_of(page).is_some() => return None,
                // The policy is at work on it, and never waits for this thread.
                None => std::thread::yield_now(),
                locked => return locked,
            }
        }
    }
}

/// A heap as its children know it.
fn parent(arena: &Arena) -> Parent {
    // Staging is not inherited.
    let absent = arena.staging().expect("a heap has staging").address(0);
    let (start, nr_pages) = (arena.view().address(0), arena.pages().len());
    Parent { start, nr_pages, absent, swap: arena.swap().clone() }
}

impl Installer {
    /// A page that was being read was given up meanwhile: it is zeros for the threads that wait for
    /// it.
    pub(super) fn give_up_dropped(&mut self, page: u32) {
        self.arena.free_slot(self.arena.pages().set_slot(page, 0));
        self.give_up(page);
        self.wake(page);
    }
}
