//! Reads tokens a batch ahead of their events: a batch's pages are fetched from the list together.
//! The list is larger than the processor's caches, and one fetch after the other would wait for
//! memory each time.

use super::place::{
    ELSEWHERE, Known, LARGE, LARGE_FIRST, LITERAL, MIDDLE, MIDDLE_FIRST, NEW, Place, SMALL,
    SUCCESSOR,
};

/// Events of a batch.
const BATCH: usize = 128;
/// Stands for the number of an event whose page has none yet, or whose bytes are missing.
const NO_NUMBER: u32 = u32::MAX;

/// The columns that numbers are read from.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    pub(super) tokens: &'a [u8],
    pub(super) low: &'a [u8],
    pub(super) high: &'a [u8],
}

/// Keeps how far the bytes of numbers were read, and what the next numbers follow from.
#[derive(Default)]
struct Cursor {
    low: usize,
    high: usize,
    /// Pages of the list behind the last event that was read.
    count: u32,
    /// One more than the number that was read or given last.
    next: u32,
}

impl Cursor {
    /// Reads the number of the next event; nothing if its page has none yet, or if bytes of it are
    /// missing.
    #[inline]
    fn number(&mut self, token: u8, columns: &Tokens) -> Option<u32> {
        let number = match token {
            SUCCESSOR => self.next,
            SMALL..MIDDLE => (token - SMALL).into(),
            MIDDLE..LARGE => {
                MIDDLE_FIRST + (u32::from(token - MIDDLE) << 8) + byte(columns.low, &mut self.low)?
            }
            LARGE..LITERAL => {
                let low = byte(columns.low, &mut self.low)?;
                let high = byte(columns.high, &mut self.high)?;
                LARGE_FIRST + (u32::from(token - LARGE) << 16) + (high << 8) + low
            }
            NEW..SMALL | LITERAL | ELSEWHERE => {
                self.count += 1;
                self.next = self.count;
                return None;
            }
            _ => return None,
        };
        self.next = number + 1;
        Some(number)
    }
}

/// Takes the next byte of a column.
#[inline]
fn byte(column: &[u8], at: &mut usize) -> Option<u32> {
    let byte = *column.get(*at)?;
    *at += 1;
    Some(byte.into())
}

/// The numbers and pages of the events to come.
pub(super) struct Ahead {
    cursor: Cursor,
    numbers: [u32; BATCH],
    places: [Place; BATCH],
    /// Pages of the list when `places` were fetched.
    fetched: usize,
    /// The batch's first event and the one behind its last.
    begin: usize,
    end: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead {
            cursor: Cursor::default(),
            numbers: [NO_NUMBER; BATCH],
            places: [Place::default(); BATCH],
            fetched: 0,
            begin: 0,
            end: 0,
        }
    }
}

impl Ahead {
    /// Begins with a block; `is_emptied` says that the list of pages was emptied before it.
    pub(super) fn begin(&mut self, is_emptied: bool) {
        (self.begin, self.end) = (0, 0);
        (self.cursor.low, self.cursor.high) = (0, 0);
        if is_emptied {
            (self.cursor.count, self.cursor.next) = (0, 0);
        }
    }

    /// Reads the batch that begins with event `at`, if that is the next one to be read.
    #[inline]
    pub(super) fn reach(&mut self, at: usize, columns: &Tokens, known: &Known) {
        if at == self.end {
            self.fill(at, columns, known);
        }
    }

    /// Returns the page that event `at` names by its number; nothing if the list has no page of
    /// that number.
    #[inline]
    pub(super) fn place(&self, at: usize, known: &Known) -> Option<Place> {
        let number = self.numbers[at - self.begin] as usize;
        match number < self.fetched {
            true => Some(self.places[at - self.begin]),
            // An earlier event of the batch brought it.
            false => known.places.get(number).copied(),
        }
    }

    fn fill(&mut self, at: usize, columns: &Tokens, known: &Known) {
        let tokens = &columns.tokens[at..columns.tokens.len().min(at + BATCH)];
        (self.begin, self.end, self.fetched) = (at, at + tokens.len(), known.places.len());
        for (number, &token) in self.numbers.iter_mut().zip(tokens) {
            *number = self.cursor.number(token, columns).unwrap_or(NO_NUMBER);
        }
        for (place, &number) in self.places.iter_mut().zip(&self.numbers[..tokens.len()]) {
            *place = known.places.get(number as usize).copied().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::compact::layout::BLOCK_EVENTS;

    /// Reads all numbers of a block whose list has `known` pages.
    fn pages(tokens: &[u8], low: &[u8], known: &Known) -> Vec<Option<u64>> {
        let (mut ahead, columns) = (Ahead::default(), Tokens { tokens, low, high: &[] });
        ahead.cursor.count = known.places.len() as u32;
        let page = |at| {
            ahead.reach(at, &columns, known);
            ahead.place(at, known).map(|place| place.page)
        };
        (0..tokens.len()).map(page).collect()
    }

    fn known(pages: u64) -> Known {
        let mut known = Known::default();
        (0..pages).for_each(|page| known.learn(Place { space: 0, page: 1000 + page }));
        known
    }

    #[test]
    fn numbers_go_on_over_the_ends_of_batches() {
        let tokens = [SMALL].into_iter().chain([SUCCESSOR; 3 * BATCH]).collect::<Vec<_>>();
        let expected = (1000..).take(tokens.len()).map(Some).collect::<Vec<_>>();
        assert!(tokens.len() < BLOCK_EVENTS);
        assert_eq!(pages(&tokens, &[], &known(1000)), expected);
    }

    #[test]
    fn a_number_that_is_in_no_list_or_lacks_its_byte_has_no_page() {
        let tokens = [SMALL + 9, MIDDLE, MIDDLE, SMALL + 1];
        let found = pages(&tokens, &[3], &known(9));
        assert_eq!(found, [None, None, None, Some(1001)]);
        assert_eq!(pages(&[MIDDLE], &[3], &known(99)), [Some(1000 + 62 + 3)]);
    }
}
