//! Blocks of a folio on their way to the device: of a large one only those are written that are
//! dirty, and its writeback ends with the last of them (spec §LF.12).

use std::ops::Range;

use mglru::folio::Folios;
use mglru::host::Outcome;
use mglru::types::{FolioId, LruType};
use mglru_workload::FileId;

use super::World;
use crate::device::Io;
use crate::disk::{DiskId, Purpose};

impl World {
    /// The runs of pages to write of a folio whose writeback starts; it keeps their number.
    pub(crate) fn start_blocks(&mut self, folios: &mut Folios, folio: FolioId) -> Vec<Range<u64>> {
        let entry = &mut folios[folio];
        let [file, page] = entry.owner;
        let start = u64::from(page);
        if entry.flags.order() == 0 {
            return std::iter::once(start..start + 1).collect();
        }
        let blocks = self.writeback.files.runs_within(file, start..start + entry.pages());
        entry.host = blocks.iter().map(|run| (run.end - run.start) as u32).sum();
        blocks
    }

    /// A part of a folio is written. True: nothing is left to be.
    pub(crate) fn end_blocks(
        &mut self,
        folios: &mut Folios,
        folio: FolioId,
        part: Range<u64>,
    ) -> bool {
        let entry = &mut folios[folio];
        if entry.flags.order() > 0 {
            entry.host -= (part.end - part.start) as u32;
        }
        entry.flags.order() == 0 || entry.host == 0
    }

    /// Reclaim itself writes what is dirty of a folio (rules up to 6.18).
    pub(super) fn write_file_folio(
        &mut self,
        folios: &mut Folios,
        folio: FolioId,
        file: FileId,
    ) -> Outcome {
        self.trace_write(folio, LruType::File);
        let memcg = self.memcg_of(folios[folio].lruvec);
        let mut left = false;
        for run in self.start_blocks(folios, folio) {
            let (page, pages) = (run.start, (run.end - run.start) as u32);
            self.writeback.started(file, page, pages, memcg, self.now);
            let io = Io { write: true, lba_page: self.lba(file, page), pages };
            if self.submit(DiskId::Files, io, Purpose::Writeback { file, page, pages }) {
                self.writeback.ended(file, pages, memcg, self.now);
                self.end_blocks(folios, folio, run);
            } else {
                left = true;
            }
        }
        if left { Outcome::WriteQueued } else { Outcome::Ready { wrote: true } }
    }
}
