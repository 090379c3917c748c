//! Pages that a processor keeps for itself, so that single pages rarely touch the free lists.

use super::{MigrateType, Pfn};

/// Pages moved between a processor and the free lists at a time.
pub(super) const BATCH: usize = 31;
/// A processor keeps so many pages at most.
const HIGH: usize = 6 * BATCH;

/// One processor's pages, by the type they serve; the last one freed is the next one taken.
#[derive(Clone, Debug, Default)]
pub(super) struct PerCpu {
    pages: [Vec<Pfn>; MigrateType::REQUESTED.len()],
}

impl PerCpu {
    /// Takes the page freed last.
    pub(super) fn take(&mut self, wanted: MigrateType) -> Option<Pfn> {
        self.pages[wanted.index()].pop()
    }

    /// Keeps a page of a pageblock of this type; kept-back blocks serve movable requests.
    pub(super) fn keep(&mut self, pfn: Pfn, block: MigrateType) {
        let list =
            if MigrateType::REQUESTED.contains(&block) { block } else { MigrateType::Movable };
        self.pages[list.index()].push(pfn);
    }

    /// The oldest pages, when there are too many.
    pub(super) fn overflow(&mut self) -> Vec<Pfn> {
        if self.len() <= HIGH {
            return Vec::new();
        }
        let longest = self.pages.iter_mut().max_by_key(|list| list.len()).expect("three lists");
        let some = BATCH.min(longest.len());
        longest.drain(..some).collect()
    }

    /// All pages.
    pub(super) fn drain(&mut self) -> Vec<Pfn> {
        self.pages.iter_mut().flat_map(|list| list.drain(..)).collect()
    }

    /// Pages kept.
    pub(super) fn len(&self) -> usize {
        self.pages.iter().map(Vec::len).sum()
    }
}
