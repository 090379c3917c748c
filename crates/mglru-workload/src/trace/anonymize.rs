//! Makes traces that may be shown: a keyed permutation of page numbers, coarse times, no names.
//!
//! Blocks of 1024 pages (single keys, where a trace has no pages) are permuted within each space; a
//! page keeps its place in its block. Runs, sizes, distances within a block and the order of all
//! requests stay, and with them every miss-ratio curve. What was far apart lies elsewhere.

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use super::event::{Event, Head, Operation, TimeUnit};

/// Log2 of the pages that stay together.
const BLOCK_SHIFT: u32 = 10;
/// Rounds of the Feistel network. Four make a permutation that looks random.
const ROUNDS: u8 = 8;
/// Times are rounded down to a second, or to a million instructions.
const NANOSECONDS: u64 = 1_000_000_000;
const INSTRUCTIONS: u64 = 1_000_000;

/// Permutes pages under a key, which is forgotten with it.
pub struct Anonymizer {
    key: [u8; 32],
    /// Log2 of the pages of a block.
    shift: u32,
    coarse: u64,
    start: Option<u64>,
    known: HashMap<(u32, u64), u64>,
}

impl Anonymizer {
    /// Prepares for the events of one trace.
    pub fn new(key: [u8; 32], head: Head) -> Self {
        let shift = if head.page_shift == 0 { 0 } else { BLOCK_SHIFT };
        let coarse = if head.time == TimeUnit::Instruction { INSTRUCTIONS } else { NANOSECONDS };
        Anonymizer { key, shift, coarse, start: None, known: HashMap::new() }
    }

    /// Replaces an event; one that reaches into other blocks becomes one for each.
    pub fn event(&mut self, event: &Event, out: &mut Vec<Event>) {
        let start = *self.start.get_or_insert(event.time);
        let time = event.time.saturating_sub(start) / self.coarse * self.coarse;
        if event.operation == Operation::Fork {
            return out.push(Event { time, page: self.page(event.space, event.page), ..*event });
        }
        let (mut page, mut left) = (event.page, event.nr);
        while left > 0 {
            let nr = left.min((1 << self.shift) - (page & ((1 << self.shift) - 1)));
            out.push(Event { time, page: self.page(event.space, page), nr, ..*event });
            left -= nr;
            page = page.wrapping_add(nr);
        }
    }

    /// The page in place of another.
    fn page(&mut self, space: u32, page: u64) -> u64 {
        let block = page >> self.shift;
        let (key, bits) = (&self.key, u64::BITS - self.shift);
        let other =
            *self.known.entry((space, block)).or_insert_with(|| permuted(key, space, block, bits));
        other << self.shift | page & ((1 << self.shift) - 1)
    }
}

/// Permutes the numbers of so many bits (an even number): a Feistel network whose rounds are keyed.
fn permuted(key: &[u8; 32], space: u32, number: u64, bits: u32) -> u64 {
    let half = bits / 2;
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ scrambled(key, space, round, right) & mask);
    }
    left << half | right
}

fn scrambled(key: &[u8; 32], space: u32, round: u8, half: u64) -> u64 {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update([round]);
    hash.update(space.to_le_bytes());
    hash.update(half.to_le_bytes());
    let digest = hash.finalize();
    u64::from_le_bytes(std::array::from_fn(|at| digest[at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const PAGES: Head = Head { page_shift: 12, time: TimeUnit::Nanosecond, spaces: true };

    fn all(key: [u8; 32], head: Head, events: &[Event]) -> Vec<Event> {
        let (mut anonymizer, mut out) = (Anonymizer::new(key, head), Vec::new());
        events.iter().for_each(|event| anonymizer.event(event, &mut out));
        out
    }

    /// Distinct pages since the last request for each page: all that LRU's misses depend on.
    fn distances(events: &[Event]) -> Vec<Option<usize>> {
        let mut stack: Vec<(u32, u64)> = Vec::new();
        let pages = events.iter().flat_map(|e| (0..e.nr).map(|at| (e.space, e.page + at)));
        let distance = |page: (u32, u64)| {
            let at = stack.iter().rev().position(|known| *known == page);
            stack.retain(|known| *known != page);
            stack.push(page);
            at
        };
        pages.map(distance).collect()
    }

    #[test]
    fn small_permutations_are_bijective_and_differ_by_key_and_space() {
        for bits in [8, 12] {
            let map = |key: u8, space| -> Vec<u64> {
                (0..1 << bits).map(|n| permuted(&[key; 32], space, n, bits)).collect()
            };
            let numbers: HashSet<u64> = map(1, 0).into_iter().collect();
            assert!(numbers.len() == 1 << bits && numbers.iter().all(|n| n >> bits == 0));
            assert!(map(1, 0) != map(2, 0) && map(1, 0) != map(1, 1));
        }
    }

    proptest! {
        #[test]
        fn lru_misses_and_sizes_stay_exactly(
            pages in proptest::collection::vec((0u64..9000, 1u64..40, 0u32..3), 1..120),
            key: [u8; 32],
            keyed: bool,
        ) {
            let event = |&(page, nr, space): &(u64, u64, u32)| {
                Event { page, nr: if keyed { 1 } else { nr }, space, ..Event::default() }
            };
            let events: Vec<Event> = pages.iter().map(event).collect();
            let head = Head { page_shift: if keyed { 0 } else { 12 }, ..PAGES };
            let shown = all(key, head, &events);
            prop_assert_eq!(distances(&shown), distances(&events));
            let sum = |events: &[Event]| events.iter().map(|e| e.nr).sum::<u64>();
            prop_assert_eq!(sum(&shown), sum(&events));
        }
    }

    #[test]
    fn runs_stay_runs_within_blocks_and_times_are_coarse() {
        let at = |time, page, nr| Event { time, page, nr, ..Event::default() };
        let shown = all([7; 32], PAGES, &[at(5_400_000_000, 1000, 100), at(7_000_000_000, 3, 1)]);
        let rows: Vec<_> = shown.iter().map(|e| (e.time, e.page % 1024, e.nr)).collect();
        assert_eq!(rows, [(0, 1000, 24), (0, 0, 76), (1_000_000_000, 3, 1)]);
        assert_eq!(shown[0].page >> 10, shown[2].page >> 10);
        let last = all([7; 32], PAGES, &[at(0, u64::MAX, 1)]);
        assert_eq!(last[0].page % 1024, 1023);
    }
}
