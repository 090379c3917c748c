//! Readahead: which pages a miss reads, and which page starts the next window (experiments §0.6).
//!
//! Pure decisions: the caller tells what is cached and carries the plan out. The state belongs to
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
    /// First page.
    pub start: u64,
    /// Number of pages.
    pub pages: u64,
    /// The page that, when met, starts the next window; with large folios the folio it is in.
    pub mark: Option<u64>,
    /// The order of its folios, a power of two of pages, where they fit (spec §LF.3).
    pub order: u8,
}

impl Plan {
    /// Single pages that say nothing about what is read next.
    fn bare(start: u64, pages: u64) -> Self {
        Self { start, pages, mark: None, order: 0 }
    }
}

/// Access advice of a mapping, as far as readahead is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAdvice {
    /// Read around, until misses prevail.
    Normal,
    /// The faulting page only.
    Random,
    /// As a buffered reader would.
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

/// A folio whose mark was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Its first page.
    pub index: u64,
    /// How many it has.
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

    /// A read has ended at this page.
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
            return Some(self.ramp(start + size, next_size(size, max), max, largest));
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
mod tests {
    use super::*;

    const MAX: u64 = 32;

    /// Cached pages, as ranges.
    struct Ranges(&'static [(u64, u64)]);

    impl Ranges {
        fn has(&self, index: u64) -> bool {
            self.0.iter().any(|&(from, to)| (from..to).contains(&index))
        }
    }

    impl CachedPages for Ranges {
        fn cached_before(&self, index: u64, most: u64) -> u64 {
            let least = index.saturating_sub(most);
            (least..index).rev().take_while(|&i| self.has(i)).count() as u64
        }

        fn next_hole(&self, from: u64) -> u64 {
            (from..).find(|&i| !self.has(i)).expect("ranges end")
        }
    }

    const EMPTY: Ranges = Ranges(&[]);

    fn plan(start: u64, pages: u64, mark: u64) -> Plan {
        Plan { mark: Some(mark), ..Plan::bare(start, pages) }
    }

    fn page(index: u64) -> Marked {
        Marked { index, pages: 1 }
    }

    fn at(prev: u64) -> FileState {
        FileState { prev: Some(prev), ..FileState::default() }
    }

    #[test]
    fn the_start_of_a_file_opens_a_window() {
        assert_eq!(FileState::default().miss(0, 1, MAX, &EMPTY), plan(0, 4, 1));
        assert_eq!(FileState::default().miss(0, 2, MAX, &EMPTY), plan(0, 4, 2));
        assert_eq!(FileState::default().miss(0, 7, MAX, &EMPTY), plan(0, 16, 7));
        assert_eq!(FileState::default().miss(0, 9, MAX, &EMPTY), plan(0, 32, 9));
        assert_eq!(FileState::default().miss(0, 32, MAX, &EMPTY), plan(0, 32, 16));
    }

    #[test]
    fn a_request_larger_than_the_window_reads_a_window() {
        assert_eq!(at(5).miss(1000, 256, MAX, &EMPTY), plan(1000, 32, 1016));
    }

    #[test]
    fn continuing_where_the_last_read_ended_opens_a_window() {
        assert_eq!(at(99).miss(100, 4, MAX, &EMPTY), plan(100, 8, 104));
        assert_eq!(at(100).miss(100, 4, MAX, &EMPTY), plan(100, 8, 104));
        assert_eq!(at(98).miss(100, 4, MAX, &EMPTY).mark, None);
        assert_eq!(at(101).miss(100, 4, MAX, &EMPTY).mark, None, "backwards is random");
        assert_eq!(FileState::default().miss(1, 1, MAX, &EMPTY).mark, None, "nothing was read");
    }

    #[test]
    fn a_random_miss_reads_what_was_asked_and_keeps_the_window() {
        let mut state = FileState::default();
        state.miss(0, 7, MAX, &EMPTY);
        let before = state;
        let cached = Ranges(&[(493, 500)]);
        assert_eq!(state.miss(500, 7, MAX, &cached), Plan::bare(500, 7));
        assert_eq!(state, before);
    }

    #[test]
    fn cached_history_longer_than_the_request_is_a_stream() {
        let cached = Ranges(&[(486, 500)]);
        assert_eq!(at(0).miss(500, 7, MAX, &cached), plan(500, 21, 520));
        let long = Ranges(&[(400, 500)]);
        assert_eq!(at(0).miss(500, 7, MAX, &long), plan(500, 32, 531));
    }

    #[test]
    fn history_back_to_the_start_counts_twice() {
        let cached = Ranges(&[(0, 10)]);
        assert_eq!(at(50).miss(10, 2, MAX, &cached), plan(10, 22, 31));
    }

    #[test]
    fn the_mark_opens_ever_larger_windows() {
        let mut state = FileState::default();
        assert_eq!(state.miss(0, 1, MAX, &EMPTY), plan(0, 4, 1));
        assert_eq!(state.marked(page(1), 1, MAX, 0, &EMPTY), Some(plan(4, 8, 4)));
        assert_eq!(state.marked(page(4), 1, MAX, 0, &EMPTY), Some(plan(12, 16, 12)));
        assert_eq!(state.marked(page(12), 1, MAX, 0, &EMPTY), Some(plan(28, 32, 28)));
        assert_eq!(state.marked(page(28), 1, MAX, 0, &EMPTY), Some(plan(60, 32, 60)));
    }

    #[test]
    fn windows_of_large_folios_end_where_larger_ones_can_begin() {
        let mut state = FileState::default();
        let first = state.miss(0, 1, MAX, &EMPTY);
        assert_eq!((first.pages, first.order), (4, 0));
        let mut met = page(1);
        let windows = [(4, 8, 2), (12, 4, 2), (16, 8, 3), (24, 8, 3), (32, 16, 4), (48, 16, 4)];
        for (start, pages, order) in windows.into_iter().chain([(64, 32, 5), (96, 32, 5)]) {
            let next = state.marked(met, 1, MAX, 9, &EMPTY);
            assert_eq!(next, Some(Plan { order, ..plan(start, pages, start) }));
            met = Marked { index: start, pages: 1 << order };
        }
        assert_eq!(state.miss(500, MAX, MAX, &EMPTY).order, 0, "a new stream starts anew");
        assert_eq!(state.marked(page(516), 1, MAX, 1, &EMPTY).unwrap().order, 1, "the largest");
    }

    #[test]
    fn a_stray_mark_continues_at_the_next_hole() {
        let cached = Ranges(&[(100, 108)]);
        let mut state = FileState::default();
        assert_eq!(state.marked(page(104), 1, MAX, 0, &cached), Some(plan(108, 10, 108)));
        let full = Ranges(&[(100, 200)]);
        assert_eq!(FileState::default().marked(page(104), 1, MAX, 0, &full), None);
    }

    #[test]
    fn no_readahead_reads_one_page() {
        let one = Plan::bare(9, 1);
        assert_eq!(at(8).miss(9, 7, 0, &EMPTY), one);
        assert_eq!(FileState::default().map_miss(9, 0, MapAdvice::Normal, &EMPTY), one);
        assert_eq!(FileState::default().marked(page(9), 1, 0, 0, &EMPTY), None);
    }

    #[test]
    fn map_faults_follow_advice() {
        let mut state = FileState::default();
        let one = Plan::bare(100, 1);
        assert_eq!(state.map_miss(100, MAX, MapAdvice::Random, &EMPTY), one);
        assert_eq!(state.map_miss(100, MAX, MapAdvice::Normal, &EMPTY), plan(84, 32, 108));
        assert_eq!(state.map_miss(3, MAX, MapAdvice::Normal, &EMPTY), plan(0, 32, 24));
        state.set_prev(99);
        assert_eq!(state.map_miss(100, MAX, MapAdvice::Sequential, &EMPTY), plan(100, 32, 116));
    }

    #[test]
    fn a_mapping_without_locality_is_no_longer_read_around() {
        let mut state = FileState::default();
        for i in 0..100 {
            assert_eq!(state.map_miss(1000 * i, MAX, MapAdvice::Normal, &EMPTY).pages, MAX);
        }
        assert_eq!(state.map_miss(7, MAX, MapAdvice::Normal, &EMPTY).pages, 1);
        state.map_hits(2);
        assert_eq!(state.map_miss(7, MAX, MapAdvice::Normal, &EMPTY).pages, MAX);
    }
}
