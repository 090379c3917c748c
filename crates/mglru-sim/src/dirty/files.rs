//! Which pages of which files are dirty, and since when: per file a bitmap of pages, over all files
//! an order by the time of the first dirty page.

use std::collections::BTreeSet;
use std::ops::Range;

use mglru::types::{MemcgId, Nanos};
use mglru_workload::op::FileId;

use crate::bit_tree::BitTree;

#[derive(Clone, Debug, Default)]
struct DirtyFile {
    pages: BitTree,
    since: Nanos,
    owner: MemcgId,
    /// Where the next visit of the flusher starts.
    cursor: u64,
}

/// Holds the dirty pages of all files.
#[derive(Clone, Debug, Default)]
pub struct DirtyFiles {
    files: Vec<DirtyFile>,
    by_time: BTreeSet<(Nanos, FileId)>,
    total: u64,
    cleared: u64,
}

impl DirtyFiles {
    /// Creates the set with all files clean.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks a page dirty; false if it was dirty. The group that dirties a clean file first owns
    /// the file's writeback until it is clean again.
    pub fn set(&mut self, file: FileId, page: u64, owner: MemcgId, now: Nanos) -> bool {
        let index = file as usize;
        if index >= self.files.len() {
            self.files.resize_with(index + 1, DirtyFile::default);
        }
        let dirty = &mut self.files[index];
        if !dirty.pages.insert(page) {
            return false;
        }
        self.total += 1;
        if dirty.pages.count() == 1 {
            (dirty.since, dirty.owner) = (now, owner);
            self.by_time.insert((now, file));
        }
        true
    }

    /// Marks a page clean, or its writeback started; false if it was not dirty.
    pub fn clear(&mut self, file: FileId, page: u64) -> bool {
        let Some(dirty) = self.files.get_mut(file as usize) else { return false };
        if !dirty.pages.remove(page) {
            return false;
        }
        self.total -= 1;
        self.cleared += 1;
        if dirty.pages.count() == 0 {
            self.by_time.remove(&(dirty.since, file));
        }
        true
    }

    /// Forgets the pages from `first` on after a truncation. Returns how many were dirty.
    pub fn truncate(&mut self, file: FileId, first: u64) -> u64 {
        let mut gone = 0;
        while let Some((page, _)) = self.next_run(file, first, 1) {
            gone += u64::from(self.clear(file, page));
        }
        gone
    }

    /// Tells whether the page is dirty.
    pub fn is_dirty(&self, file: FileId, page: u64) -> bool {
        self.pages(file).is_some_and(|pages| pages.contains(page))
    }

    /// Counts the dirty pages of a file.
    pub fn count(&self, file: FileId) -> u64 {
        self.pages(file).map_or(0, BitTree::count)
    }

    /// Counts the dirty pages of all files.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Finds the first run of dirty pages at or after `from`: (page, pages), at most `max` long.
    pub fn next_run(&self, file: FileId, from: u64, max: u64) -> Option<(u64, u64)> {
        self.pages(file)?.next_run(from, max)
    }

    /// Lists the runs of dirty pages inside a range of a file.
    pub fn runs_within(&self, file: FileId, range: Range<u64>) -> Vec<Range<u64>> {
        let mut from = range.start;
        let next = || {
            let (page, pages) = self.next_run(file, from, range.end.checked_sub(from)?)?;
            from = page + pages;
            (page < range.end).then(|| page..from.min(range.end))
        };
        std::iter::from_fn(next).collect()
    }

    /// Lists files that are dirty since `before` or earlier, oldest first; of one owner or of all.
    pub fn dirtied_by(
        &self,
        before: Nanos,
        owner: Option<MemcgId>,
    ) -> impl Iterator<Item = FileId> + '_ {
        let files = self.by_time.range(..=(before, FileId::MAX)).map(|(_, file)| *file);
        files
            .filter(move |file| owner.is_none_or(|owner| self.files[*file as usize].owner == owner))
    }

    /// Pages that ceased to be dirty so far.
    pub(super) fn cleared(&self) -> u64 {
        self.cleared
    }

    /// The flusher is through with a file; what is dirty still counts as dirtied now.
    pub(super) fn visited(&mut self, file: FileId, now: Nanos) {
        let dirty = &mut self.files[file as usize];
        dirty.cursor = 0;
        if self.by_time.remove(&(dirty.since, file)) {
            dirty.since = now;
            self.by_time.insert((now, file));
        }
    }

    pub(super) fn cursor(&self, file: FileId) -> u64 {
        self.files[file as usize].cursor
    }

    pub(super) fn set_cursor(&mut self, file: FileId, page: u64) {
        self.files[file as usize].cursor = page;
    }

    fn pages(&self, file: FileId) -> Option<&BitTree> {
        self.files.get(file as usize).map(|dirty| &dirty.pages)
    }
}

/// Scans every dirty page of a file once. Pages dirtied past the last one that was dirty at the
/// start are not looked at, so it ends however fast others write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileScan {
    file: FileId,
    at: u64,
    end: u64,
    /// Where the second leg ends, when the scan did not start at the first page.
    wrap: u64,
}

