//! Bringing a window of pages into a file's cache: each hole gets a page, locked until its data
//! has come; neighbours are read together (experiments §0.6).

use mglru::Entry;
use mglru::folio::{Bit, FolioKind};
use mglru::types::FolioId;
use mglru_workload::FileId;

use crate::address_space::Owner;
use crate::charge::Page;
use crate::device::Io;
use crate::disk::{DiskId, Purpose};
use crate::machine::Machine;
use crate::orders::order_at;
use crate::readahead::Plan;
use crate::task::{Flow, FreshPage};

/// Describes a window under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    file: FileId,
    next: u64,
    end: u64,
    /// First page brought in and not yet asked of the device; they run up to `next`.
    run: u64,
    mark: Option<u64>,
    /// The order of its folios, a power of two of pages, where they fit; none but single pages once
    /// one of that size could not be had.
    order: u8,
    /// The page that must come; others are given up when memory is short.
    wanted: Option<u64>,
    /// For a page fault: accesses through the mapping say something about reuse.
    fault: Option<bool>,
}

/// A page that comes into a file's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) file: FileId,
    pub(crate) index: u64,
    pub(crate) entry: Entry,
    /// It carries the readahead mark.
    pub(crate) mark: bool,
    /// It comes to be written to, whole or in part.
    pub(crate) overwritten: bool,
}

impl Fill {
    /// Creates the window of the pages of a plan that lie inside the file.
    pub fn new(
        file: FileId,
        plan: Plan,
        pages: u64,
        wanted: Option<u64>,
        fault: Option<bool>,
    ) -> Self {
        let (next, end) = (plan.start, (plan.start + plan.pages).min(pages));
        let Plan { mark, order, .. } = plan;
        Self { file, next, end: end.max(next), run: next, mark, order, wanted, fault }
    }

    /// The order of the folio to come next.
    fn order_here(&self) -> u8 {
        match self.order {
            0 => 0,
            order => order_at(self.next, order, self.end - 1),
        }
    }

    fn entry(&self) -> Entry {
        self.fault.map_or(Entry::Plain, |recency| Entry::Fault { recency })
    }
}

impl Machine {
    /// Goes on with the task's window; [`Flow::Again`] when it is through.
    pub(crate) fn fill_on(&mut self, t: usize) -> Flow {
        let Some(mut fill) = self.tasks[t].fill else { return Flow::Again };
        while fill.next < fill.end {
            if self.world.files[fill.file as usize].cache.has(fill.next) {
                self.submit_run(&mut fill);
                fill.next += 1;
                fill.run = fill.next;
                fill.order = 0;
                continue;
            }
            let order = fill.order_here();
            let wanted = fill.wanted == Some(fill.next);
            // What is locked and was never asked for would stay so while this page is waited for.
            let unasked = fill.run < fill.next;
            let soft = order > 0 || !wanted || unasked;
            match self.take_pages(t, order, soft) {
                Page::Ready(page) => self.fill_page(t, &mut fill, page),
                Page::Refused if order > 0 && !self.is_dying(t) => {
                    self.submit_run(&mut fill);
                    fill.order = 0;
                }
                Page::Refused if wanted && unasked && !self.is_dying(t) => {
                    self.submit_run(&mut fill);
                }
                Page::Refused => fill.end = fill.next,
                Page::Held(flow) => {
                    self.tasks[t].fill = Some(fill);
                    return flow;
                }
            }
        }
        self.submit_run(&mut fill);
        self.tasks[t].fill = None;
        Flow::Again
    }

