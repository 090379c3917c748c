//! The columns of a block into events. A block may be anything that has the right checksum: what
//! its tokens refer to is checked.

use super::ahead::{Ahead, Tokens};
use super::encode::{LONG, PACKED, PACKED_BITS};
use super::layout::{COLUMNS, Column, take_varint, unzigzag};
use super::place::{ELSEWHERE, Known, LITERAL, NEAR, NEW, Place, SMALL};
use crate::trace::event::Operation;
use crate::trace::record::RUN_MAX;

/// The operation of each number.
const OPERATIONS: [Option<Operation>; 32] = {
    let mut all = [None; 32];
    let mut at = 0;
    while at < Operation::ALL.len() {
        all[Operation::ALL[at] as usize] = Some(Operation::ALL[at]);
        at += 1;
    }
    all
};

/// Holds an event without its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) operation: Operation,
    pub(super) nr: u64,
}

/// The columns of a block that is being read, and how far.
#[derive(Default)]
pub(super) struct Decoder {
    pub(super) columns: [Vec<u8>; COLUMNS],
    known: Known,
    ahead: Ahead,
    events: usize,
    /// Four operations share a byte.
    packed: bool,
    at: usize,
    literal: usize,
    times: usize,
    time: u64,
}

impl Decoder {
    /// Begins with the block whose columns were filled in; false if they do not fit together.
    pub(super) fn begin(&mut self, events: usize) -> bool {
        (self.events, self.at) = (events, 0);
        (self.literal, self.times) = (0, 0);
        self.ahead.begin(self.known.make_room());
        let length = |column: Column| self.columns[column as usize].len();
        self.packed = length(Column::Operations) < events;
        let operations = if self.packed { events.div_ceil(PACKED) } else { events };
        let is_whole = [Column::Tokens, Column::Lengths].into_iter().all(|c| length(c) == events);
        is_whole && length(Column::Operations) == operations
    }

    /// Events of the block that are left.
    pub(super) fn left(&self) -> usize {
        self.events - self.at
    }

    /// Decodes the next event, of which there is one; nothing if it makes no sense.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Item> {
        let token = self.columns[Column::Tokens as usize][self.at];
        let operation = self.operation();
        let length = self.columns[Column::Lengths as usize][self.at];
        let place = self.place(token)?;
        self.at += 1;
        let operation = OPERATIONS.get(operation).copied().flatten()?;
        let nr = match length {
            LONG => self.literal()?,
            nr => nr.into(),
        };
        let fits = nr > 0 && place.page.checked_add(nr - 1).is_some();
        if !fits || (operation.is_access() && nr > RUN_MAX) {
            return None;
        }
        self.known.push(place, nr);
        Some(Item { place, operation, nr })
    }

    /// The number of the next event's operation.
    #[inline]
    fn operation(&self) -> usize {
        let column = &self.columns[Column::Operations as usize];
        match self.packed {
            true => {
                let byte = usize::from(column[self.at / PACKED]);
                byte >> (self.at % PACKED * PACKED_BITS) & ((1 << PACKED_BITS) - 1)
            }
            false => column[self.at].into(),
        }
    }

    /// Decodes the time of the event that [`Self::next`] gave.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        let far = take_varint(&self.columns[Column::Times as usize], &mut self.times)?;
        self.time = self.time.wrapping_add(unzigzag(far));
        Some(self.time)
    }

    /// Decodes the page of the next event.
    #[inline]
    fn place(&mut self, token: u8) -> Option<Place> {
        let [tokens, low, high, ..] = &self.columns;
        self.ahead.reach(self.at, &Tokens { tokens, low, high }, &self.known);
        Some(match token {
            NEAR..NEW => self.known.near(token - NEAR),
            NEW..SMALL => self.learned(self.known.near(token - NEW)),
            LITERAL => {
                let end = self.known.end(1);
                let far = unzigzag(self.literal()?);
                self.learned(Place { page: end.page.wrapping_add(far), ..end })
            }
            ELSEWHERE => {
                let space = u32::try_from(self.literal()?).ok()?;
                let page = self.literal()?;
                self.learned(Place { space, page })
            }
            _ => self.ahead.place(self.at, &self.known)?,
        })
    }

    #[inline]
    fn learned(&mut self, place: Place) -> Place {
        self.known.learn(place);
        place
    }

    fn literal(&mut self) -> Option<u64> {
        take_varint(&self.columns[Column::Literals as usize], &mut self.literal)
    }

    /// Reads the names of spaces that the block brings; nothing if they make no sense.
    pub(super) fn names(&self) -> Option<Vec<(u32, String)>> {
        let bytes = &self.columns[Column::Names as usize];
        let (mut at, mut names) = (0, Vec::new());
        while at < bytes.len() {
            let space = u32::try_from(take_varint(bytes, &mut at)?).ok()?;
            let end = usize::try_from(take_varint(bytes, &mut at)?).ok()?.checked_add(at)?;
            let name = std::str::from_utf8(bytes.get(at..end)?).ok()?;
            names.push((space, name.to_string()));
            at = end;
        }
        Some(names)
    }
}