impl FileScan {
    /// Creates a scan that starts at the first page, as fsync needs it.
    pub fn whole(files: &DirtyFiles, file: FileId) -> Self {
        Self::from_page(files, file, 0)
    }

    /// Lists the runs from `page` to the end, then from the start to `page`.
    pub fn from_page(files: &DirtyFiles, file: FileId, page: u64) -> Self {
        let last = files.pages(file).and_then(BitTree::last);
        let end = last.map_or(0, |last| last + 1);
        Self { file, at: page, end, wrap: page.min(end) }
    }

    /// Returns the next run of dirty pages: (page, pages), at most `max` long.
    pub fn next(&mut self, files: &DirtyFiles, max: u64) -> Option<(u64, u64)> {
        loop {
            let run = files.next_run(self.file, self.at, max);
            if let Some((page, pages)) = run.filter(|(page, _)| *page < self.end) {
                let pages = pages.min(self.end - page);
                self.at = page + pages;
                return Some((page, pages));
            }
            if self.wrap == 0 {
                return None;
            }
            (self.at, self.end, self.wrap) = (0, self.wrap, 0);
        }
    }

    /// Returns the file that is scanned.
    pub fn file(&self) -> FileId {
        self.file
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: MemcgId = MemcgId(1);

    fn dirty(pages: impl IntoIterator<Item = u64>) -> DirtyFiles {
        let mut files = DirtyFiles::new();
        pages.into_iter().for_each(|page| assert!(files.set(3, page, OWNER, 9)));
        files
    }

    fn runs(files: &DirtyFiles, mut scan: FileScan, max: u64) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| scan.next(files, max)).collect()
    }

    #[test]
    fn pages_are_dirty_once() {
        let mut files = dirty([5]);
        assert!(!files.set(3, 5, MemcgId(2), 10));
        assert_eq!((files.count(3), files.total(), files.is_dirty(3, 5)), (1, 1, true));
        assert!(files.clear(3, 5) && !files.clear(3, 5) && !files.clear(99, 0));
        assert_eq!((files.total(), files.dirtied_by(99, None).count()), (0, 0));
    }

    #[test]
    fn runs_inside_a_range_are_cut_to_it() {
        let files = dirty([0, 1, 4, 5, 6, 9]);
        assert_eq!(files.runs_within(3, 1..6), [1..2, 4..6]);
        assert_eq!(files.runs_within(3, 2..4), []);
        assert_eq!(files.runs_within(3, 5..16), [5..7, 9..10]);
        assert_eq!(files.runs_within(9, 0..8), []);
    }

    #[test]
    fn files_are_in_order_of_their_first_dirty_page() {
        let mut files = DirtyFiles::new();
        for (file, now) in [(7, 10), (2, 20), (7, 30), (5, 30)] {
            files.set(file, now, MemcgId(file % 2), now);
        }
        assert_eq!(files.dirtied_by(29, None).collect::<Vec<_>>(), [7, 2]);
        assert_eq!(files.dirtied_by(30, Some(MemcgId(1))).collect::<Vec<_>>(), [7, 5]);
        files.clear(7, 10);
        files.clear(7, 30);
        files.set(7, 0, MemcgId(0), 40);
        assert_eq!(files.dirtied_by(40, None).collect::<Vec<_>>(), [2, 5, 7]);
        files.visited(2, 50);
        assert_eq!(files.dirtied_by(50, Some(MemcgId(0))).collect::<Vec<_>>(), [7, 2]);
    }

    #[test]
    fn scans_see_each_page_once() {
        let files = dirty((0..10).chain(100..500));
        let whole = runs(&files, FileScan::whole(&files, 3), 320);
        assert_eq!(whole, [(0, 10), (100, 320), (420, 80)]);
        let wrapped = runs(&files, FileScan::from_page(&files, 3, 450), 320);
        assert_eq!(wrapped, [(450, 50), (0, 10), (100, 320), (420, 30)]);
        assert_eq!(runs(&files, FileScan::from_page(&files, 3, 900), 400).len(), 2);
        assert_eq!(runs(&files, FileScan::whole(&files, 8), 320), []);
    }

    #[test]
    fn a_scan_ends_although_the_file_grows() {
        let mut files = dirty([0]);
        let mut scan = FileScan::whole(&files, 3);
        let mut seen = 0;
        while let Some((page, _)) = scan.next(&files, 320) {
            seen += 1;
            files.set(3, page + 1, OWNER, 0);
        }
        assert_eq!(seen, 1);
    }

    #[test]
    fn truncation_forgets_the_tail() {
        let mut files = dirty(0..200);
        assert_eq!((files.truncate(3, 150), files.count(3), files.total()), (50, 150, 150));
        assert_eq!(files.truncate(3, 0), 150);
        assert_eq!(files.dirtied_by(u64::MAX, None).count(), 0);
    }
}
