//! The journal of a file system. A change to its own blocks (inode tables, directories, maps of
//! blocks) stays in memory until the transaction it is part of is committed: such a page can be
//! neither written, reclaimed nor moved. After that it is dirty like another, and still not moved
//! before it is written: pages of a device have no method for that.

use std::collections::BTreeSet;

use mglru::folio::Bit;
use mglru::types::{FolioId, Nanos};
use mglru_workload::FileId;

use crate::agenda::Event;
use crate::device::Io;
use crate::disk::{DiskId, Purpose};
use crate::machine::Machine;

/// A transaction is committed after so long: the `commit` option of ext3, by default.
const COMMIT_NS: Nanos = 5_000_000_000;
/// Pages of the log besides the changed ones: the descriptor and the commit block.
const RECORD_PAGES: u32 = 2;

/// Changes that are not committed.
#[derive(Clone, Debug)]
pub struct Journal {
    /// The file that stands for the device's own blocks.
    blocks: Option<FileId>,
    /// Where the log is on the device, in pages.
    lba: u64,
    /// Pages changed in the transaction that is open.
    running: BTreeSet<u64>,
    /// Pages of the one that is being written to the log.
    committing: BTreeSet<u64>,
}

impl Journal {
    /// Creates a journal with nothing changed. The log lies behind all files.
    pub fn new(blocks: Option<FileId>, lba: u64) -> Self {
        Self { blocks, lba, running: BTreeSet::new(), committing: BTreeSet::new() }
    }

    /// Tells whether changes to this file are held back.
    pub fn covers(&self, file: FileId) -> bool {
        self.blocks == Some(file)
    }
}

impl Machine {
    /// A block of the file system has changed: its page is held until that is committed.
    pub(crate) fn journal_page(&mut self, folio: FolioId, file: FileId, page: u64) {
        let journal = &mut self.world.journal;
        if !journal.running.insert(page) {
            return;
        }
        if journal.running.len() == 1 {
            self.world.agenda.push(self.world.now + COMMIT_NS, Event::Commit);
        }
        // Blocks that an older transaction left to be written wait for this one.
        if self.world.writeback.files.clear(file, page) {
            self.lru.clean(folio);
        }
        self.lru.folios_mut()[folio].flags.set(Bit::PINNED);
    }

    /// The open transaction is closed and written to the log, after the one before it.
    pub(crate) fn commit(&mut self) {
        let journal = &mut self.world.journal;
        if !journal.committing.is_empty() {
            return self.world.agenda.push(self.world.now + COMMIT_NS, Event::Commit);
        }
        journal.committing = std::mem::take(&mut journal.running);
        let pages = journal.committing.len() as u32 + RECORD_PAGES;
        let io = Io { write: true, lba_page: journal.lba, pages };
        if self.world.submit(DiskId::Files, io, Purpose::Commit) {
            self.committed();
        }
    }

    /// It is in the log: its pages may be written to their own places.
    pub(crate) fn committed(&mut self) {
        let journal = &mut self.world.journal;
        let Some(file) = journal.blocks else { return };
        for page in std::mem::take(&mut journal.committing) {
            if self.world.journal.running.contains(&page) {
                continue;
            }
            let Some(folio) = self.world.files[file as usize].cache.folio(page) else { continue };
            self.lru.folios_mut()[folio].flags.clear(Bit::PINNED);
            self.dirty_folio(folio, file, page);
        }
    }
}