    fn fill_page(&mut self, t: usize, fill: &mut Fill, page: FreshPage) {
        let (index, next) = (fill.next, fill.next + page.pages());
        let cache = &self.world.files[fill.file as usize].cache;
        if cache.has(index) || (index + 1..next).any(|at| cache.has(at)) {
            // Somebody else brought it in while this task reclaimed, or some time before.
            self.world.give_page_back(self.tasks[t].memcg, page);
            fill.order = 0;
            return;
        }
        let mark = fill.mark.is_some_and(|mark| (index..next).contains(&mark));
        let Fill { file, .. } = *fill;
        let entry = fill.entry();
        let incoming = Incoming { file, index, entry, mark, overwritten: false };
        self.insert_page(t, incoming, page);
        let ahead = page.pages() - u64::from(fill.wanted == Some(index));
        self.world.events.readahead_pages += ahead;
        fill.next = next;
    }

    /// Caches a new folio, locked: its data is still to come. A page that comes back to be
    /// overwritten is no refault: nobody missed what it held.
    pub(crate) fn insert_page(&mut self, t: usize, incoming: Incoming, page: FreshPage) -> FolioId {
        let Incoming { file, index, entry, mark, overwritten } = incoming;
        let owner = Owner::File { file, page: index as u32 }.pack();
        let memcg = self.tasks[t].memcg;
        let FreshPage { order, node, zone, .. } = page;
        let folio = self.lru.new_folio(FolioKind::File, memcg, node, zone, order, owner);
        let flags = &mut self.lru.folios_mut()[folio].flags;
        flags.set(Bit::LOCKED);
        flags.put(self.readahead_mark, mark);
        let shadow = self.world.cache_folio(file, index, page.pages(), folio);
        if let Some(shadow) = shadow.filter(|_| !overwritten) {
            let in_fault = entry == Entry::Fault { recency: true };
            self.lru.refault(folio, shadow, in_fault);
        }
        self.world.hold(&self.lru.folios()[folio]);
        self.world.place(folio, page);
        self.world.files[file as usize].owner.get_or_insert(memcg);
        self.world.settle_nodes(file);
        self.lru.add(folio, entry);
        folio
    }

    /// Does reading this page start the next window? The mark is gone then. It counts only while no
    /// writeback is pending, because it may be reclaim's mark.
    pub(crate) fn takes_readahead_mark(&mut self, folio: FolioId) -> bool {
        let flags = &mut self.lru.folios_mut()[folio].flags;
        !flags.has(Bit::WRITEBACK) && flags.take(self.readahead_mark)
    }

    /// Asks the device for the pages brought in since the last time.
    fn submit_run(&mut self, fill: &mut Fill) {
        if fill.run < fill.next {
            self.submit_read(fill.file, fill.run, (fill.next - fill.run) as u32);
            fill.run = fill.next;
        }
    }

    /// Reads neighbouring pages of a file into their locked folios.
    pub(crate) fn submit_read(&mut self, file: FileId, page: u64, pages: u32) {
        let io = Io { write: false, lba_page: self.world.lba(file, page), pages };
        if self.world.submit(DiskId::Files, io, Purpose::Read { file, page, pages }) {
            self.end_read(file, page, pages);
        }
    }

    /// Data has come: the pages are unlocked.
    pub(crate) fn end_read(&mut self, file: FileId, page: u64, pages: u32) {
        let end = page + u64::from(pages);
        let mut at = page;
        while at < end {
            let folio = self.world.files[file as usize].cache.folio(at);
            let folio = folio.expect("a locked page stays cached");
            at = self.end_of(folio);
            self.unlock(folio);
        }
    }

    /// The page of its file that comes after a folio.
    pub(crate) fn end_of(&self, folio: FolioId) -> u64 {
        let folio = &self.lru.folios()[folio];
        u64::from(folio.owner[1]) + folio.pages()
    }

    /// The page of its file that a folio starts with.
    pub(crate) fn start_of(&self, folio: FolioId) -> u64 {
        u64::from(self.lru.folios()[folio].owner[1])
    }

    /// A dying task leaves its window: what was brought in is read all the same.
    pub(crate) fn abandon_fill(&mut self, t: usize) {
        if let Some(mut fill) = self.tasks[t].fill.take() {
            self.submit_run(&mut fill);
        }
    }
}
