//! Readahead: which pages a miss reads, and which page starts the next window (experiments §0.6).
//!
//! Pure decisions: the caller says what is cached and carries the plan out. The state belongs to
//! an open file and is shared by all that use the descriptor, so that interleaved readers confuse
//! each other exactly as threads of one process do.

/// Misses beyond hits after which a mapped file is no longer read around (experiments §0.6).
const MMAP_LOTS_OF_MISSES: u32 = 100;
/// Each window of a stream has folios so many orders larger than the one before.
const ORDER_STEP: u8 = 2;
/// Bound of the miss counter.
const MMAP_MISS_MAX: u32 = 10 * MMAP_LOTS_OF_MISSES;

/// Shows the part of the page cache that a decision depends on.
pub trait CachedPages {
    /// Cached pages directly before `index`, counted up to `most`.
    fn cached_before(&self, index: u64, most: u64) -> u64;
    /// The first page at or after `from` that is not cached.
    fn next_hole(&self, from: u64) -> u64;
}

/// Describes the pages to read: `start .. start + pages`, cached ones skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Holds the first page.
    pub start: u64,
    /// Counts the pages.
    pub pages: u64,
    /// Holds the page that, when met, starts the next window; with large folios the folio that
    /// contains it.
    pub mark: Option<u64>,
    /// Holds the order of its folios, a power of two of pages, where they fit (spec §LF.3).
    pub order: u8,
}

impl Plan {
    /// Single pages that say nothing about what is read next.
    fn bare(start: u64, pages: u64) -> Self {
        Self { start, pages, mark: None, order: 0 }
    }
}

/// Names the access advice of a mapping, as far as readahead is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAdvice {
    /// Reads around the fault, until misses prevail.
    Normal,
    /// Reads the faulting page only.
    Random,
    /// Reads as a buffered reader would.
    Sequential,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    start: u64,
    size: u64,
    ahead: u64,
    /// The order of its folios, kept for the next one.
    order: u8,
}

/// Describes a folio whose mark was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Holds its first page.
    pub index: u64,
    /// Counts its pages.
    pub pages: u64,
}

/// Holds the readahead state of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// The last page read.
    prev: Option<u64>,
    window: Window,
    mmap_misses: u32,
}

impl FileState {
    /// Returns the last page read through the descriptor.
    pub fn prev(&self) -> Option<u64> {
        self.prev
    }

    /// Records that a read has ended at this page.
    pub fn set_prev(&mut self, page: u64) {
        self.prev = Some(page);
    }

    /// Plans a buffered read of `pages` pages that misses at `index`, in windows up to `max` pages.
    pub fn miss(&mut self, index: u64, pages: u64, max: u64, cached: &impl CachedPages) -> Plan {
        if max == 0 {
            return Plan::bare(index, 1);
        }
        if index == 0 || pages > max || self.follows(index) {
            let size = first_size(pages, max);
            let ahead = if size > pages { size - pages } else { size / 2 };
            return self.open(index, size, ahead);
        }
        let history = cached.cached_before(index, max);
        if history <= pages {
            return Plan::bare(index, pages);
        }
        let whole = history == index;
        let history = if whole { history * 2 } else { history };
        self.open(index, (history + pages).min(max), 1)
    }

    /// Plans reads for a reader that wants `pages` pages from a folio's start on and met its mark;
    /// `None`: nothing to read. Folios of the next window are larger, up to `largest` (spec §LF.2).
    pub fn marked(
        &mut self,
        folio: Marked,
        pages: u64,
        max: u64,
        largest: u8,
        cached: &impl CachedPages,
    ) -> Option<Plan> {
        if max == 0 {
            return None;
        }
        let index = folio.index;
        let Window { start, size, ahead, .. } = self.window;
        let expected = start + size - ahead;
        if index == expected - expected % folio.pages {
            // A mark that writeback left, on a descriptor that has read nothing ahead yet.
            let next = next_size(size, max);
            return (next > 0).then(|| self.ramp(start + size, next, max, largest));
        }
        let hole = cached.next_hole(index + 1);
        if hole - index > max {
            return None;
        }
        Some(self.ramp(hole, next_size(hole - index + pages, max), max, largest))
    }

    /// Opens the next window of a stream. Its end is rounded down so that the folios after it can
    /// be large.
    fn ramp(&mut self, start: u64, size: u64, max: u64, largest: u8) -> Plan {
        if largest == 0 {
            return self.open(start, size, size);
        }
        let grown = self.window.order + ORDER_STEP;
        let align = 1 << grown.min(max.trailing_zeros() as u8);
        let end = (start + size) / align * align;
        let size = if end > start { end - start } else { size };
        let order = grown.min(largest).min(size.ilog2() as u8);
        let plan = self.open(start, size, size);
        self.window.order = order;
        Plan { order, ..plan }
    }

    /// Plans the reads when a fault on a file mapping misses at `index`.
    pub fn map_miss(
        &mut self,
        index: u64,
        max: u64,
        advice: MapAdvice,
        cached: &impl CachedPages,
    ) -> Plan {
        let alone = Plan::bare(index, 1);
        if max == 0 || advice == MapAdvice::Random {
            return alone;
        }
        if advice == MapAdvice::Sequential {
            return self.miss(index, max, max, cached);
        }
        self.mmap_misses = (self.mmap_misses + 1).min(MMAP_MISS_MAX);
        if self.mmap_misses > MMAP_LOTS_OF_MISSES {
            return alone;
        }
        self.open(index.saturating_sub(max / 2), max, max / 4)
    }

    /// Records that faults on a file mapping found `pages` pages cached.
    pub fn map_hits(&mut self, pages: u32) {
        self.mmap_misses = self.mmap_misses.saturating_sub(pages);
    }

    fn follows(&self, index: u64) -> bool {
        self.prev.is_some_and(|prev| index.wrapping_sub(prev) <= 1)
    }

    fn open(&mut self, start: u64, size: u64, ahead: u64) -> Plan {
        self.window = Window { start, size, ahead, order: 0 };
        let mark = (ahead > 0).then(|| start + size - ahead);
        Plan { mark, ..Plan::bare(start, size) }
    }
}

/// The first window of a stream that asks for `pages` pages at a time.
fn first_size(pages: u64, max: u64) -> u64 {
    let size = pages.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// The window after one of `size` pages.
fn next_size(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        size * 4
    } else if size <= max / 2 {
        size * 2
    } else {
        max
    }
}

#[cfg(test)]
mod tests;
