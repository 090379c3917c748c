//! Reading and writing files through a descriptor, and cutting them (experiments §0.6, spec §3.2).

use mglru::Entry;
use mglru::folio::Bit;
use mglru::types::FolioId;
use mglru_workload::FileId;

use crate::charge::Page;
use crate::fill::{Fill, Incoming};
use crate::machine::Machine;
use crate::orders::order_of_write;
use crate::readahead::Marked;
use crate::spec::PAGE_SIZE;
use crate::task::{Doing, Flow, Read, Write};

impl Machine {
    /// Begins a read of `len` bytes at `off`; what lies past the end of the file is not there.
    pub(crate) fn begin_read(&mut self, t: usize, file: FileId, off: u64, len: u32) -> Flow {
        let open = &self.world.files[file as usize];
        let end = (off + u64::from(len)).min(open.bytes);
        if end <= off {
            return Flow::Done;
        }
        let (next, last) = (off / PAGE_SIZE, (end - 1) / PAGE_SIZE);
        let due = self.next_to_mark(file, next);
        self.tasks[t].doing = Doing::Read(Read { file, next, last, due });
        Flow::Again
    }

    /// Goes on with a read.
    pub(crate) fn read(&mut self, t: usize, mut read: Read) -> Flow {
        if self.tasks[t].fill.is_some() {
            let flow = self.fill_on(t);
            if flow != Flow::Again {
                return flow;
            }
        }
        while read.next <= read.last {
            match self.read_page(t, &mut read) {
                Flow::Done => read.next += 1,
                flow => {
                    self.tasks[t].doing = Doing::Read(read);
                    return flow;
                }
            }
        }
        self.world.files[read.file as usize].descriptor.set_prev(read.last);
        Flow::Done
    }

    /// Each folio is marked accessed once a call; not the first one if the descriptor's previous
    /// read ended in it (spec §LF.6).
    fn next_to_mark(&self, file: FileId, first: u64) -> u64 {
        let open = &self.world.files[file as usize];
        let Some(prev) = open.descriptor.prev() else { return first };
        if open.largest == 0 {
            return first + u64::from(prev == first);
        }
        match (open.cache.folio(first), open.cache.folio(prev)) {
            (Some(folio), Some(same)) if folio == same => self.end_of(folio),
            _ => first + u64::from(prev == first),
        }
    }

    fn read_page(&mut self, t: usize, read: &mut Read) -> Flow {
        let Read { file, next, last, .. } = *read;
        let Some(folio) = self.world.files[file as usize].cache.folio(next) else {
            return self.read_miss(t, file, next, last);
        };
        let flags = self.lru.folios()[folio].flags;
        if self.takes_readahead_mark(folio) && self.read_ahead(t, file, folio, last + 1, None) {
            return Flow::Again;
        }
        if flags.has(Bit::LOCKED) {
            return self.wait_for_data(t, folio);
        }
        if next >= read.due {
            read.due = self.end_of(folio);
            self.lru.accessed(folio);
        }
        self.end_stall(t);
        self.world.now += self.page_ns;
        Flow::Done
    }

    fn read_miss(&mut self, t: usize, file: FileId, next: u64, last: u64) -> Flow {
        let max = self.readahead_max;
        let open = &mut self.world.files[file as usize];
        let plan = open.descriptor.miss(next, last + 1 - next, max, &open.cache);
        let pages = open.pages();
        self.tasks[t].fill = Some(Fill::new(file, plan, pages, Some(next), None));
        Flow::Again
    }

    /// Starts the next window when a task that reads up to page `until` meets a folio's mark.
    /// False: there is none.
    pub(crate) fn read_ahead(
        &mut self,
        t: usize,
        file: FileId,
        folio: FolioId,
        until: u64,
        fault: Option<bool>,
    ) -> bool {
        let max = self.readahead_max;
        let index = self.start_of(folio);
        let met = Marked { index, pages: self.lru.folios()[folio].pages() };
        let open = &mut self.world.files[file as usize];
        let (largest, cache) = (open.largest, &open.cache);
        let plan = open.descriptor.marked(met, until - index, max, largest, cache);
        let end = open.pages();
        self.tasks[t].fill = plan.map(|plan| Fill::new(file, plan, end, None, fault));
        plan.is_some()
    }

    /// Begins a write of `len` bytes at `off`.
    pub(crate) fn begin_write(&mut self, t: usize, file: FileId, off: u64, len: u32) -> Flow {
        if len == 0 {
            return Flow::Done;
        }
        let most = self.world.files[file as usize].largest;
        let end = off + u64::from(len);
        self.tasks[t].doing = Doing::Write(Write { file, next: off, end, most });
        Flow::Again
    }

    /// Goes on with a write.
    pub(crate) fn write(&mut self, t: usize, mut write: Write) -> Flow {
        while write.next < write.end {
            match self.write_folio(t, &mut write) {
                Flow::Done => {}
                flow => {
                    self.tasks[t].doing = Doing::Write(write);
                    return flow;
                }
            }
            self.tasks[t].doing = Doing::Write(write);
            if let Some(flow) = self.balance_dirty(t) {
                return flow;
            }
        }
        Flow::Done
    }

