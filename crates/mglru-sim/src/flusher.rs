//! Writeback at work: the flusher threads, what starts and ends a write, fsync, and the pauses of
//! the tasks that dirty pages too fast.

use std::ops::Range;

use mglru::folio::Bit;
use mglru::types::{FolioId, MemcgId, NodeId};
use mglru_workload::FileId;

use crate::address_space::Owner;
use crate::agenda::Event;
use crate::device::Io;
use crate::dirty::{FileScan, Pause, Reason, Thresholds, group_available};
use crate::disk::{DiskId, Purpose};
use crate::machine::Machine;
use crate::task::{Doing, Flow, Sync};
use crate::tracing::Who;
use crate::writeback::{Held, Load};

/// Pages a task dirties before it asks whether it must slow down.
const DIRTY_BATCH: u32 = 32;

impl Machine {
    /// A page of a file is newer than the device.
    pub(crate) fn dirty_page(&mut self, t: usize, folio: FolioId, file: FileId, page: u64) {
        if self.world.journal.covers(file) {
            self.journal_page(folio, file, page);
        } else {
            self.dirty_folio(folio, file, page);
        }
        self.tasks[t].dirtied += 1;
    }

    /// It is to be written.
    pub(crate) fn dirty_folio(&mut self, folio: FolioId, file: FileId, page: u64) {
        let entry = &self.lru.folios()[folio];
        let (memcg, pages) = (self.world.memcg_of(entry.lruvec), entry.pages());
        // One dirty byte makes all pages of a folio count (spec §LF.12).
        let count = match (entry.flags.order(), entry.flags.has(Bit::DIRTY)) {
            (0, _) => 1,
            (_, true) => 0,
            (_, false) => entry.pages(),
        };
        self.lru.set_dirty(folio);
        self.world.attach_buffer(folio);
        self.world.take_buffers(memcg, folio, pages);
        let now = self.world.now;
        if let Some(at) = self.world.writeback.dirtied(file, page, count, memcg, now) {
            self.world.agenda.push(at, Event::FlusherTick);
        }
    }

    /// The periodic look of the flushers.
    pub(crate) fn flusher_tick(&mut self) {
        if let Some(at) = self.world.writeback.tick(self.world.now) {
            self.world.agenda.push(at, Event::FlusherTick);
        }
        self.world.wake_flusher_now();
    }

    /// The flushers write until all sleep, the device is full, or others are due.
    pub(crate) fn run_flushers(&mut self) {
        self.world.flusher_woken();
        self.world.acts(Who::Flusher);
        while self.world.files_device().has_room() {
            let Some(memcg) = self.world.writeback.next_awake() else { return };
            let above = self.is_above_background(memcg);
            let now = self.world.now;
            let next = self.world.writeback.next_run(memcg, now, above);
            self.world.trace_flusher(memcg, next.map(|run| (run.reason, run.pages)));
            if let Some(run) = next {
                self.write_pages(run.file, run.page, run.pages);
            }
            if self.others_first() {
                self.world.wake_flusher_now();
                return;
            }
        }
        self.flusher_waits = true;
    }

    fn is_above_background(&mut self, memcg: MemcgId) -> bool {
        let own = self.group_load(memcg).is_some_and(|load| load.is_above_background());
        own || self.machine_load().is_above_background()
    }

    /// Starts writing those of the pages that can be written; of a large folio all that is dirty.
    pub(crate) fn write_pages(&mut self, file: FileId, first: u64, pages: u64) {
        let mut run = 0..0;
        let mut next = first;
        while next < first + pages {
            let folio = self.world.files[file as usize].cache.folio(next);
            next = folio.map_or(next + 1, |folio| self.end_of(folio));
            match folio.filter(|&folio| self.start_write(folio)) {
                Some(folio) => self.queue_blocks(file, folio, &mut run),
                None => self.submit_write(file, std::mem::replace(&mut run, 0..0)),
            }
        }
        self.submit_write(file, run);
    }

    /// The dirty blocks of a folio join the run that is to be written, or end it and begin another.
    fn queue_blocks(&mut self, file: FileId, folio: FolioId, run: &mut Range<u64>) {
        if self.lru.folios()[folio].flags.order() == 0 {
            let page = self.start_of(folio);
            return self.queue_run(file, page..page + 1, run);
        }
        let blocks = self.world.start_blocks(self.lru.folios_mut(), folio);
        if blocks.is_empty() {
            self.lru.end_writeback(folio);
        }
        blocks.into_iter().for_each(|piece| self.queue_run(file, piece, run));
    }

