//! Events into the columns of a block.

use hashbrown::HashMap;

use super::layout::{COLUMNS, Column, put_varint, zigzag};
use super::place::{
    ELSEWHERE, Known, LARGE, LARGE_FIRST, LITERAL, MIDDLE, MIDDLE_FIRST, NEAR, NEW, Place, SMALL,
    SUCCESSOR,
};
use crate::trace::event::Event;

/// Bits of an operation where several share a byte.
pub(super) const PACKED_BITS: usize = 2;
/// Operations that share a byte.
pub(super) const PACKED: usize = 8 / PACKED_BITS;
/// Lengths from here on are written in full.
pub(super) const LONG: u8 = u8::MAX;

/// The columns of a block that is being filled.
#[derive(Default)]
pub(super) struct Encoder {
    pub(super) columns: [Vec<u8>; COLUMNS],
    pub(super) events: usize,
    known: Known,
    numbers: HashMap<Place, u32>,
    time: u64,
}

impl Encoder {
    /// Empties the columns for the next block.
    pub(super) fn begin(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.events = 0;
        if self.known.make_room() {
            self.numbers.clear();
        }
    }

    /// Adds an event.
    pub(super) fn event(&mut self, event: &Event) {
        let place = Place { space: event.space, page: event.page };
        self.place(place);
        self.known.push(place, event.nr);
        self.put(Column::Operations, event.operation as u8);
        match u8::try_from(event.nr) {
            Ok(nr) if nr < LONG => self.put(Column::Lengths, nr),
            _ => {
                self.put(Column::Lengths, LONG);
                self.number(Column::Literals, event.nr);
            }
        }
        self.number(Column::Times, zigzag(event.time.wrapping_sub(self.time)));
        self.time = event.time;
        self.events += 1;
    }

    /// Completes the columns.
    pub(super) fn complete(&mut self) {
        let operations = &mut self.columns[Column::Operations as usize];
        if operations.iter().all(|&operation| operation < 1 << PACKED_BITS) {
            let pack = |four: &[u8]| {
                four.iter().rev().fold(0, |byte, &operation| byte << PACKED_BITS | operation)
            };
            *operations = operations.chunks(PACKED).map(pack).collect();
        }
    }

    /// Names a space.
    pub(super) fn name(&mut self, space: u32, name: &[u8]) {
        self.number(Column::Names, space.into());
        self.number(Column::Names, name.len() as u64);
        self.columns[Column::Names as usize].extend_from_slice(name);
    }

    fn put(&mut self, column: Column, byte: u8) {
        self.columns[column as usize].push(byte);
    }

    fn number(&mut self, column: Column, value: u64) {
        put_varint(value, &mut self.columns[column as usize]);
    }

    fn place(&mut self, place: Place) {
        let near = self.known.nearness(place);
        match (self.numbers.get(&place).copied(), near) {
            (Some(number), _) if number == self.known.next => {
                self.put(Column::Tokens, SUCCESSOR);
                self.known.next += 1;
            }
            (Some(_), Some(near)) => self.put(Column::Tokens, NEAR + near),
            (Some(number), None) => self.numbered(number),
            (None, Some(near)) => {
                self.put(Column::Tokens, NEW + near);
                self.learn(place);
            }
            (None, None) => self.literal(place),
        }
    }

    fn numbered(&mut self, number: u32) {
        let (token, rest) = match number {
            0..MIDDLE_FIRST => (SMALL + number as u8, 0),
            MIDDLE_FIRST..LARGE_FIRST => {
                let rest = number - MIDDLE_FIRST;
                self.put(Column::Low, rest as u8);
                (MIDDLE, rest >> 8)
            }
            _ => {
                let rest = number - LARGE_FIRST;
                self.put(Column::Low, rest as u8);
                self.put(Column::High, (rest >> 8) as u8);
                (LARGE, rest >> 16)
            }
        };
        self.put(Column::Tokens, token + rest as u8);
        self.known.next = number + 1;
    }

    fn literal(&mut self, place: Place) {
        let end = self.known.end(1);
        if end.space == place.space {
            self.put(Column::Tokens, LITERAL);
            self.number(Column::Literals, zigzag(place.page.wrapping_sub(end.page)));
        } else {
            self.put(Column::Tokens, ELSEWHERE);
            self.number(Column::Literals, place.space.into());
            self.number(Column::Literals, place.page);
        }
        self.learn(place);
    }

    fn learn(&mut self, place: Place) {
        self.numbers.insert(place, self.known.places.len() as u32);
        self.known.learn(place);
    }
}