    /// Writes what the next folio takes of it.
    fn write_folio(&mut self, t: usize, write: &mut Write) -> Flow {
        let Write { file, next, .. } = *write;
        let index = next / PAGE_SIZE;
        let Some(folio) = self.world.files[file as usize].cache.folio(index) else {
            return self.write_miss(t, write);
        };
        if self.lru.folios()[folio].flags.has(Bit::LOCKED) {
            return self.wait_for_data(t, folio);
        }
        self.end_stall(t);
        let end = (self.end_of(folio) * PAGE_SIZE).min(write.end);
        for page in index..end.div_ceil(PAGE_SIZE) {
            self.dirty_page(t, folio, file, page);
            self.world.now += self.page_ns;
        }
        let open = &mut self.world.files[file as usize];
        open.bytes = open.bytes.max(end);
        (write.next, write.most) = (end, open.largest);
        Flow::Done
    }

    /// A page that is not cached: a new folio, and the old data of its first page unless all of it
    /// is overwritten. A large folio that cannot be had is tried half as large.
    fn write_miss(&mut self, t: usize, write: &mut Write) -> Flow {
        let Write { file, next, end, most } = *write;
        let (index, whole) = (next / PAGE_SIZE, self.is_whole(write));
        let order = order_of_write(index, end - next, most);
        let page = match self.take_pages(t, order, false) {
            Page::Ready(page) => page,
            Page::Refused => {
                write.most = order.saturating_sub(1);
                return Flow::Again;
            }
            Page::Held(flow) => return flow,
        };
        let cache = &self.world.files[file as usize].cache;
        if (index..index + page.pages()).any(|at| cache.has(at)) {
            self.world.give_page_back(self.tasks[t].memcg, page);
            write.most = order.saturating_sub(1);
            return Flow::Again;
        }
        let incoming =
            Incoming { file, index, entry: Entry::Plain, mark: false, overwritten: true };
        let folio = self.insert_page(t, incoming, page);
        if whole {
            self.unlock(folio);
        } else {
            self.submit_read(file, index, 1);
        }
        Flow::Again
    }

    /// Nothing of the page's old data survives the write.
    fn is_whole(&self, write: &Write) -> bool {
        let (start, end) = (write.next, page_end(write));
        let bytes = self.world.files[write.file as usize].bytes;
        let page = start / PAGE_SIZE * PAGE_SIZE;
        let covers_start = start == page || page >= bytes;
        let covers_end = end == page + PAGE_SIZE || end >= bytes;
        covers_start && covers_end
    }

    /// Begins to cut (or extend) a file to `len` bytes.
    pub(crate) fn begin_truncate(&mut self, t: usize, file: FileId, len: u64) -> Flow {
        self.world.files[file as usize].bytes = len;
        self.tasks[t].doing = Doing::Truncate { file, page: len.div_ceil(PAGE_SIZE) };
        Flow::Again
    }

    /// Drops cached pages from `page` on, waiting for those that are being read or written.
    pub(crate) fn truncate(&mut self, t: usize, file: FileId, page: u64) -> Flow {
        let cached = |machine: &Self, from: u64| {
            let cache = &machine.world.files[file as usize].cache;
            cache.folios(from, u64::MAX).next()
        };
        // Shadows of a large file are passed over once, not again for each page.
        let mut from = page;
        self.world.writeback.files.truncate(file, page);
        while let Some((index, folio)) = cached(self, from) {
            let flags = self.lru.folios()[folio].flags;
            if flags.has_any([Bit::LOCKED, Bit::WRITEBACK]) {
                self.wait_for(t, folio);
                return Flow::Wait;
            }
            if self.start_of(folio) < index {
                self.split_before(file, folio, index);
                continue;
            }
            from = self.end_of(folio);
            self.drop_cached(file, folio);
        }
        self.world.truncate_cache(file, page);
        Flow::Done
    }

    /// Takes a folio out of the cache for good; it must be neither locked nor being written.
    pub(crate) fn drop_cached(&mut self, file: FileId, folio: FolioId) {
        self.world.unmap_file_folio(self.lru.folios_mut(), folio);
        self.lru.remove(folio);
        let (start, end) = (self.start_of(folio), self.end_of(folio));
        self.world.trace_cached(false, file, start, folio, end - start);
        for page in start..end {
            self.world.files[file as usize].cache.remove(page, None);
        }
        self.world.settle_nodes(file);
        self.world.uncharge(self.lru.folios(), folio);
        self.lru.free_folio(folio);
    }
}

/// Where the page ends that is written next, or the write.
fn page_end(write: &Write) -> u64 {
    ((write.next / PAGE_SIZE + 1) * PAGE_SIZE).min(write.end)
}