    fn queue_run(&mut self, file: FileId, piece: Range<u64>, run: &mut Range<u64>) {
        if run.end == piece.start && !run.is_empty() {
            run.end = piece.end;
        } else {
            self.submit_write(file, std::mem::replace(run, piece));
        }
    }

    /// Takes a dirty folio into writeback: it is clean and write-protected from now on.
    fn start_write(&mut self, folio: FolioId) -> bool {
        let flags = self.lru.folios()[folio].flags;
        if !flags.has(Bit::DIRTY) || flags.has_any([Bit::WRITEBACK, Bit::LOCKED]) {
            return false;
        }
        self.write_protect(folio);
        self.lru.clean(folio);
        self.lru.start_writeback(folio);
        true
    }

    fn write_protect(&mut self, folio: FolioId) {
        if !self.lru.folios()[folio].is_mapped() {
            return;
        }
        let owner = Owner::unpack(self.lru.folios()[folio].owner);
        let n = self.lru.folios()[folio].pages() as u32;
        for nth in 0..self.world.spaces.nr_mappings(owner) {
            let Some((region, pages)) = self.world.spaces.mapped(owner, n, nth) else { continue };
            let table = &mut self.world.spaces.vma_mut(region).table;
            for page in pages {
                if table.get(page).has_folio() {
                    table.clear_dirty(page);
                }
            }
        }
    }

    fn submit_write(&mut self, file: FileId, run: Range<u64>) {
        let most = self.world.writeback.spec.request_pages();
        for page in run.clone().step_by(most as usize) {
            let pages = most.min(run.end - page) as u32;
            let memcg = self.memcg_of_page(file, page);
            let now = self.world.now;
            self.world.writeback.started(file, page, pages, memcg, now);
            let io = Io { write: true, lba_page: self.world.lba(file, page), pages };
            let purpose = Purpose::Writeback { file, page, pages };
            if self.world.submit(DiskId::Files, io, purpose) {
                self.end_write(file, page, pages);
            }
        }
    }

    fn memcg_of_page(&self, file: FileId, page: u64) -> MemcgId {
        let folio = self.world.files[file as usize].cache.folio(page);
        let folio = folio.expect("a page under writeback stays cached");
        self.world.memcg_of(self.lru.folios()[folio].lruvec)
    }

    /// Pages of a file are durable.
    pub(crate) fn end_write(&mut self, file: FileId, page: u64, pages: u32) {
        let memcg = self.memcg_of_page(file, page);
        let now = self.world.now;
        self.world.writeback.ended(file, pages, memcg, now);
        let (mut next, end) = (page, page + u64::from(pages));
        while next < end {
            let folio = self.world.files[file as usize].cache.folio(next);
            let folio = folio.expect("a page under writeback stays cached");
            let part = next..self.end_of(folio).min(end);
            next = part.end;
            if self.world.end_blocks(self.lru.folios_mut(), folio, part) {
                self.lru.end_writeback(folio);
                self.wake_waiters(folio);
            }
        }
        self.wake_throttled();
        self.wake_syncing();
        if std::mem::take(&mut self.flusher_waits) {
            self.world.wake_flusher_now();
        }
    }

    /// Begins to write one file back.
    pub(crate) fn begin_sync(&mut self, t: usize, file: FileId) -> Flow {
        self.tasks[t].doing = Doing::Sync(Sync { files: file..file + 1, started: false });
        Flow::Again
    }

    /// Writes files back, one after the other, and waits until that is done.
    pub(crate) fn sync(&mut self, t: usize, sync: Sync) -> Flow {
        if sync.files.is_empty() {
            return Flow::Done;
        }
        let file = sync.files.start;
        if self.tasks[t].scan.is_none() && !sync.started {
            self.tasks[t].scan = Some(FileScan::whole(&self.world.writeback.files, file));
        }
        while let Some(mut scan) = self.tasks[t].scan.take() {
            if !self.world.files_device().has_room() {
                self.tasks[t].scan = Some(scan);
                return self.wait_for_writes(t);
            }
            let most = self.world.writeback.spec.request_pages();
            if let Some((page, pages)) = scan.next(&self.world.writeback.files, most) {
                self.write_pages(file, page, pages);
                self.tasks[t].scan = Some(scan);
            }
        }
        if self.world.writeback.under_way(file) > 0 {
            self.tasks[t].doing = Doing::Sync(Sync { started: true, ..sync });
            return self.wait_for_writes(t);
        }
        let files = sync.files.start + 1..sync.files.end;
        self.tasks[t].doing = Doing::Sync(Sync { files, started: false });
        Flow::Again
    }

