//! Keeps what writer and reader both know of the pages so far, for tokens to refer to.
//!
//! | token | the event's page |
//! |---|---|
//! | `SUCCESSOR` | the page whose number follows that of the page numbered last |
//! | `NEAR..` | near the end of one of the last eight events; it was seen before |
//! | `NEW..` | the same, and it is new: it gets the next number |
//! | `SMALL..` | the page of this number |
//! | `MIDDLE..` | the page of this number; the low byte follows |
//! | `LARGE..` | the page of this number; the second and the low byte follow |
//! | `LITERAL` | new, in the space of the event before: the difference to its end follows |
//! | `ELSEWHERE` | new: space and page follow |

use super::layout::BLOCK_EVENTS;

/// A page of a space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) space: u32,
    pub(super) page: u64,
}

pub(super) const SUCCESSOR: u8 = 0;
pub(super) const NEAR: u8 = 1;
pub(super) const NEW: u8 = NEAR + NEARS as u8;
pub(super) const SMALL: u8 = NEW + NEARS as u8;
pub(super) const MIDDLE: u8 = 125;
pub(super) const LARGE: u8 = MIDDLE + 64;
pub(super) const LITERAL: u8 = LARGE + 64;
pub(super) const ELSEWHERE: u8 = LITERAL + 1;

/// First number that is written with one byte beside its token.
pub(super) const MIDDLE_FIRST: u32 = (MIDDLE - SMALL) as u32;
/// First number that is written with two bytes beside its token.
pub(super) const LARGE_FIRST: u32 = MIDDLE_FIRST + (64 << 8);
/// Counts the numbers that can be written.
pub(super) const NUMBERS: u32 = LARGE_FIRST + (64 << 16);

/// Events that a page can be near to.
pub(super) const RECENT: usize = 8;
/// Tokens for pages near to an event.
pub(super) const NEARS: usize = 31;
/// Distance of the first page that is near to the event before.
const FIRST_DISTANCE: i64 = -8;
/// Tokens for pages near to the event before.
const LAST_NEARS: usize = 17;

/// The meaning of the token `NEAR + at`: how many events back, and how far from its end.
const fn near(at: usize) -> (usize, i64) {
    match at {
        0..LAST_NEARS => (1, FIRST_DISTANCE + at as i64),
        _ => (2 + (at - LAST_NEARS) / 2, (at - LAST_NEARS) as i64 % 2 - 1),
    }
}

/// The pages so far: in order of first appearance, and where the last events ended.
#[derive(Default)]
pub(super) struct Known {
    pub(super) places: Vec<Place>,
    /// One behind the last page of each recent event, by the event's number modulo their number.
    recent: [Place; RECENT],
    events: usize,
    /// One more than the number written last.
    pub(super) next: u32,
}

impl Known {
    /// Forgets the numbered pages if a block might not find room for new ones; true if it did.
    pub(super) fn make_room(&mut self) -> bool {
        let is_full = self.places.len() + BLOCK_EVENTS > NUMBERS as usize;
        if is_full {
            self.places.clear();
            self.next = 0;
        }
        is_full
    }

    /// Numbers a new page.
    #[inline]
    pub(super) fn learn(&mut self, place: Place) {
        self.places.push(place);
        self.next = self.places.len() as u32;
    }

    /// Notes an event.
    #[inline]
    pub(super) fn push(&mut self, place: Place, nr: u64) {
        self.events += 1;
        let end = Place { space: place.space, page: place.page.wrapping_add(nr) };
        self.recent[self.events % RECENT] = end;
    }

    /// One behind the last page of the event `back` events ago (1 for the last one).
    #[inline]
    pub(super) fn end(&self, back: usize) -> Place {
        self.recent[self.events.wrapping_sub(back - 1) % RECENT]
    }

    /// The page that is meant by token `NEAR + at`.
    #[inline]
    pub(super) fn near(&self, at: u8) -> Place {
        const MEANING: [(usize, i64); NEARS] = {
            let (mut all, mut at) = ([(0, 0); NEARS], 0);
            while at < NEARS {
                all[at] = near(at);
                at += 1;
            }
            all
        };
        let (back, distance) = MEANING[usize::from(at)];
        let end = self.end(back);
        Place { page: end.page.wrapping_add(distance as u64), ..end }
    }

    /// Finds how a page is near to a recent event, as the distance from [`NEAR`].
    pub(super) fn nearness(&self, place: Place) -> Option<u8> {
        let distance = |back: usize| {
            let end = self.end(back);
            (end.space == place.space).then(|| place.page.wrapping_sub(end.page) as i64)
        };
        let last = FIRST_DISTANCE..FIRST_DISTANCE + LAST_NEARS as i64;
        if let Some(far) = distance(1).filter(|far| last.contains(far)) {
            return Some((far - FIRST_DISTANCE) as u8);
        }
        let older = |back: usize| {
            let far = distance(back).filter(|far| (-1..=0).contains(far))?;
            Some((LAST_NEARS + 2 * (back - 2)) as u8 + (far + 1) as u8)
        };
        (2..=RECENT).find_map(older)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_numbers_are_written_and_read_alike() {
        let mut known = Known::default();
        for at in 0..8 {
            known.push(Place { space: at % 3, page: u64::from(at) * 1000 }, 1 + u64::from(at));
        }
        for at in 0..NEARS as u8 {
            assert_eq!(known.nearness(known.near(at)), Some(at));
        }
        assert_eq!(known.nearness(Place { space: 0, page: 500 }), None);
        assert_eq!(known.nearness(Place { space: 9, page: 7008 }), None);
    }

    #[test]
    fn tokens_do_not_overlap_and_are_all_used() {
        assert_eq!([NEW, SMALL, LITERAL, ELSEWHERE], [32, 63, 253, 254]);
        assert_eq!(NUMBERS, 62 + 64 * 256 + 64 * 65536);
    }
}
