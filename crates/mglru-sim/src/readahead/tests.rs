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
fn a_mark_that_writeback_left_opens_no_window_where_none_was() {
    let mut state = FileState::default();
    assert_eq!(state.marked(page(0), 1, MAX, 9, &EMPTY), None);
    assert_eq!(state.miss(0, 1, MAX, &EMPTY), plan(0, 4, 1));
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