    fn wait_for_writes(&mut self, t: usize) -> Flow {
        self.syncing.push(t as u32);
        Flow::Wait
    }

    fn wake_syncing(&mut self) {
        for task in std::mem::take(&mut self.syncing) {
            self.wake(task as usize);
        }
    }

    /// A task that dirtied enough asks whether it must slow down. `Some`: it must.
    pub(crate) fn balance_dirty(&mut self, t: usize) -> Option<Flow> {
        if self.tasks[t].dirtied < DIRTY_BATCH && !self.tasks[t].held_dirty {
            return None;
        }
        let memcg = self.tasks[t].memcg;
        let (machine, group) = (self.machine_load(), self.group_load(memcg));
        if machine.is_above_background() {
            self.wake_background(None);
        }
        if group.is_some_and(|load| load.is_above_background()) {
            self.wake_background(Some(memcg));
        }
        let dirtied = u64::from(std::mem::take(&mut self.tasks[t].dirtied));
        let now = self.world.now;
        let pause = self.world.writeback.pause(now, dirtied, memcg, machine, group);
        self.tasks[t].held_dirty = matches!(pause, Pause::Hold(_));
        self.world.trace_balance(memcg, group.unwrap_or(machine), dirtied, pause);
        match pause {
            Pause::None => None,
            Pause::Sleep(ns) | Pause::Hold(ns) => {
                self.world.writeback.paused += ns;
                Some(Flow::Sleep(now + ns))
            }
        }
    }

    fn wake_background(&mut self, memcg: Option<MemcgId>) {
        self.world.trace_background(memcg.unwrap_or(MemcgId::ROOT));
        self.world.writeback.wake(memcg, Reason::Background);
        self.world.wake_flusher_now();
    }

    /// Dirty pages of files: with large folios all pages of those that are dirty (spec §LF.12).
    pub(crate) fn dirty_pages(&self) -> u64 {
        if !self.world.large {
            return self.world.writeback.files.total();
        }
        let nodes = 0..self.world.zones.nodes() as u8;
        nodes.map(|node| self.lru.node_write(NodeId(node)).0).sum()
    }

    /// Dirty load of the machine.
    pub(crate) fn machine_load(&self) -> Load {
        let dirty = self.dirty_pages();
        let writeback = self.world.writeback.all_under_way();
        let limits = self.world.writeback.spec.thresholds(self.available());
        Load { dirty, writeback, limits }
    }

    /// Pages that could hold page cache.
    fn available(&self) -> u64 {
        let all = self.world.zones.free_pages() + self.world.cached_pages();
        all.saturating_sub(self.world.zones.kept_back())
    }

    /// Counts what a group holds of files now.
    fn held_dirty(&self, memcg: MemcgId) -> Held {
        let (dirty, writeback) = self.lru.memcg_write(memcg);
        Held { dirty, writeback, file: self.world.held(memcg).file }
    }

    /// The statistics of groups are summed up over the processors.
    pub(crate) fn sum_up(&mut self) {
        self.lru.flush_stats();
        if self.world.writeback.spec.summed {
            let groups = (0..self.world.memcgs.len() as u32).map(MemcgId);
            self.world.writeback.summed = groups.map(|memcg| self.held_dirty(memcg)).collect();
        }
    }

    /// Dirty load of a group; the root, and groups without limits of their own, have none.
    fn group_load(&self, memcg: MemcgId) -> Option<Load> {
        let headroom = self.world.memcgs.room(memcg);
        if !self.world.writeback.spec.per_group || headroom == u64::MAX {
            return None;
        }
        let summed = self.world.writeback.summed.get(memcg.index()).copied();
        let Held { dirty, writeback, file } = summed.unwrap_or_else(|| self.held_dirty(memcg));
        let machine_dirty = self.dirty_pages();
        let available = group_available(file, dirty, headroom, self.available(), machine_dirty);
        let limits: Thresholds = self.world.writeback.spec.thresholds(available);
        Some(Load { dirty, writeback, limits })
    }
}
